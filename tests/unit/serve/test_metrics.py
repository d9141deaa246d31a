"""The metrics page, read back by Prometheus' own parser: names that dashboards ask for, and the values behind them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from failover.replication.snapshot import CheckpointsNow, FlowNow
from failover.replication.switch import Target
from failover.serve.checkpoint_metrics import CheckpointMetrics, checkpoint_health
from failover.serve.metrics import Metrics, jmx
from tests.unit.serve.scenes import NOW, SECRET, board, checkpoints, flow, partition

Samples = dict[str, list[tuple[dict[str, str], float]]]
SOURCE = "A->B.MirrorSourceConnector"


def samples(text: str) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def page(tmp_path: Path, seen: FlowNow | None) -> Samples:
    return samples(Metrics(board(tmp_path, seen), clock=lambda: NOW).render())


def one(found: Samples, name: str, **labels: str) -> float:
    values = [value for sample, value in found[name] if labels.items() <= sample.items()]
    assert len(values) == 1, (name, labels, found[name])
    return values[0]


def test_mirror_makers_metrics_have_the_names_that_strimzis_rules_give_them(tmp_path):
    found = page(tmp_path, flow())
    place = {"source": "A", "target": "B", "topic": "A.orders", "partition": "0"}
    mirror = "kafka_connect_mirror_mirrorsourceconnector"
    expected = {"record_count": 40, "record_rate": 40 / 1000, "byte_count": 4000, "byte_rate": 4.0}
    expected |= {"record_age_ms": 5, "record_age_ms_min": 1, "record_age_ms_max": 9, "record_age_ms_avg": 4}
    expected |= {"replication_latency_ms": 7, "replication_latency_ms_avg": 6}
    assert {name: one(found, f"{mirror}_{name}", **place) for name in expected} == expected
    latency = "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms"
    assert one(found, f"{latency}_avg", source="A", target="B") == 15
    # JMX puts what holds a > in quotation marks, and the dashboards ask for it so
    quoted = {"connector": f'"{SOURCE}"', "task": "0"}
    assert one(found, "kafka_connect_source_task_source_record_poll_total", **quoted) == 123
    assert one(found, "kafka_connect_source_task_source_record_write_total", **quoted) == 120
    assert one(found, "kafka_connect_source_task_source_record_active_count", **quoted) == 3
    assert one(found, "kafka_connect_connector_task_batch_size_avg", **quoted) == 10
    assert one(found, "kafka_connect_connector_task_offset_commit_avg_time_ms", **quoted) == 5
    assert one(found, "kafka_connect_connector_task_offset_commit_success_percentage", **quoted) == 0.9
    assert one(found, "kafka_connect_worker_connector_count") == 3
    assert one(found, "kafka_connect_worker_task_count") == 3
    client = '"A->B|MirrorSourceConnector-0|replication-consumer"'
    lag = {"clientid": client, "topic": "orders", "partition": "1"}
    assert one(found, "kafka_consumer_fetch_manager_records_lag", **lag) == 7
    assert one(found, "kafka_consumer_incoming_byte_total", clientid=client) == 12300
    producer = '"connector-producer-A->B.MirrorSourceConnector-0"'
    assert one(found, "kafka_producer_outgoing_byte_total", clientid=producer) == 12000
    assert one(found, "kafka_producer_buffer_available_bytes", clientid=producer) == 700


def test_what_guides_query_is_there_verbatim(tmp_path):
    found = page(tmp_path, flow())
    plain = {"connector": SOURCE, "task": "0"}
    assert one(found, "kafka_connect_source_record_poll_total", **plain) == 123
    assert one(found, "kafka_connect_source_record_write_total", **plain) == 120
    assert one(found, "kafka_connect_batch_size_avg", **plain) == 10
    assert one(found, "kafka_consumer_lag", group="mirrormaker2-cluster-B", topic="orders", partition="1") == 7
    assert NOW - one(found, "kafka_heartbeat_timestamp_seconds", source="A") / 1000 == pytest.approx(0.5)
    assert NOW - one(found, "failover_heartbeat_timestamp_seconds", source="A") == pytest.approx(0.5)
    status = {sample["connector"]: sample["status"] for sample, _ in found["kafka_connect_connector_status"]}
    assert list(status.values()) == ["running"] * 3


def test_our_own(tmp_path):
    found = page(tmp_path, flow())
    ends = {"source": "A", "target": "B"}
    assert one(found, "failover_lag_records", **ends, topic="orders", partition="1") == 7
    assert one(found, "failover_lag_seconds", **ends, topic="orders", partition="1") == 3.5
    assert math.isnan(one(found, "failover_lag_records", **ends, topic="pay.ments", partition="0"))
    assert one(found, "failover_rpo_records", **ends) == 7  # of what is known
    assert one(found, "failover_rpo_seconds", **ends) == 3.5
    assert one(found, "failover_batches_total", **ends, path="passed") == 10
    assert one(found, "failover_batches_total", **ends, path="coalesced") == 0
    assert one(found, "failover_offsets_dropped_total", **ends) == 3
    assert one(found, "failover_faults_total", **ends, side="target", code="NOT_LEADER_OR_FOLLOWER") == 2
    assert one(found, "failover_last_answer_timestamp_seconds", **ends, side="source") == NOW - 1
    assert one(found, "failover_heartbeat_copied_timestamp_seconds", **ends) == NOW - 1.5
    assert one(found, "failover_groups", **ends) == 2
    assert one(found, "failover_groups_ready", **ends) == 1
    assert one(found, "failover_checkpoint_positions", **ends, precision="bounded") == 1
    assert one(found, "failover_checkpoint_age_seconds", **ends, group="billing") == 2
    assert one(found, "failover_checkpoint_age_seconds", **ends, group="young") == math.inf


@pytest.mark.parametrize(
    ("change", "halted", "state"),
    [
        ({}, False, "copying"),
        ({"open": False}, False, "starting"),
        ({"open": False}, True, "stopped"),
        ({"reason": "refused"}, False, "standing_still"),
        ({"reason": "refused", "open": False}, True, "standing_still"),
    ],
)
def test_partitions_are_counted_by_what_they_do(tmp_path, change, halted, state):
    found = page(tmp_path, flow(partition(**change), halted=halted))
    counts = {sample["state"]: value for sample, value in found["failover_partitions"]}
    assert counts == {"copying": 0, "starting": 0, "standing_still": 0, "stopped": 0} | {state: 1}


def test_rpo_is_unknown_while_nothing_is_known_and_nothing_where_nothing_is_mirrored(tmp_path):
    unknown = flow(partition(upstream=-1, lag=math.nan, seconds=math.nan))
    assert all(map(math.isnan, (unknown.rpo_records, unknown.rpo_seconds)))
    silent = msgspec.structs.replace(flow(), heard={"source": NOW - 90})
    assert (flow().rpo_seconds, silent.rpo_seconds) == (3.5, 90)
    none = msgspec.structs.replace(flow(), partitions=())
    assert (none.rpo_records, none.rpo_seconds) == (0.0, 0.0)


def test_a_paused_and_a_failed_connector_show(tmp_path):
    made = board(tmp_path, flow())
    switch = made.connectors[SOURCE].switch
    switch.turn(Target.PAUSED)
    switch.obeyed(Target.PAUSED)
    metrics = Metrics(made, clock=lambda: NOW)
    found = samples(metrics.render())
    assert one(found, "kafka_connect_connector_status", connector=f'"{SOURCE}"', status="paused") == 1
    assert one(found, "kafka_connect_worker_connector_paused_task_count", connector=f'"{SOURCE}"') == 1
    made.flows["A->B"].failed(ValueError("no"), again=False)
    found = samples(metrics.render())
    assert {sample["status"] for sample, _ in found["kafka_connect_connector_status"]} == {"failed"}
    assert one(found, "failover_flow_up", source="A", target="B") == 0
    assert "failover_lag_records" not in found


def test_hostile_group_names_and_those_that_look_alike_cost_nothing(tmp_path):
    hostile = {'a"} 1\nfailover_up 0 #\\': 1000, "x\udcff": 2000, "x\\udcff": 3000}
    found = page(tmp_path, flow(checkpoints=checkpoints(hostile)))
    groups = {sample["group"] for sample, _ in found["failover_checkpoint_age_seconds"]}
    assert groups == {'a"} 1\nfailover_up 0 #\\', "x\\udcff"}
    assert "failover_up" not in found


def test_no_sample_comes_twice_and_no_secret_at_all(tmp_path):
    text = Metrics(board(tmp_path, flow()), clock=lambda: NOW).render()
    lines = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines))
    assert SECRET not in text


def test_one_that_does_not_lead_says_no_more_than_that():
    look: dict[str, CheckpointsNow | None] = {"seen": None}
    metrics = CheckpointMetrics("A", "B", lambda _: look["seen"], clock=lambda: NOW)
    assert one(samples(metrics.render()), "failover_flow_up") == 0
    look["seen"] = checkpoints(leader=False)
    found = samples(metrics.render())
    assert one(found, "failover_checkpoint_leader") == 0
    assert "failover_checkpoint_age_seconds" not in found
    look["seen"] = checkpoints()
    assert one(samples(metrics.render()), "failover_checkpoint_age_seconds", group="billing") == 2


@pytest.mark.parametrize(
    ("seen", "health"),
    [
        (None, "starting"),
        (checkpoints(cycled=0), "starting"),
        (checkpoints(), "healthy"),
        (checkpoints(cycled=int(NOW * 1000) - 61_000), "unhealthy"),
        (checkpoints(cycled=int(NOW * 1000) - 61_000, interval=30.0), "healthy"),
        (checkpoints(leader=False, cycled=0), "healthy"),
    ],
)
def test_health_of_a_checkpointer(seen, health):
    assert checkpoint_health(seen, NOW) == health


@pytest.mark.parametrize(
    ("value", "shown"), [("plain.name-1", "plain.name-1"), ("A->B", '"A->B"'), ('a"*?\\', '"a\\"\\*\\?\\\\"')]
)
def test_values_are_quoted_as_jmx_does(value, shown):
    assert jmx(value) == shown


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:kafka|failover|process)_[a-z0-9_]+\b", expression))


def test_the_dashboard_and_the_alerts_ask_for_nothing_that_is_not_there(tmp_path):
    docs = Path(__file__).parents[3] / "docs/grafana"
    asked = names_in((docs / "alerts.yml").read_text())
    dashboard = json.loads((docs / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            asked |= names_in(target["expr"])
    served = set(page(tmp_path, flow()))
    process = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
    assert asked - process - served == set()
    assert len(asked) > 10
