"""A flow onto a Connect cluster: names kept, secrets masked, what is wrong said first."""

from __future__ import annotations

from pathlib import Path

import pytest

from failover.config.flow import FlowConfig
from failover.config.secret import MASK
from failover.connect.access import ConnectAccess
from failover.connect.client import ConnectClient
from failover.connect.deploying import deploy, prepare
from failover.errors import ConnectRefused, OperatorOwns
from failover.report.connect_text import deployment_text
from failover.report.encode import to_json
from tests.unit.config.build import load
from tests.unit.connect.fake_connect import SOURCE, FakeConnect

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="m" password="hunter2";'
TEXT = f"""
clusters = a, b
a.bootstrap.servers = a:9092
b.bootstrap.servers = b:9092
a.security.protocol = SASL_SSL
a.sasl.jaas.config = {JAAS}
a->b.enabled = true
a->b.topics = orders.*
a->b.groups = app.*
b.producer.batch.size = 131072
b.offset.flush.interval.ms = 5000
tasks.max = 4
"""
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


@pytest.fixture
def flow(tmp_path: Path) -> FlowConfig:
    [found] = [flow for flow in load(tmp_path, TEXT).flows if flow.enabled]
    return found


@pytest.fixture
def client(fake: FakeConnect) -> ConnectClient:
    return ConnectClient(ConnectAccess((fake.url,)), sleep=lambda _: None)


def put(fake: FakeConnect, client: ConnectClient, flow: FlowConfig) -> dict[str, dict[str, str]]:
    deploy(client, prepare(client, flow), say=lambda _: None)
    return {name: one["config"] for name, one in fake.connectors.items()}


def test_three_connectors_with_what_the_driver_would_give_them(fake, client, flow):
    made = put(fake, client, flow)
    assert set(made) == {"a-b-source", "a-b-checkpoint", "a-b-heartbeat"}
    source = made["a-b-source"]
    assert source["connector.class"] == SOURCE
    assert [source[f"{part}.converter"] for part in ("key", "value", "header")] == [BYTES] * 3
    assert source["topics"] == "orders.*"
    assert source["tasks.max"] == "4"
    assert source["source.cluster.sasl.jaas.config"] == JAAS
    assert source["producer.override.batch.size"] == "131072"
    assert made["a-b-checkpoint"]["groups"] == "app.*"
    assert made["a-b-heartbeat"]["target.cluster.bootstrap.servers"] == "b:9092"
    assert not {"groups", "enabled", "source.cluster.offset.flush.interval.ms"} & source.keys()
    assert "topics" not in made["a-b-heartbeat"]


def test_a_second_deployment_changes_nothing(fake, client, flow):
    put(fake, client, flow)
    again = prepare(client, flow).deployment
    assert [step.action for step in again.steps] == ["none"] * 3
    assert again.to_do == ()


def test_running_connectors_keep_their_names(fake, client, flow):
    """A stored position goes by the connector's name."""
    fake.add("mm2-src", {"connector.class": SOURCE, "source.cluster.alias": "a", "target.cluster.alias": "b"})
    found = prepare(client, flow, prefix="new").deployment
    assert [(step.name, step.action) for step in found.steps] == [
        ("mm2-src", "update"),
        ("new-checkpoint", "create"),
        ("new-heartbeat", "create"),
    ]


def test_secrets_are_in_no_text_also_where_connect_repeats_them(fake, client, flow):
    fake.errors = {"source.cluster.sasl.jaas.config": [f"Invalid value {JAAS}"]}
    found = prepare(client, flow).deployment
    assert found.invalid
    for text in (deployment_text(found), to_json(found), repr(found)):
        assert "hunter2" not in text
        assert MASK in text
    fake.errors = {}
    ready = prepare(client, flow)
    fake.answer = (400, b'{"message": "bad ' + JAAS.replace('"', '\\"').encode() + b'"}')
    with pytest.raises(ConnectRefused, match="bad") as raised:
        deploy(client, ready, say=lambda _: None)
    assert "hunter2" not in str(raised.value)


def test_strimzi_s_connectors_are_left_to_strimzi(fake, client, flow):
    fake.add_flow(strimzi=True)
    with pytest.raises(OperatorOwns, match="Strimzi"):
        prepare(client, flow)


def test_two_connectors_of_one_kind_are_not_guessed_between(fake, client, flow):
    for name in ("x", "y"):
        fake.add(name, {"connector.class": SOURCE, "source.cluster.alias": "a", "target.cluster.alias": "b"})
    with pytest.raises(ConnectRefused, match="two source connectors, x and y"):
        prepare(client, flow)


def test_heartbeats_switched_off_leave_a_running_connector_alone(fake, client, tmp_path):
    fake.add_flow()
    [flow] = load(tmp_path, TEXT + "a->b.emit.heartbeats.enabled = false\n").enabled_flows
    found = prepare(client, flow).deployment
    assert [step.kind for step in found.steps] == ["source", "checkpoint"]
    assert found.extra == ("a-b-heartbeat",)
    assert "a-b-heartbeat" in deployment_text(found)


def test_workers_without_mirror_maker_are_told_what_they_lack(fake, client, flow):
    fake.plugins = [SOURCE]
    with pytest.raises(ConnectRefused, match="no checkpoint connector") as raised:
        prepare(client, flow)
    assert "plugin.path" in raised.value.hint


def test_new_connectors_can_be_made_without_running(fake, client, flow):
    ready = prepare(client, flow, stopped=True)
    deploy(client, ready, say=lambda _: None)
    assert fake.states() == dict.fromkeys(("a-b-source", "a-b-checkpoint", "a-b-heartbeat"), "STOPPED")
    assert fake.connectors["a-b-source"]["config"]["topics"] == "orders.*"
    fake.version = "3.6.2"
    with pytest.raises(ConnectRefused, match=r"runs Kafka 3\.6\.2"):
        prepare(client, flow, stopped=True)
