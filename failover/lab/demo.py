"""The whole story on two real clusters: traffic, a mirror, lagging groups, a dead primary, a failover.

Every step an operator would type is run as that command in a process of its own, and its output is
shown as it is. At the end what the plan said is held against what the consumers really got.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from failover.errors import LabError
from failover.lab.lab import Lab, wait_until
from failover.lab.mirror import MirrorOptions
from failover.lab.side import Side
from failover.lab.state import LabOptions
from failover.lab.up import up
from failover.model.names import TopicPartition

TOPICS = {"orders": 6, "payments": 3}
BACKLOG = {"orders": 60_000, "payments": 12_000}
"""Records written before the groups take their places; more keep coming until the primary dies."""

LAGGARDS = {"billing": 1.0, "fraud": 0.9, "search-index": 0.5, "analytics": 0.1}
"""Groups that stop at this share of the backlog; ``fraud`` uses the consumer protocol."""

LIVE_GROUP = "shipping"
"""A group that is consuming when the primary dies."""

_LIVE_SECONDS = 6.0
_PAUSE = 0.02


class GroupOutcome(msgspec.Struct, frozen=True):
    """Holds a plan's forecast for a group against what its consumers got on the standby (records)."""

    group: str
    forecast_reread: int | None
    reread: int
    forecast_skipped: int | None
    skipped: int
    delivered: int


class DemoOutcome(msgspec.Struct, frozen=True):
    """Is what the demo measured. ``seconds``: step → how long. ``lost``: records the mirror had not copied."""

    groups: tuple[GroupOutcome, ...]
    forecast_lost: int | None
    lost: int
    seconds: dict[str, float]

    @property
    def kept(self) -> bool:
        """Says whether every forecast held: no record skipped, none read again beyond the bound."""
        return all(
            group.skipped == 0 and (group.forecast_reread is None or group.reread <= group.forecast_reread)
            for group in self.groups
        )


Written = dict[TopicPartition, dict[int, bytes]]
"""Values by where they lie, not as they were sent: a producer that tries again changes their order."""


class _Traffic(threading.Thread):
    """Writes to every topic and consumes as the live group until told to stop or the primary is gone."""

    def __init__(self, side: Side) -> None:
        super().__init__(daemon=True, name="demo-traffic")
        self.ends = threading.Event()
        self.written: Written = {}
        self.committed: dict[TopicPartition, int] = {}
        self.failure: Exception | None = None
        self._side = side

    def run(self) -> None:
        """Goes on until ``ends`` is set; what went wrong before that is left in ``failure``."""
        from confluent_kafka import KafkaException

        try:
            self._run()
        except KafkaException as error:
            # a dead primary ends it too: then what was done until then is what counts
            if not self.ends.is_set():
                self.failure = error

    def _run(self) -> None:
        producer = self._side.producer()
        consumer = self._side.consumer(LIVE_GROUP, session_timeout_ms=6000)
        consumer.subscribe(list(TOPICS))
        places = [TopicPartition(topic, n) for topic, count in TOPICS.items() for n in range(count)]
        number, committed_at = 0, time.monotonic()
        read: dict[TopicPartition, int] = {}
        while not self.ends.is_set():
            for place in places:
                value = f"live-{number}".encode()
                producer.produce(place.topic, value, partition=place.partition, on_delivery=self._delivered)
                number += 1
            producer.poll(0)
            message: Any
            for message in consumer.consume(500, _PAUSE):
                if message.error() is None:
                    read[_place(message)] = message.offset() + 1
            if read and time.monotonic() - committed_at > 0.5:
                self._commit(consumer, read)
                committed_at = time.monotonic()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.written.setdefault(_place(message), {})[message.offset()] = message.value()

    def _commit(self, consumer: Any, read: Mapping[TopicPartition, int]) -> None:
        from confluent_kafka import TopicPartition as Place

        done = consumer.commit(offsets=[Place(tp.topic, tp.partition, o) for tp, o in read.items()], asynchronous=False)
        for place in done:
            if place.error is None:
                self.committed[TopicPartition(place.topic, place.partition)] = place.offset


class Demo:
    """Runs the story in ``folder``; ``say`` gets each line of narration, the commands print by themselves."""

    def __init__(self, folder: Path, say: Callable[[str], None], *, kafka_version: str | None = None) -> None:
        self.folder = folder
        self.say = say
        self.seconds: dict[str, float] = {}
        self.state = folder / "state"
        self._version = {"kafka_version": kafka_version} if kafka_version else {}
        self._running = ""
        self._step_began = time.monotonic()

    def run(self) -> DemoOutcome:
        """Plays the whole story on a lab that is up when this begins to matter and ended by the caller."""
        self._step("1. Two Kafka clusters and MirrorMaker 2 between them")
        # With the offset syncs on the target they survive the primary, and translation stays exact.
        mirror = MirrorOptions(
            settings={"offset-syncs.topic.location": "target"}, checkpoint_seconds=1, flush_seconds=1
        )
        lab = up(self.folder / "lab", LabOptions(mm2=True, quick=True, mirror=mirror, **self._version), say=self.say)  # type: ignore[arg-type]
        primary, standby = (Side(alias, lab.client_settings(alias)) for alias in lab.state.options.aliases)
        try:
            return self._play(lab, primary, standby)
        finally:
            primary.close()
            standby.close()

    def _play(self, lab: Lab, primary: Side, standby: Side) -> DemoOutcome:
        self._step("2. Traffic: a backlog, groups that lag, and one that consumes while records keep coming")
        source: Written = {}
        for topic, partitions in TOPICS.items():
            primary.create_topic(topic, partitions)
            for record in primary.produce(topic, BACKLOG[topic]):
                source.setdefault(record.tp, {})[record.offset] = record.value
        committed = self._place_groups(primary, source)
        traffic = _Traffic(primary)
        traffic.start()
        self._wait_mirrored(standby, source, committed)
        time.sleep(_LIVE_SECONDS)
        self._step("3. The primary is killed: kill -9, in the middle of the traffic")
        lab.kill(lab.state.options.aliases[0])
        traffic.ends.set()
        traffic.join(30)
        if traffic.failure is not None:
            raise LabError(f"the demo's traffic failed: {traffic.failure}")
        for tp, values in traffic.written.items():
            source[tp] |= values
        committed[LIVE_GROUP] = traffic.committed
        self._step("4. What would a failover do? Nothing is written yet")
        copy = self.folder / "plan.json"
        self._run(lab, "plan", "--source-down", hidden=("-o", str(copy)))
        plan = json.loads(copy.read_bytes())
        self._step("5. Do it")
        self._run(lab, "execute", "--yes", "--settle", "2s")
        self._step("6. The consumers start on the standby")
        outcome = self._resume(standby, plan, source, committed)
        self._step("")
        return outcome

    def _place_groups(self, primary: Side, source: Written) -> dict[str, dict[TopicPartition, int]]:
        placed = {}
        for group, share in LAGGARDS.items():
            offsets = {tp: int(len(values) * share) for tp, values in source.items()}
            primary.place(group, offsets, protocol="consumer" if group == "fraud" else "classic")
            placed[group] = offsets
        return placed

    def _wait_mirrored(
        self,
        standby: Side,
        source: Written,
        committed: Mapping[str, Mapping[TopicPartition, int]],
    ) -> None:
        """Waits until the backlog is on the standby and every group has its checkpoints there."""
        from failover.lab.internal_records import checkpoint_of

        def mirrored() -> bool:
            ends = {topic: standby.ends(f"primary.{topic}") for topic in TOPICS}
            return all(ends[tp.topic].get(tp.partition, (0, 0))[1] >= len(values) for tp, values in source.items())

        def checkpointed() -> bool:
            records = standby.read("primary.checkpoints.internal").get(0, [])
            seen = {checkpoint_of(record).group for record in records if record.value is not None}
            return seen >= {*committed, LIVE_GROUP}

        wait_until(mirrored, seconds=90, what="the backlog is mirrored", every=0.3)
        wait_until(checkpointed, seconds=60, what="every group has a checkpoint", every=0.3)

    def _run(self, lab: Lab, *arguments: str, hidden: Sequence[str] = ()) -> None:
        """Runs a command as an operator would and shows it with its output; ``hidden`` options are not shown."""
        self.say(f"$ failover {shlex.join(arguments)}")
        where = ["--config", str(lab.config), "--state-dir", str(self.state)]
        command = [sys.executable, "-m", "failover", *arguments, *where, *hidden]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.say(done.stdout.rstrip())
        if done.returncode not in (0, 4):
            raise LabError(f"failover {arguments[0]} ended with {done.returncode}: {done.stderr.strip()}")

    def _resume(
        self,
        standby: Side,
        plan: Mapping[str, Any],
        source: Written,
        committed: Mapping[str, Mapping[TopicPartition, int]],
    ) -> DemoOutcome:
        there = {
            value
            for topic in TOPICS
            for records in standby.read(f"primary.{topic}").values()
            for value in _values(records)
        }
        lost = sum(value not in there for values in source.values() for value in values.values())
        forecasts = {group["group"]: group for group in plan["groups"]}
        groups = []
        for name in (*LAGGARDS, LIVE_GROUP):
            places = committed[name]
            consumed = {v for tp, values in source.items() for o, v in values.items() if o < places.get(tp, 0)}
            delivered = self._consume(standby, name)
            due = {value for values in source.values() for value in values.values() if value in there} - consumed
            forecast = forecasts.get(name, {"partitions": []})
            groups.append(
                GroupOutcome(
                    group=name,
                    forecast_reread=_total(p["reread_max"] for p in forecast["partitions"]),
                    reread=sum(value in consumed for value in delivered),
                    forecast_skipped=_total(p["skipped"] for p in forecast["partitions"]),
                    skipped=len(due.difference(delivered)),
                    delivered=len(delivered),
                )
            )
        return DemoOutcome(tuple(groups), plan["summary"]["unreplicated"], lost, self.seconds)

    def _consume(self, standby: Side, group: str) -> list[bytes]:
        """Reads as the group from where it stands to the end of every topic; gives the values in order."""
        topics = [f"primary.{topic}" for topic in TOPICS]
        ends = {TopicPartition(topic, n): end for topic in topics for n, (_, end) in standby.ends(topic).items()}
        reached = standby.committed(group)
        values: list[bytes] = []
        deadline = time.monotonic() + 60
        with standby.member(group, topics, auto_offset_reset="latest") as consumer:
            while any(reached.get(place, end) < end for place, end in ends.items()):
                if time.monotonic() > deadline:
                    raise LabError(f"group {group} did not reach the end of its topics on the standby within 60 s")
                message: Any
                for message in consumer.consume(5000, 0.05):
                    if message.error() is None:
                        reached[_place(message)] = message.offset() + 1
                        values.append(message.value())
        return values

    def _step(self, title: str) -> None:
        """Ends the running step, noting how long it took, and begins the next one."""
        now = time.monotonic()
        if self._running:
            self.seconds[self._running] = round(now - self._step_began, 1)
        self._running, self._step_began = title, now
        if title:
            self.say(f"\n{title}")


def _place(message: Any) -> TopicPartition:
    return TopicPartition(message.topic(), message.partition())


def _values(records: Iterable[Any]) -> Iterable[bytes]:
    return (record.value for record in records)


def _total(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if any(number is None for number in known) else sum(number or 0 for number in known)
