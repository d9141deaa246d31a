"""Two plans of one group, and the older one executed last: a stale copy of the tool overwrites nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from failover.execution.commit import Timing
from failover.execution.record import exit_code
from failover.model.names import TopicPartition
from failover.model.plan import PlanOptions
from failover.state.folder import StateFolder
from tests.unit.execution.test_overrides import executed, planned
from tests.unit.inventory.scene import Scene, flow

SOURCE, PLACE = TopicPartition("orders", 0), TopicPartition("a.orders", 0)


def at(scene: Scene, offset: int) -> None:
    scene.a.group("g", {SOURCE: offset})
    scene.checkpoint("g", "a.orders", offset, offset)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same machine", "another machine"])
@pytest.mark.parametrize("rewind", [False, True], ids=["", "allow-rewind"])
def test_the_older_plan_executed_last_is_refused(tmp_path: Path, elsewhere: bool, rewind: bool) -> None:
    scene = Scene(flow(tmp_path, {"offset-syncs.topic.location": "target"}))
    scene.mirror("orders", end=1000)
    scene.sync("orders", 0, 0)
    options = PlanOptions(groups=("g",), allow_rewind=rewind)
    at(scene, 400)
    older = planned(scene, options, source_down=False)
    at(scene, 700)
    newer = planned(scene, options, source_down=False)
    here = StateFolder(tmp_path / "here")
    executed(newer, scene, here, Timing(settle=0))
    standing = dict(scene.b.groups["g"].commits)
    assert standing[PLACE].offset > 400

    there = StateFolder(tmp_path / "there") if elsewhere else here
    again = executed(older, scene, there, Timing(settle=0))
    assert exit_code(again) == 5
    assert [p.reason for p in again.groups[0].partitions] == ["would-rewind"]
    assert scene.b.groups["g"].commits == standing
