"""Playbooks on real brokers: what a fence does to ordinary users, and offsets committed and put back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from failover.lab import ADMIN, APP
from failover.model.names import TopicPartition
from failover.model.records import WindowRequest
from failover.model.rights import AclBinding
from tests.system.inventory_side import cluster
from tests.system.pair import Pair

PRODUCE = """
import json, sys
from confluent_kafka import Producer
said = []
producer = Producer({**json.loads(sys.argv[1]), "message.timeout.ms": 8000}, logger=__import__("logging").getLogger())
told = lambda error, _: said.append("written" if error is None else error.name())
producer.produce(sys.argv[2], b"x", on_delivery=told)
producer.flush(15)
print(said[0])
"""


def steps(*lines: str) -> str:
    listed = "\n".join(f"  - {{id: s{number}, title: Step {number}, {line}}}" for number, line in enumerate(lines))
    return f"name: tried\ndescription: Tried on real brokers.\nsteps:\n{listed}\n"


class Scene:
    """Runs playbooks on the pair and gives the record of the run."""

    def __init__(self, pair: Pair, folder: Path, config: Path | None = None) -> None:
        self.pair, self.folder, self.config = pair, folder, config

    def run(self, playbook: str, code: int) -> dict[str, Any]:
        path = self.folder / "book.yaml"
        path.write_text(playbook)
        ran = self.pair.run_cli(
            "run", str(path), "--yes", "--self-approve", "--format", "json", state=self.folder, config=self.config
        )
        assert ran.code == code, ran.err
        record: dict[str, Any] = json.loads(ran.out)
        return record


def result(record: dict[str, Any], number: int) -> Any:
    return record["steps"][number]["result"]


def test_a_fence_keeps_ordinary_users_out_is_proved_and_leaves_nothing_behind(pair: Pair, tmp_path: Path) -> None:
    topic = pair.create_topic("a", pair.name("t.fenced"))
    settings = pair.lab.client_settings("a", user=APP, mechanism="SCRAM-SHA-512")
    login = (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{APP}" password="{pair.lab.state.passwords[APP]}";'
    )
    config = pair.config_path(user=ADMIN, added={"failover.cluster.a.sasl.jaas.config": login})
    rights = [
        AclBinding("topic", "literal", topic, f"User:{APP}", "*", "ALLOW", right)
        for right in ("READ", "WRITE", "DESCRIBE")
    ]
    rights += [
        AclBinding("cluster", "literal", "kafka-cluster", f"User:{APP}", "*", "ALLOW", right)
        for right in ("ALTER", "DESCRIBE", "DESCRIBE_CONFIGS")
    ]
    script = tmp_path / "produce.py"
    script.write_text(PRODUCE)
    produce = json.dumps([sys.executable, str(script), json.dumps(settings), topic])
    only = f"with: {{topics: [{topic}]}}"
    with cluster(pair, "a") as source:
        before = source.acls()
        assert set(source.create_acls(rights).values()) == {None}
        try:
            record = Scene(pair, tmp_path, config).run(
                steps(
                    f"uses: command, with: {{run: {produce}}}",
                    f"uses: fence, {only}",
                    f"uses: command, with: {{run: {produce}}}",
                    f"uses: verify-fence, with: {{topics: [{topic}], watch: 2s}}",
                    "uses: command, with: {run: [no-such-program]}",
                ),
                4,
            )
            assert record["outcome"] == "undone"
            noted = (tmp_path / "playbook-runs" / record["id"] / "journal.ndjson").read_text()
            found = [json.loads(line) for line in noted.splitlines()]
            results = {event["step"]: event["result"] for event in found if event["event"] == "succeeded"}
            assert results["s0"]["output"] == "written"
            assert (results["s1"]["proved"], results["s1"]["acls"]) == (True, 1)  # other ACLs name the topic
            assert results["s2"]["output"] == "TOPIC_AUTHORIZATION_FAILED"
            after = source.acls()
            assert isinstance(before, tuple)
            assert isinstance(after, tuple)
            assert set(after) - set(before) == set(rights)
        finally:
            assert set(source.delete_acls(rights).values()) == {None}
    assert sum(end for _, end in pair.ends("a", topic).values()) == 1


@pytest.mark.usefixtures("mm2")
def test_offsets_are_committed_put_back_on_failure_and_stay_when_all_goes_well(pair: Pair, tmp_path: Path) -> None:
    topic, group = pair.create_topic("a", pair.name("t.moved")), pair.name("moved")
    pair.produce("a", topic, 60)
    remote = pair.wait_mirrored(topic)
    pair.commit("a", group, {(topic, 0): 40})
    moves = (
        "uses: replication-lag, timeout: 60s, with: {records: 100000}",
        f"uses: plan, with: {{groups: [{group}], all_ready: true}}",
        "uses: wait-inactive, with: {plan: '{{ steps.s1.plan_id }}'}",
        "uses: execute, with: {plan: '{{ steps.s1.plan_id }}', settle: 0s}",
        "uses: verify, with: {execution: '{{ steps.s3.execution_id }}'}",
    )
    scene = Scene(pair, tmp_path)
    record = scene.run(steps(*moves, "uses: command, with: {run: [no-such-program]}"), 4)
    assert record["outcome"] == "undone"
    assert record["steps"][3]["status"] == "undone"
    assert pair.committed("b", group) == {}
    record = scene.run(steps(*moves), 0)
    assert result(record, 3)["outcome"] == "done"
    assert result(record, 4) == {"held": 1, "back": 0, "groups": 1}
    assert pair.committed("b", group) == {TopicPartition(remote, 0): 40}
    shown = pair.run_cli("show", record["id"], "--format", "json", state=tmp_path)
    assert json.loads(shown.out) == record


def test_what_an_aborted_transaction_left_at_the_end_is_not_waited_for(pair: Pair, tmp_path: Path) -> None:
    topic, group = pair.create_topic("a", pair.name("t.aborted")), pair.name("aborted")
    pair.produce("a", topic, 20, transactions=((10, True), (10, False)))
    tp = TopicPartition(topic, 0)
    [(_, end)] = pair.ends("a", topic).values()
    with cluster(pair, "a") as source:
        asked = WindowRequest("source", tp, 0, end)
        every, committed = (source.windows([asked], committed=only)[asked] for only in (False, True))
    assert (len(every.records), len(committed.records)) == (20, 10)
    assert [record.offset for record in committed.records] == list(range(10))
    assert committed.covered_to == end
    pair.commit("a", group, {(topic, 0): 10})
    record = Scene(pair, tmp_path).run(
        steps(f"uses: wait-drained, timeout: 20s, with: {{groups: [{group}], with_members: false}}"), 0
    )
    assert result(record, 0)["groups"] == 1
