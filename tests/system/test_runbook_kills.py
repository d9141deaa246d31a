"""The shipped switchover with the replicator stopped by its REST, killed three times with -9 on its way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.system.pair import Pair
from tests.system.replicating import Flow
from tests.system.rest_side import Rest
from tests.system.runbook_kills import Place, switched
from tests.system.runbook_undo import connector_states
from tests.system.switching import Applications, rights

MOMENTS = ("succeeded fence before", "succeeded execute before", "succeeded move-producers before")
"""Shut, written, beyond the point of no return: and nobody knows."""


@pytest.mark.timeout(400)
def test_a_switchover_killed_three_times_reads_each_record_once(pair: Pair, tmp_path: Path) -> None:
    topic, group = pair.create_topic("a", pair.name("killed"), 3), pair.name("killed")
    pair.expected["b"].update({topic, "failover-canary"})
    # What the fence cut off is aborted, and some of it comes behind the group's last commit.
    flow = Flow(pair, re.escape(topic), {"{source}.consumer.isolation.level": "read_committed"})
    aliases = (flow.source, flow.target)
    with (
        rights(pair, [topic], group),
        flow.worker("--rest", "127.0.0.1:0") as worker,
        Applications(pair, tmp_path, topic, group, aliases=aliases) as applications,
    ):
        (line,) = worker.says("REST on http://", seconds=90)
        url = line.rpartition(" ")[2]
        applications.start("consumers", flow.source)
        applications.start("producers", flow.source)
        pair.a.until(
            lambda: len(applications.written) >= 200 and applications.read.total() >= 100, what="traffic", seconds=90
        )
        pair.wait_mirrored(topic, flow=flow.source, seconds=90)
        place = Place(pair, flow.config, tmp_path)
        record = switched(
            place, applications, group, "--var", f"connect_url={url}", wanted="|".join(map(re.escape, MOMENTS))
        )
        assert place.met == list(MOMENTS)
        assert record["operators"] != []
        # the replicator is stopped, and nothing of it runs beside the applications on the standby
        states = connector_states(Rest(url), flow)
        assert set(states.values()) == {"STOPPED"}
        results = {step["id"]: step.get("result", {}) for step in record["steps"]}
        assert set(results["stop-mirror"]["stopped"]) == set(states)
