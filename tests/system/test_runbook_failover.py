"""The shipped failover after the source's death: nothing skipped, as much read again as was said, the loss told."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.system.pair import Pair
from tests.system.switching import Applications


@pytest.mark.timeout(400)
def test_the_source_dies_and_the_shipped_failover_moves_the_applications(breakable: Pair, tmp_path: Path) -> None:
    pair = breakable
    topic, group = pair.create_topic("a", pair.name("t.dies"), 2), pair.name("dies")
    pair.lab.start_mirror()
    copied = {record.value for part in (0, 1) for record in pair.produce("a", topic, 400, partition=part)}
    with Applications(pair, tmp_path, topic, group) as applications:
        applications.start("consumers", "a")
        pair.a.until(lambda: applications.read.total() >= len(copied), what="the group reads", seconds=90)
        applications.stop("consumers", "a")
        before = Counter(applications.read)
        assert before.keys() == copied
        remote = pair.wait_mirrored(topic, seconds=90)
        for part in (0, 1):
            pair.wait_checkpoint(group, topic, part, seconds=90)
        pair.lab.kill("mm2")
        only_there = {record.value for record in pair.produce("a", topic, 30)}  # nobody has these any more
        pair.lab.kill("a")

        ran = pair.run_cli(
            *("--set", f"a->b.topics={re.escape(topic)}", "--timeout", "3s"),
            *("run", "failover", "--yes", "--self-approve"),
            *("--var", f"groups={group}", "--var", "come_back=90s"),
            *("--var", f"hook={sys.executable},{applications.hook},{tmp_path}"),
            *("--format", "json"),
            state=tmp_path / "state",
            seconds=240,
        )
        assert ran.code == 0, ran.err
        record = json.loads(ran.out)
        results = {step["id"]: step.get("result", {}) for step in record["steps"]}
        assert results["prepare-topics"]["created"] == [topic]
        assert len(pair.ends("b", topic)) == 2
        assert results["plan"]["skipped"] == 0
        assert results["consumers-back"]["back"] == 1

        # from the plan's offsets to the copies' ends: all of that had been read once
        planned = pair.run_cli("show", results["plan"]["plan_id"], "--format", "json", state=tmp_path / "state").json()
        partitions = [p for found in planned["groups"] for p in found["partitions"] if p["topic"] == remote]
        forecast = sum(p["reread_max"] for p in partitions)
        assert planned["summary"]["reread_max"] == forecast

        def again() -> int:
            return sum(applications.read[value] - before[value] for value in copied)

        pair.b.until(
            lambda: again() >= forecast and len(applications.written) >= 100, what="the group is through", seconds=90
        )
        applications.stop("producers", "b")
        pair.b.until(
            lambda: all(applications.read[value] for value in applications.written), what="all is read", seconds=90
        )
        applications.stop("consumers", "b")
        assert applications.faults == []
        assert again() == forecast
        assert {value: applications.read[value] for value in applications.written} == dict.fromkeys(
            applications.written, 1
        )
        assert not applications.read.keys() & only_there
    told = {one["what"]: one for one in record["outages"]}
    assert {what: (one.get("out", ""), one["back"]) for what, one in told.items()} == {
        "producers": ("", "move-producers"),
        "consumers": ("", "consumers-back"),
    }
    shown = pair.run_cli("show", record["id"], state=tmp_path / "state")
    assert "Without service: producers " in shown.out
    assert "(the run's beginning to move-producers)" in re.sub(r"\s+", " ", shown.out)
