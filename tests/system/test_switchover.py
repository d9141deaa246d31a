"""The shipped switchover under live traffic of ordinary users: nothing is lost and nothing is read again."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

from tests.system.pair import Pair
from tests.system.switching import Applications, rights


def test_a_switchover_under_transactional_traffic_loses_nothing_and_reads_nothing_again(
    mm2: Pair, tmp_path: Path
) -> None:
    topic, group = mm2.create_topic("a", mm2.name("t.switch"), 3), mm2.name("switch")
    mm2.expected["b"].update({topic, "failover-canary"})
    with rights(mm2, [topic], group), Applications(mm2, tmp_path, topic, group) as applications:
        applications.start("consumers", "a")
        applications.start("producers", "a")
        mm2.a.until(
            lambda: len(applications.written) >= 200 and applications.read.total() >= 100, what="traffic", seconds=90
        )
        mm2.wait_mirrored(topic)
        ran = mm2.run_cli(
            *("--set", f"a->b.topics={re.escape(topic)}"),  # the pair's other topics are other tests' own
            "run",
            "switchover",
            "--yes",
            "--self-approve",
            *("--var", f"groups={group}", "--var", "replication=manual", "--var", "come_back=60s"),
            *("--var", f"hook={sys.executable},{applications.hook},{tmp_path}"),
            "--format",
            "json",
            state=tmp_path / "state",
            seconds=200,
        )
        assert ran.code == 0, ran.err
        record = json.loads(ran.out)
        moved = len(applications.written)
        applications.wait(lambda: len(applications.written) >= moved + 100, "traffic on the standby", seconds=90)
        applications.stop("producers", "b")
        applications.wait(
            lambda: not Counter(applications.written) - applications.read, "the group reads what there is", seconds=90
        )
        applications.stop("consumers", "b")
        assert applications.faults == []
        assert applications.called == [
            "stop producers a",
            "stop consumers a",
            "start consumers b",
            "start producers b",
        ]
        # The real MirrorMaker 2 copies what was aborted like any other record: the standby's consumers meet those that
        # no committed record followed. Nothing else comes beside what was written, and nothing twice.
        assert applications.read - Counter(applications.written) <= Counter(set(applications.aborted))
    results = {step["id"]: step.get("result", {}) for step in record["steps"]}
    assert results["plan"]["reread"] == results["plan"]["skipped"] == 0
    assert results["mirror-finishes"]["records"] == 0
    assert results["consumers-back"]["back"] == 1
    assert results["prepare-topics"]["created"] == [topic]
    # the fence stands until somebody takes it away: the old primary must not be written to
    assert results["fence"]["acls"] >= 1
