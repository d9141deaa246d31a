"""The shipped switchover made to fail behind one of its steps, and what both clusters hold before and after."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from failover.runbook.library import find_playbook, playbook_text
from tests.system.inventory_side import cluster
from tests.system.pair import Pair, Ran
from tests.system.replicating import Flow
from tests.system.rest_side import Rest
from tests.system.runbook_kills import ANSWERED, Place
from tests.system.switching import rights

SETTINGS = ("cleanup.policy", "max.message.bytes", "min.insync.replicas", "retention.ms")
BROKEN = """
  - id: breaks
    title: Break
    uses: verify
    with:
      execution: e-no-such
"""
HOOK = """
import pathlib, sys
with pathlib.Path(sys.argv[1]).open("a") as log:
    log.write(" ".join(sys.argv[2:]) + "\\n")
"""


class Standing(NamedTuple):
    """Is what both clusters hold of a flow, and how its connectors are."""

    acls: dict[str, frozenset[Any]]
    settings: dict[str, Any]
    committed: dict[str, dict[Any, int]]
    connectors: dict[str, str]


def connector_states(rest: Rest, flow: Flow) -> dict[str, str]:
    """Gives the states of a flow's connectors; the replicator also beats for the opposite flow."""
    return {name: rest.state(name)[0] for name in rest.get("/connectors") if name.startswith(f"{flow.name}.")}


class Failing:
    """Is a flow that the replicator copies, with a group that stands in the middle and users that lack rights on b."""

    def __init__(self, flow: Flow, topic: str, group: str, url: str, folder: Path) -> None:
        self.pair, self.flow, self.topic, self.group = flow.pair, flow, topic, group
        self.rest, self.place = Rest(url), Place(flow.pair, flow.config, folder)
        self._hook = folder / "hook.py"
        self._hook.write_text(HOOK)
        self._called = folder / "called"
        self._variables = (
            *("--var", f"groups={group}", "--var", f"connect_url={url}", "--var", "come_back=1s"),
            *("--var", f"hook={sys.executable},{self._hook},{self._called}"),
        )

    def broken(self, after: str) -> Path:
        """Writes the playbook with a step that fails behind one of its own."""
        text, _ = playbook_text("switchover")
        heads = [(found[1], found.start()) for found in re.finditer(r"(?m)^  - id: (\S+)$", text)]
        at = next((start for name, start in heads if start > dict(heads)[after]), len(text))
        path = self.place.folder / f"after-{after}.yaml"
        path.write_text(text[:at].rstrip("\n") + "\n" + BROKEN + "\n" + text[at:])
        return path

    def run(self, after: str) -> tuple[Ran, dict[str, Any]]:
        """Runs it; gives what was printed and the record."""
        ran = self.pair.run_cli(
            "run", str(self.broken(after)), *self._variables, *ANSWERED,
            config=self.flow.config, state=self.place.state, seconds=120,
        )  # fmt: skip
        assert "outcome" in ran.out, ran.err
        record: dict[str, Any] = json.loads(ran.out)
        return ran, record

    def run_killed(self, after: str, *, wanted: str, code: int) -> dict[str, Any]:
        """Runs it, killed at every moment that matches and resumed."""
        return self.place.run(str(self.broken(after)), *self._variables, wanted=wanted, code=code)

    @property
    def called(self) -> list[str]:
        return self._called.read_text().splitlines() if self._called.exists() else []

    def standing(self) -> Standing:
        sides = {"a": [self.topic], "b": [self.flow.remote(self.topic)]}
        acls, settings = {}, {}
        for alias, topics in sides.items():
            with cluster(self.pair, alias) as one:
                found = one.acls()
                assert isinstance(found, tuple)
                acls[alias] = frozenset(found)
                settings[alias] = one.topic_settings(topics, SETTINGS)
        return Standing(
            acls,
            settings,
            {alias: dict(self.pair.committed(alias, self.group)) for alias in sides},
            connector_states(self.rest, self.flow),
        )

    def undone(self, after: str) -> dict[str, Any]:
        """Has the run fail behind a step before the point of no return: all is as it was, code and record say so."""
        before = self.standing()
        ran, record = self.run(after)
        statuses = {step["id"]: step["status"] for step in record["steps"]}
        assert "stuck" not in statuses.values(), ran.err
        changed = "undone" in statuses.values()
        assert (ran.code, record["outcome"]) == ((4, "undone") if changed else (2, "failed")), ran.err
        assert statuses["breaks"] == "failed"
        names = list(statuses)
        assert set(list(statuses.values())[names.index("breaks") + 1 :]) <= {"waiting"}
        assert self.standing() == before
        assert record.get("final", "") == ""
        return record


@contextmanager
def failing(pair: Pair, folder: Path) -> Iterator[Failing]:
    """Gives such a flow; afterwards the ACLs are as they were."""
    topic, group = pair.create_topic("a", pair.name("broken"), 2), pair.name("broken")
    pair.expected["b"].update({topic, "failover-canary"})
    for partition in (0, 1):
        pair.produce("a", topic, 40, partition=partition)
    pair.commit("a", group, {(topic, 0): 20, (topic, 1): 30})
    flow = Flow(pair, re.escape(topic))
    with rights(pair, [topic], group), flow.worker("--rest", "127.0.0.1:0") as worker:
        (line,) = worker.says("REST on http://", seconds=90)
        pair.wait_mirrored(topic, flow=flow.source, seconds=90)
        yield Failing(flow, topic, group, line.rpartition(" ")[2], folder)


def positions() -> list[str]:
    """Gives the switchover's steps before the point of no return."""
    steps = find_playbook("switchover").steps
    final = next(number for number, step in enumerate(steps) if step.final)
    return [step.id for step in steps[:final]]
