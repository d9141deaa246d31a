from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from failover.config.load import load_config
from failover.errors import ClusterUnreachable, ConfigError
from failover.kafka.faults import fault
from failover.kafka.wire.topics import NewTopic
from failover.mm2.heartbeat import Heartbeat
from failover.model.names import TopicPartition
from failover.replication import heartbeats as module
from failover.replication.heartbeats import Heartbeats, HeartbeatSettings, heartbeat_settings

TOPIC = NewTopic("heartbeats", 1, 3, {"cleanup.policy": "compact"})
PLACE = TopicPartition("heartbeats", 0)


class Target:
    """Answers as told, one after the other, and well then: to the topic's making and to records."""

    def __init__(self, monkeypatch, *, made=(), appended=(), rounds=1):
        self.made, self.appended = list(made), list(appended)
        self.records, self.pauses, self.wanted = [], [], []
        self.rounds = rounds
        monkeypatch.setattr(module, "ensure_topic", self.ensure)
        monkeypatch.setattr(module, "append", self.append)
        monkeypatch.setattr(asyncio, "sleep", self.sleep)

    async def ensure(self, cluster, topic):
        self.wanted.append(topic)
        answer = self.made.pop(0) if self.made else None
        if isinstance(answer, Exception):
            raise answer
        return answer, False

    async def append(self, cluster, records, *, purpose):
        answer = self.appended.pop(0) if self.appended else None
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return {PLACE: answer}
        self.records += records[PLACE]
        return {}

    async def sleep(self, pause):
        self.pauses.append(pause)
        if len(self.pauses) == self.rounds:
            raise asyncio.CancelledError

    def run(self, seconds=1.0):
        me: Any = self

        async def inside():
            try:
                await Heartbeats(me, me, HeartbeatSettings("A", "B", TOPIC, seconds)).run()
            except asyncio.CancelledError:
                return

        asyncio.run(inside())


def test_a_heartbeat_is_mirror_makers_record(monkeypatch):
    target, began = Target(monkeypatch, rounds=2), time.time_ns() // 1_000_000
    target.run(5.0)
    assert target.wanted == [TOPIC]
    assert target.pauses == [5, 5]
    for record in target.records:
        assert record.key == b"\0\1A\0\1B"
        assert record.value == b"\0\0" + record.timestamp.to_bytes(8, "big")
        assert record.headers == ()
        assert Heartbeat.decode(record.key, record.value) == Heartbeat("A", "B", record.timestamp)
        assert began <= record.timestamp <= time.time_ns() // 1_000_000


def test_what_fails_is_told_once_and_heals(monkeypatch, caplog):
    down = ClusterUnreachable("nobody there", alias="B")
    target = Target(monkeypatch, made=[down], appended=[fault(-185), down], rounds=5)
    target.run()
    assert [record.getMessage() for record in caplog.records] == [
        "heartbeats of A->B cannot be written to topic heartbeats of B: nobody there; tried again",
        "heartbeats of A->B are written again",
    ]
    assert len(target.records) == 2
    assert target.pauses == [1, 2, 3, 1, 1]


def test_pauses_grow_to_ten_seconds(monkeypatch):
    target = Target(monkeypatch, made=[fault(44)] * 30, rounds=30)
    target.run()
    assert target.pauses == [*range(1, 11), *[10] * 20]
    target = Target(monkeypatch, made=[fault(44)] * 30, rounds=3)
    target.run(60.0)
    assert target.pauses == [60, 60, 60]


def test_a_topic_that_was_deleted_is_made_again(monkeypatch):
    target = Target(monkeypatch, appended=[None, fault(3)], rounds=3)
    target.run()
    assert len(target.wanted) == len(target.records) == 2


@pytest.mark.parametrize(
    ("made", "appended", "text"),
    [
        ([fault(29)], [], "grant WRITE and CREATE on topic heartbeats of B, or set A->B.emit.heartbeats.enabled=false"),
        ([], [fault(29)], "grant WRITE on topic heartbeats of B, or set A->B.emit.heartbeats.enabled=false"),
        ([fault(38)], [], "heartbeats.topic.replication.factor is 3, -1 is the brokers' default"),
    ],
)
def test_the_way_out_is_named(monkeypatch, caplog, made, appended, text):
    Target(monkeypatch, made=made, appended=appended).run()
    [record] = caplog.records
    assert f"; {text}; tried again" in record.getMessage()


def settings(tmp_path: Path, text: str, name: str = "A->B") -> HeartbeatSettings | None:
    path = tmp_path / "mm2.properties"
    path.write_text(
        f"clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n{text}"
    )
    flows = {flow.name: flow for flow in load_config(path).flows}
    return heartbeat_settings(flows[name], "heartbeats")


def test_settings_are_mirror_makers(tmp_path):
    assert settings(tmp_path, "") == HeartbeatSettings("A", "B", TOPIC, 1.0)
    # the opposite flow, which copies nothing, has its own
    text = "heartbeats.topic.replication.factor = -1\nB->A.emit.heartbeats.interval.seconds = 5"
    assert settings(tmp_path, text, "B->A") == HeartbeatSettings(
        "B", "A", NewTopic("heartbeats", 1, -1, {"cleanup.policy": "compact"}), 5.0
    )
    assert settings(tmp_path, "emit.heartbeats.enabled = false") is None
    assert settings(tmp_path, "emit.heartbeats.interval.seconds = -1") is None
    with pytest.raises(ConfigError, match=r"emit\.heartbeats\.interval\.seconds"):
        settings(tmp_path, "emit.heartbeats.interval.seconds = 1s")
