from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Mapping

import pytest

from failover.config.clients import ClientSettings
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.topics import (
    ConfigEntry,
    ConfigSource,
    CreatedTopic,
    NewTopic,
    alter_topic_configs,
    create_partitions,
    create_topics,
    describe_broker_configs,
    describe_topic_configs,
)
from failover.model.names import Fault
from tests.unit.wire.fake_broker import SILENT, Answer, Asked, FakeBroker
from tests.unit.wire.test_cluster import metadata

METADATA, CREATE, DESCRIBE, GROW, ALTER = 3, 19, 32, 37, 44
NEWEST = {METADATA: (0, 12), CREATE: (2, 7), DESCRIBE: (1, 4), GROW: (0, 3), ALTER: (0, 1)}
KAFKA_2_4 = {METADATA: (0, 9), CREATE: (0, 5), DESCRIBE: (0, 2), GROW: (0, 1), ALTER: (0, 0)}
FLEXIBLE = {METADATA: 9, CREATE: 5, DESCRIBE: 4, GROW: 2, ALTER: 1}
ID = bytes(range(16))


class Controller:
    """One broker that makes topics; ``limit``: topics it takes in one request; ``errors``: what it answers first."""

    def __init__(
        self,
        *,
        offered: Mapping[int, tuple[int, int]] | None = None,
        limit: int = 1000,
        errors: list[int] | None = None,
    ) -> None:
        self.limit = limit
        self.errors = errors or []
        self.lose_answers = 0
        self.topics: dict[str, tuple[int, int, dict[str, str | None]]] = {}
        self.sizes: list[int] = []
        self.versions: dict[int, int] = {}
        self.validated: list[str] = []
        self.entries: list[ConfigEntry] = []
        self.altered: dict[str, list[tuple[str, int, str | None]]] = {}
        self.broker: FakeBroker = FakeBroker(
            {
                METADATA: self._metadata,
                CREATE: self._create,
                DESCRIBE: self._describe,
                GROW: self._grow,
                ALTER: self._alter,
            },
            NEWEST if offered is None else offered,
            flexible=FLEXIBLE,
        )

    def run(self, work: Callable[[WireCluster], object], *, silence: float = 5) -> object:
        async def inside() -> object:
            async with self.broker:
                settings = ClientSettings((("127.0.0.1", self.broker.port),))
                async with WireCluster(settings, alias="b", silence=silence) as cluster:
                    return await work(cluster)  # type: ignore[misc]

        return asyncio.run(inside())

    def _metadata(self, asked: Asked) -> Answer:
        full = metadata({1: self.broker.port})
        if asked.version >= 10:
            return full
        out = Writer(flexible=True)  # without topics
        out.raw(full[: full.index(b"cluster-id") + len("cluster-id") + 4])
        out.array(0)
        out.int32(-(1 << 31))
        out.tags()
        return bytes(out.data)

    def _begin(self, asked: Asked) -> tuple[Reader, Writer]:
        self.versions[asked.key] = asked.version
        flexible = asked.version >= FLEXIBLE[asked.key]
        out = Writer(flexible=flexible)
        out.int32(0)
        return Reader(asked.body, flexible=flexible), out

    def _create(self, asked: Asked) -> Answer:
        reader, out = self._begin(asked)
        wanted: dict[str, tuple[int, int, dict[str, str | None]]] = {}
        for _ in range(reader.array()):
            name, partitions, factor = reader.string(), reader.int32(), reader.int16()
            assert reader.array() == 0
            configs: dict[str, str | None] = {}
            for _ in range(reader.array()):
                key = reader.string()
                configs[key] = reader.nullable_string()
                reader.tags()
            reader.tags()
            wanted[name] = partitions, factor, configs
        assert reader.int32() == 5000
        validate_only = reader.int8()
        reader.tags()
        assert reader.at == len(asked.body)
        self.sizes.append(len(wanted))
        error = self.errors.pop(0) if self.errors else 44 if len(wanted) > self.limit else 0
        out.array(len(wanted))
        for name, (partitions, factor, configs) in wanted.items():
            number = error or (36 if name in self.topics else 0)
            out.string(name)
            if asked.version >= 7:
                out.raw(ID)
            out.int16(number)
            out.string("said so" if number else None)
            out.int32(partitions)
            out.int16(factor)
            out.array(len(configs))
            for key, value in configs.items():
                out.string(key)
                out.string(value)
                out.raw(b"\0\1\0")
                out.tags()
            out.raw(b"\1\0\2\0\x1d")  # one tagged field: topic_config_error_code
            if validate_only:
                self.validated.append(name)
            elif not number:
                self.topics[name] = partitions, factor, configs
        out.tags()
        if self.lose_answers:
            self.lose_answers -= 1
            return None
        return bytes(out.data)

    def _grow(self, asked: Asked) -> Answer:
        reader, out = self._begin(asked)
        count = reader.array()
        out.array(count)
        for _ in range(count):
            name, partitions = reader.string(), reader.int32()
            if reader.flexible:
                assert reader.uvarint() == 0, "a null array"
            else:
                assert reader.int32() == -1
            reader.tags()
            out.string(name)
            out.int16(37 if partitions <= self.topics[name][0] else 0)
            out.string(None)
            out.tags()
        assert (reader.int32(), reader.int8()) == (5000, 0)
        out.tags()
        return bytes(out.data)

    def _alter(self, asked: Asked) -> Answer:
        reader, out = self._begin(asked)
        count = reader.array()
        out.array(count)
        for _ in range(count):
            kind, topic = reader.int8(), reader.string()
            changes = []
            for _ in range(reader.array()):
                changes.append((reader.string(), reader.int8(), reader.nullable_string()))
                reader.tags()
            reader.tags()
            error = {"gone": 3, "denied": 29}.get(topic, 0)
            if not error:
                self.altered[topic] = changes
            out.int16(error)
            out.string("said so" if error else None)
            out.int8(kind)
            out.string(topic)
            out.tags()
        assert reader.int8() == 0
        reader.tags()
        assert reader.at == len(asked.body)
        out.tags()
        return bytes(out.data)

    def _describe(self, asked: Asked) -> Answer:
        reader, out = self._begin(asked)
        count = reader.array()
        out.array(count)
        for _ in range(count):
            kind, name = reader.int8(), reader.string()
            keys = reader.strings()
            reader.tags()
            out.int16(3 if name == "gone" else 0)
            out.string(None)
            out.int8(kind)
            out.string(name)
            told = [] if name == "gone" else [entry for entry in self.entries if not keys or entry.name in keys]
            out.array(len(told))
            for entry in told:
                self._entry(out, entry, asked.version)
            out.tags()
        assert reader.int8() == 0
        if asked.version >= 3:
            assert reader.int8() == 0
        out.tags()
        return bytes(out.data)

    def _entry(self, out: Writer, entry: ConfigEntry, version: int) -> None:
        out.string(entry.name)
        out.string(entry.value)
        out.int8(entry.read_only)
        out.int8(entry.source)
        out.int8(entry.sensitive)
        out.array(1)
        out.string("log." + entry.name)
        out.string(entry.value)
        out.int8(5)
        out.tags()
        if version >= 3:
            out.int8(2)
            out.string(None)
        out.tags()


@pytest.mark.parametrize(("offered", "version", "topic_id"), [(NEWEST, 7, ID), (KAFKA_2_4, 5, NO_TOPIC_ID)])
def test_topics_are_made_with_their_settings(offered, version, topic_id):
    controller = Controller(offered=offered)
    topics = [NewTopic("t", 3, 2, {"cleanup.policy": "compact"}), NewTopic("u", 1)]
    made = controller.run(lambda cluster: create_topics(cluster, topics))
    assert controller.versions[CREATE] == version
    assert controller.topics == {"t": (3, 2, {"cleanup.policy": "compact"}), "u": (1, -1, {})}
    assert made == {
        "t": CreatedTopic(topic_id, 3, 2, {"cleanup.policy": "compact"}),
        "u": CreatedTopic(topic_id, 1, -1, {}),
    }


def test_what_is_only_validated_is_not_made():
    controller = Controller()
    controller.run(lambda cluster: create_topics(cluster, [NewTopic("t", 1)], validate_only=True))
    assert (controller.validated, controller.topics) == (["t"], {})


def test_the_controller_is_followed():
    controller = Controller(errors=[41, 41])
    made = controller.run(lambda cluster: create_topics(cluster, [NewTopic("t", 1)]))
    assert isinstance(made, dict)
    assert isinstance(made["t"], CreatedTopic)
    assert controller.broker.order().count(METADATA) == 3
    assert controller.sizes == [1, 1, 1]


def test_a_topic_whose_answer_was_lost_is_there():
    controller = Controller()
    controller.lose_answers = 1
    made = controller.run(lambda cluster: create_topics(cluster, [NewTopic("t", 1)]))
    assert made == {"t": Fault(36, "TOPIC_ALREADY_EXISTS", "said so")}
    assert "t" in controller.topics


@pytest.mark.parametrize(("limit", "sizes"), [(5, [200, 100, 50, 25, 12, 6, *[3] * 67]), (1000, [200, 1])])
def test_a_broker_that_takes_few_topics_at_once_gets_few(limit, sizes):
    controller = Controller(limit=limit)
    topics = [NewTopic(f"t{number}", 1) for number in range(201)]
    made = controller.run(lambda cluster: create_topics(cluster, topics))
    assert isinstance(made, dict)
    assert {type(each) for each in made.values()} == {CreatedTopic}
    assert made.keys() == controller.topics.keys() == {topic.name for topic in topics}
    assert controller.sizes == sizes


def test_a_policy_that_takes_no_topic_is_the_answer_of_each():
    controller = Controller(limit=0)
    made = controller.run(lambda cluster: create_topics(cluster, [NewTopic(f"t{number}", 1) for number in range(3)]))
    assert made == {f"t{number}": Fault(44, "POLICY_VIOLATION", "said so") for number in range(3)}


def test_where_nobody_answers_not_every_piece_is_waited_for():
    controller = Controller()
    controller.broker.script[CREATE] = lambda asked: SILENT
    topics = [NewTopic(f"t{number}", 1) for number in range(1000)]
    made = controller.run(lambda cluster: create_topics(cluster, topics), silence=0.2)
    assert isinstance(made, dict)
    assert {each.name for each in made.values()} == {"NO_ANSWER"}
    assert len(made) == 1000
    assert controller.broker.order().count(CREATE) == 1


@pytest.mark.parametrize("offered", [NEWEST, KAFKA_2_4])
def test_partitions_are_added(offered):
    controller = Controller(offered=offered)
    controller.topics = {"t": (1, 1, {}), "u": (4, 1, {})}
    grown = controller.run(lambda cluster: create_partitions(cluster, {"t": 3, "u": 4}))
    assert grown == {"t": 3, "u": Fault(37, "INVALID_PARTITIONS")}
    assert controller.versions[GROW] == min(offered[GROW][1], 3)


@pytest.mark.parametrize(("offered", "version"), [(NEWEST, 4), ({**NEWEST, DESCRIBE: (0, 3)}, 3), (KAFKA_2_4, 2)])
def test_settings_of_topics_are_told(offered, version):
    controller = Controller(offered=offered)
    controller.entries = [
        ConfigEntry("retention.ms", "5"),
        ConfigEntry("sasl.jaas.config", None, ConfigSource.STATIC_BROKER_CONFIG, read_only=True, sensitive=True),
        ConfigEntry("segment.ms", "7", ConfigSource.DEFAULT_CONFIG),
    ]
    told = controller.run(lambda cluster: describe_topic_configs(cluster, ["t", "gone"]))
    assert told == {"t": tuple(controller.entries), "gone": Fault(3, "UNKNOWN_TOPIC_OR_PARTITION")}
    assert controller.versions[DESCRIBE] == version
    assert controller.broker.order().count(DESCRIBE) == 1


def test_settings_of_brokers_are_told_by_each():
    controller = Controller()
    controller.entries = [ConfigEntry("message.max.bytes", "9"), ConfigEntry("log.dirs", "x")]
    told = controller.run(lambda cluster: describe_broker_configs(cluster, ["message.max.bytes"]))
    assert told == {1: {"message.max.bytes": "9"}}


@pytest.mark.parametrize(("offered", "version"), [(NEWEST, 1), (KAFKA_2_4, 0)])
def test_settings_of_topics_are_changed(offered, version):
    controller = Controller(offered=offered)
    changes: dict[str, dict[str, str | None]]
    changes = {"t": {"retention.ms": "5", "segment.ms": None}, "u": {"x": ""}, "gone": {"x": "1"}, "denied": {"x": "1"}}
    told = controller.run(lambda cluster: alter_topic_configs(cluster, changes))
    assert controller.altered == {"t": [("retention.ms", 0, "5"), ("segment.ms", 1, None)], "u": [("x", 0, "")]}
    assert told == {
        "t": None,
        "u": None,
        "gone": Fault(3, "UNKNOWN_TOPIC_OR_PARTITION", "said so"),
        "denied": Fault(29, "TOPIC_AUTHORIZATION_FAILED", "said so"),
    }
    assert controller.versions[ALTER] == version
    assert controller.broker.order().count(ALTER) == 1


@pytest.mark.parametrize("key", [CREATE, DESCRIBE, GROW, ALTER])
def test_an_api_that_is_not_offered_is_told_for_each_item(key):
    controller = Controller(offered={api: range_ for api, range_ in NEWEST.items() if api != key})

    ask: dict[int, Callable[[WireCluster], object]] = {
        CREATE: lambda cluster: create_topics(cluster, [NewTopic("t", 1)]),
        DESCRIBE: lambda cluster: describe_topic_configs(cluster, ["t"]),
        GROW: lambda cluster: create_partitions(cluster, {"t": 3}),
        ALTER: lambda cluster: alter_topic_configs(cluster, {"t": {"retention.ms": "1"}}),
    }
    answer = controller.run(ask[key])
    assert isinstance(answer, dict)
    assert answer["t"].name == "UNSUPPORTED_VERSION"
    brokers = controller.run(describe_broker_configs) if key == DESCRIBE else {}
    assert isinstance(brokers, dict)
    assert [each.name for each in brokers.values()] == ["UNSUPPORTED_VERSION"] * (key == DESCRIBE)


def test_an_answer_that_ends_early_is_no_answer():
    controller = Controller()
    controller.broker.script[CREATE] = lambda asked: struct.pack(">iB", 0, 2)
    made = controller.run(lambda cluster: create_topics(cluster, [NewTopic("t", 1)]), silence=0.2)
    assert isinstance(made, dict)
    assert isinstance(made["t"], Fault)
