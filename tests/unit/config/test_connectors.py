"""Connectors' own configurations, in the shapes that guides and vendors use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from failover.config.flow import Config
from failover.config.load import load_config, select_flow
from failover.errors import ConfigError

PACKAGE = "org.apache.kafka.connect.mirror"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
SHARED = {
    "source.cluster.alias": "us",
    "target.cluster.alias": "eu",
    "source.cluster.bootstrap.servers": "us:9092",
    "target.cluster.bootstrap.servers": "eu:9092",
    "key.converter": BYTES,
    "value.converter": BYTES,
}
SOURCE: dict[str, Any] = {
    "connector.class": f"{PACKAGE}.MirrorSourceConnector",
    **SHARED,
    "tasks.max": 4,
    "topics": "orders,pay.*",
}
CHECKPOINT: dict[str, Any] = {
    "connector.class": f"{PACKAGE}.MirrorCheckpointConnector",
    **SHARED,
    "topics": "orders,pay.*",
    "groups": "customer.*",
    "sync.group.offsets.enabled": True,
    "emit.checkpoints.interval.seconds": 10,
}
HEARTBEAT: dict[str, Any] = {"connector.class": f"{PACKAGE}.MirrorHeartbeatConnector", **SHARED}


def load(tmp_path: Path, *documents: Any, sets: tuple[str, ...] = (), suffix: str = ".json") -> Config:
    paths = []
    for number, document in enumerate(documents):
        path = tmp_path / f"{number}{suffix}"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        paths.append(str(path))
    return load_config(paths, sets)


def notes(config: Config) -> list[tuple[str, str]]:
    return [(note.code, note.key) for note in config.notes]


def test_three_files_are_one_flow(tmp_path):
    config = load(tmp_path, SOURCE, CHECKPOINT, HEARTBEAT)
    selected = select_flow(config)
    assert (selected.name, config.form, list(config.clusters)) == ("us->eu", "connectors", ["us", "eu"])
    flow = selected.flow
    assert (flow.topics, flow.groups, flow.sync_group_offsets_enabled) == (("orders", "pay.*"), ("customer.*",), True)
    assert (flow.emit_checkpoints_interval_seconds, flow.emit_heartbeats_enabled) == (10, True)
    assert flow.connectors["source"].integer("tasks.max") == 4
    assert selected.source_client().bootstrap == (("us", 9092),)
    assert selected.target_client("consumer").bootstrap == (("eu", 9092),)
    assert config.notes == ()


@pytest.mark.parametrize(
    "shape",
    [
        [{"name": "s", "config": SOURCE}, {"name": "c", "config": CHECKPOINT}, {"name": "h", "config": HEARTBEAT}],
        [{"name": "s", **SOURCE}, CHECKPOINT, HEARTBEAT],
        {"s": SOURCE, "c": CHECKPOINT, "h": HEARTBEAT},
        {"connectors": [SOURCE, CHECKPOINT, HEARTBEAT]},
        # GET /connectors?expand=info&expand=status
        {
            "s": {"info": {"name": "s", "config": SOURCE, "tasks": [], "type": "source"}, "status": {"name": "s"}},
            "c": {"info": {"name": "c", "config": CHECKPOINT, "tasks": [], "type": "source"}},
            "h": {"info": {"name": "h", "config": HEARTBEAT, "tasks": [], "type": "source"}},
            "x": {"info": {"name": "x", "config": {"connector.class": "io.acme.Sink"}}},
        },
        # gcloud managed-kafka connectors list --format json
        [
            {"name": "projects/p/locations/l/connectClusters/k/connectors/s", "configs": SOURCE, "state": "RUNNING"},
            {"name": "projects/p/locations/l/connectClusters/k/connectors/c", "configs": CHECKPOINT},
            {"name": "projects/p/locations/l/connectClusters/k/connectors/h", "configs": HEARTBEAT},
        ],
        # aws kafkaconnect
        [
            {"connectorName": "s", "connectorConfiguration": SOURCE, "capacity": {"x": 1}},
            {"connectorName": "c", "connectorConfiguration": CHECKPOINT},
            {"connectorName": "h", "connectorConfiguration": HEARTBEAT},
        ],
    ],
    ids=["bodies", "flat list", "by name", "list", "expand", "google", "amazon"],
)
def test_every_shape_is_the_same_flow(tmp_path, shape):
    plain, other = load(tmp_path, SOURCE, CHECKPOINT, HEARTBEAT), load(tmp_path, shape)
    for kind in ("source", "checkpoint", "heartbeat"):
        given = [select_flow(config).flow.connectors[kind].texts() for config in (plain, other)]
        assert given[0] == given[1]


def test_flat_yaml_as_google_takes_it_with_lines(tmp_path):
    text = "\n".join(
        f"{key}: {str(value).lower() if isinstance(value, bool) else json.dumps(value)}"
        for key, value in SOURCE.items()
    )
    config = load(tmp_path, text, suffix=".yaml")
    flow = select_flow(config).flow
    assert flow.topics == ("orders", "pay.*")
    assert str(flow.connectors["source"]["topics"].origin).endswith("0.yaml:9")


def test_a_connector_that_is_missing_is_as_if_switched_off_and_named(tmp_path):
    config = load(tmp_path, SOURCE)
    flow = select_flow(config).flow
    assert not flow.emit_checkpoints_enabled
    assert not flow.emit_heartbeats_enabled
    assert flow.topics == ("orders", "pay.*")
    assert [note.message for note in config.notes] == [
        "there is no checkpoint connector: there are no checkpoints, and no group's offsets are synced",
        "there is no heartbeat connector: no heartbeats are written; MM2 works without them",
    ]
    alone = load(tmp_path, CHECKPOINT)
    assert alone.enabled_flows == ()
    assert alone.flows[0].groups == ("customer.*",)


def test_two_flows_in_one_cluster(tmp_path):
    back = {**SOURCE, "source.cluster.alias": "eu", "target.cluster.alias": "us"}
    back |= {"source.cluster.bootstrap.servers": "eu:9092", "target.cluster.bootstrap.servers": "us:9092"}
    config = load(tmp_path, [SOURCE, CHECKPOINT, back])
    assert [flow.name for flow in config.enabled_flows] == ["us->eu", "eu->us"]


def test_roles_and_sides(tmp_path):
    source = {**SOURCE, "consumer.isolation.level": "read_committed", "source.consumer.security.protocol": "SSL"}
    selected = select_flow(load(tmp_path, source))
    assert selected.flow.isolation_level == "read_committed"
    assert selected.source_client("consumer").security_protocol == "SSL"
    assert selected.source_client("admin").security_protocol == "PLAINTEXT"


def test_set_lies_over_them_as_over_a_properties_file(tmp_path):
    sets = (
        "us->eu.topics=x",
        "eu.bootstrap.servers=other:1",
        "groups=g",
        "failover.cluster.us.bootstrap.servers=mine:1",
    )
    config = load(tmp_path, SOURCE, CHECKPOINT, sets=(*sets, "failover.state.dir=/s", "failover.mm2.version=3.9"))
    selected = select_flow(config)
    assert (selected.flow.topics, selected.flow.groups) == (("x",), ("g",))
    assert selected.target_client().bootstrap == (("other", 1),)
    assert selected.source_client().bootstrap == (("mine", 1),)
    assert (config.failover.text("state.dir"), config.mm2_version) == ("/s", (3, 9))


def test_what_is_set_and_read_by_nobody_is_named(tmp_path):
    sets = ("topic=x", "failover.state.dri=/s", "sync.group.offsets.enabled=${vault:x:y}")
    config = load(tmp_path, SOURCE, CHECKPOINT, HEARTBEAT, sets=sets)
    assert [(note.code, note.remedy) for note in config.notes] == [
        ("unknown-key", "write topics"),
        ("unknown-key", "write failover.state.dir"),
    ]


def test_own_settings_may_stand_in_a_connector(tmp_path):
    config = load(tmp_path, {**SOURCE, "failover.state.dir": "/s", "failover.state.dri": "/s"})
    assert config.failover.text("state.dir") == "/s"
    assert ("unknown-key", "failover.state.dri") in notes(config)


def test_keys_that_nobody_reads(tmp_path):
    wrong = {
        "task.max": "4",
        "sync.topic.config.enabled": "true",
        "topics.blacklist": "x",
        "topics.regex": "x",
        "producer.overide.acks": "all",
        "source.cluster.bootstrap.server": "x:1",
        "target.cluster.batch.size": "1",
        "bootstrap.servers": "x:1",
        "source.consumer.fetch.min.byte": "1",
        "offset.lag.max": "10  # close",
    }
    found = {note.key: note for note in load(tmp_path, {**SOURCE, **wrong}, CHECKPOINT, HEARTBEAT).notes}
    assert {key: (note.code, note.remedy) for key, note in found.items()} == {
        "task.max": ("unknown-key", "write tasks.max"),
        "sync.topic.config.enabled": ("unknown-key", "write sync.topic.configs.enabled"),
        "topics.blacklist": ("dropped", "write topics.exclude"),
        "topics.regex": ("unofficial", "write topics"),
        "source.cluster.bootstrap.server": ("unknown-key", "write source.cluster.bootstrap.servers"),
        "target.cluster.batch.size": ("not-used", ""),
        "bootstrap.servers": ("unknown-key", "write source.cluster.bootstrap.servers"),
        "source.consumer.fetch.min.byte": ("unknown-key", "write source.consumer.fetch.min.bytes"),
        "offset.lag.max": ("trailing-comment", "put the comment on a line of its own"),
    }


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        (
            [{"connector.class": "io.acme.Sink", "topics": "x"}],
            "none of its connectors is MirrorMaker 2's, only io.acme.Sink",
        ),
        ([SOURCE, {"name": "second", "config": SOURCE}], "us->eu has two source connectors"),
        (
            [{key: value for key, value in SOURCE.items() if key != "source.cluster.alias"}],
            "has no source.cluster.alias",
        ),
        ([{**SOURCE, "target.cluster.alias": "us"}], "has 'us' for both clusters"),
        ([{**SOURCE, "topics": ["a", "b"]}], "topics: a connector's settings are flat texts"),
        ([{"name": "x", "config": {"topics": "a"}}], "x has no connector.class"),
        (["[1, 2]"], "this is no connector's configuration"),
        (['{"a": 1,}'], "0.json:1: is no JSON"),
        (['{"a": 1, "a": 2}'], "a is written twice"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, documents, words):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, *documents)
    assert words in caught.value.message
    assert caught.value.hint


def test_a_running_connect_cluster_is_asked(tmp_path):
    asked = []

    def running(address, typed):
        asked.append((address, typed["failover.connect.user"].text))
        return [{"name": "s", "config": SOURCE}, {"name": "x", "config": {"connector.class": "io.acme.Sink"}}]

    config = load_config("connect+https://h:8083", ["failover.connect.user=me"], running=running)
    assert asked == [("connect+https://h:8083", "me")]
    assert (config.path, select_flow(config).name) == ("connect+https://h:8083", "us->eu")


def test_secrets_show_in_no_text(tmp_path):
    jaas = 'x.PlainLoginModule required username="u" password="hunter2";'
    config = load(
        tmp_path, {**SOURCE, "source.cluster.sasl.jaas.config": jaas, "source.cluster.ssl.key.password": "hunter2"}
    )
    assert "hunter2" not in repr(config) + str(config)


def test_kafka_connector_resources(tmp_path):
    resource = {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaConnector",
        "metadata": {"name": "mirror"},
        "spec": {"class": SOURCE["connector.class"], "tasksMax": 7, "config": SHARED},
    }
    listed = {"apiVersion": "v1", "kind": "List", "items": [resource]}
    for document in (resource, listed):
        flow = select_flow(load(tmp_path, document)).flow
        assert flow.connectors["source"].integer("tasks.max") == 7
    with pytest.raises(ConfigError, match="only ConfigMap"):
        load(tmp_path, {"apiVersion": "v1", "kind": "ConfigMap"})
