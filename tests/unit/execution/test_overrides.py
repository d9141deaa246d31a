"""Each option that accepts a hazard or asks for more, from the look to the target: without it, and with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from failover.execution.commit import Timing
from failover.execution.runs import load_run
from failover.execution.session import Session, Ways
from failover.inventory.selection import Selection
from failover.model.execution import Execution
from failover.model.groups import Commit, Member
from failover.model.names import TopicPartition
from failover.model.plan import Plan, PlanOptions
from failover.planning.build import make_plan
from failover.state.folder import StateFolder
from failover.state.runs import RECORD
from tests.unit.execution.scene import Clock
from tests.unit.inventory.scene import Scene, flow

SOURCE, PLACE = TopicPartition("orders", 0), TopicPartition("a.orders", 0)
OTHER = TopicPartition("a.orders", 1)


def beyond_the_end(scene: Scene) -> None:
    """MM2 before 3.3 copied the source's number where it had no sync."""
    scene.checkpoint("g", "a.orders", 5000, 5000)


def ahead(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 500, 480)
    scene.b.group("g", {PLACE: 700})


def known_by_a_checkpoint(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 500, 480)


def before_every_sync(scene: Scene) -> None:
    """The mirror began behind the group's position, and no record tells where that lies."""
    scene.sync("orders", 600, 0)
    scene.a.group("g", {SOURCE: 500})


def one_without_position(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 500, 480)
    scene.mirror("orders", 2, end=1000)


def nowhere(scene: Scene) -> None:
    """Nobody knows the group."""


def on_the_source(scene: Scene) -> None:
    scene.sync("orders", 0, 0)
    scene.a.group("g", {SOURCE: 500}, state="Stable", members=(Member("app-1", "/10.0.3.7", "app-1-1"),))
    scene.checkpoint("g", "a.orders", 500, 480)


class Case(NamedTuple):
    """``without``, ``having``: the reasons of the partitions, and what the group has on the target in the end."""

    given: Callable[[Scene], None]
    option: dict[str, Any]
    without: tuple[list[str], dict[TopicPartition, int]]
    having: tuple[list[str], dict[TopicPartition, int]]
    source_down: bool = True


CASES = {
    "allow-unverified": Case(
        beyond_the_end,
        {"allow_unverified": True},
        (["beyond-log-end"], {}),
        (["at-log-end"], {PLACE: 1000}),
    ),
    "allow-unverified, no place": Case(
        before_every_sync,
        {"allow_unverified": True},
        (["older-than-first-sync"], {}),
        (["at-log-end"], {PLACE: 1000}),
        source_down=False,
    ),
    "allow-rewind": Case(
        ahead,
        {"allow_rewind": True},
        (["would-rewind"], {PLACE: 700}),
        (["translated"], {PLACE: 480}),
    ),
    "allow-skip": Case(
        one_without_position,
        {"missing": "latest", "allow_skip": True},
        (["translated", "no-checkpoint"], {PLACE: 480}),
        (["translated", "at-log-end"], {PLACE: 480, OTHER: 1000}),
    ),
    "missing": Case(
        one_without_position,
        {"missing": "earliest"},
        (["translated", "no-checkpoint"], {PLACE: 480}),
        (["translated", "at-log-start"], {PLACE: 480, OTHER: 0}),
    ),
    "all-or-nothing": Case(
        one_without_position,
        {"all_or_nothing": True},
        (["translated", "no-checkpoint"], {PLACE: 480}),
        (["all-or-nothing", "no-checkpoint"], {}),
    ),
    "precision": Case(
        known_by_a_checkpoint,
        {"precision": "bounded"},
        (["translated"], {PLACE: 480}),
        (["below-precision"], {}),
    ),
    "create-group": Case(
        nowhere,
        {"create_group": True, "topics": ("orders",), "missing": "earliest"},
        ([], {}),
        (["at-log-start"], {PLACE: 0}),
    ),
    "require-source-inactive": Case(
        on_the_source,
        {"require_source_inactive": True},
        (["translated"], {PLACE: 480}),
        (["source-active"], {}),
        source_down=False,
    ),
}
OVERRIDES = ("allow_rewind", "allow_skip", "allow_moving_commits", "allow_unverified", "create_group")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(flow(tmp_path))
    made.mirror("orders", end=1000)
    return made


def planned(scene: Scene, options: PlanOptions, *, source_down: bool) -> Plan:
    # the name is taken as it is, so that a plan says what becomes of one that nobody knows
    snapshot = scene.look(Selection(("g",), create=True, topics=options.topics), source_down=source_down)
    fields = {"plan_id": "p", "operator": "kim", "reason": "", "ttl_seconds": 9e6, "tool_version": "0"}
    return make_plan(snapshot, options, **fields)  # type: ignore[arg-type]


def executed(made: Plan, scene: Scene, state: StateFolder, timing: Timing, on_sleep: Any = None) -> Execution:
    clock = Clock()
    clock.on_sleep = on_sleep or clock.on_sleep
    session = Session.of_plan(made, state, scene.b, Ways("ann", clock=clock, sleep=clock.sleep), timing=timing)
    session.run()
    return load_run(state.executions / session.run_id / RECORD)


@pytest.mark.parametrize("name", CASES)
def test_what_an_option_changes_from_the_look_to_the_target(scene: Scene, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    case.given(scene)
    before = dict(scene.b.groups["g"].commits) if "g" in scene.b.groups else {}
    for option, (reasons, standing) in (({}, case.without), (case.option, case.having)):
        options = PlanOptions(**{"groups": ("g",), **option})
        made = planned(scene, options, source_down=case.source_down)
        assert [p.reason for group in made.groups for p in group.partitions] == reasons
        done = executed(made, scene, StateFolder(tmp_path / f"state-{len(option)}"), Timing(settle=0))
        found = scene.b.groups["g"].commits if "g" in scene.b.groups else {}
        assert {tp: commit.offset for tp, commit in found.items()} == standing
        assert done.overrides == tuple(name for name in OVERRIDES if option.get(name))
        scene.b.groups.pop("g", None)
        if before:
            scene.b.group("g", before)


@pytest.mark.parametrize("allowed", [False, True])
def test_commits_that_move_while_they_are_watched(scene: Scene, tmp_path: Path, allowed: bool) -> None:
    known_by_a_checkpoint(scene)
    scene.b.group("g", {PLACE: 100})

    def somebody_commits() -> None:
        standing = scene.b.groups["g"].commits[PLACE]
        if standing.offset < 480:
            scene.b.groups["g"].commits[PLACE] = Commit(standing.offset + 1)

    made = planned(scene, PlanOptions(groups=("g",), allow_moving_commits=allowed), source_down=True)
    done = executed(made, scene, StateFolder(tmp_path / "state"), Timing(settle=3), somebody_commits)
    assert (scene.b.groups["g"].commits[PLACE].offset == 480) is allowed
    assert [p.reason for p in done.groups[0].partitions] == ["translated" if allowed else "commits-moving"]
    assert done.overrides == (("allow_moving_commits",) if allowed else ())
