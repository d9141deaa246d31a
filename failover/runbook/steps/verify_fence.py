"""The source watched: is anything still written?"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from failover.errors import StepFailed
from failover.model.cluster import LogRange, TopicInfo
from failover.model.names import Fault, TopicPartition
from failover.runbook.kinds import Context, Kind, Result
from failover.runbook.steps.flow_topics import data_topics


class VerifyFence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``topics``: literal names; none: every data topic the flow mirrors. ``watch``: for how long."""

    topics: list[str] = []
    watch: float = 10.0


class VerifyFenceKind(Kind[VerifyFence]):
    """Watches the ends of the source's logs and fails where one moves, naming the topics.

    It begins with the first look in which nothing moved for a second, so that transactions which are open when
    producers are kept out may end.
    """

    parameters = VerifyFence
    results = {"topics": "topics watched", "seconds": "for how long nothing was written"}  # noqa: RUF012
    acts = False

    def preview(self, given: VerifyFence, context: Context) -> str:
        topics = given.topics or data_topics(context)
        return f"would watch the ends of {len(topics)} topics on the source for {given.watch:g} s"

    def run(self, given: VerifyFence, context: Context) -> Result:
        topics = given.topics or data_topics(context)
        partitions = partitions_of(context, topics)
        before = ends(context, partitions)
        moved: dict[str, int] = {}
        last = 0.0

        def quiet() -> bool:
            nonlocal before, last
            now = ends(context, partitions)
            moved.clear()
            for tp, end in now.items():
                if end != before[tp]:
                    moved[tp.topic] = moved.get(tp.topic, 0) + end - before[tp]
            before = now
            return not moved

        context.pause(1.0)
        context.wait(quiet, what=lambda: f"still written: {_told(moved)}")
        began = context.remaining()
        while began - context.remaining() < given.watch:
            context.pause(0.5)
            if not quiet():
                raise StepFailed(
                    f"written although producers are kept out: {_told(moved)}",
                    hint="a super user, or a producer by another way: stop it; kafka-transactions.sh names its id",
                )
            last = began - context.remaining()
        return {"topics": len(topics), "seconds": round(last, 1)}


def partitions_of(context: Context, topics: Collection[str]) -> list[TopicPartition]:
    """Gives every partition of topics on the source. Raises ``StepFailed`` for one that cannot be seen."""
    found = context.reach.source.describe_topics(topics)
    partitions: list[TopicPartition] = []
    for topic, info in found.items():
        if not isinstance(info, TopicInfo):
            raise StepFailed(f"topic {topic} cannot be seen on the source: {info}")
        partitions += [TopicPartition(topic, number) for number in range(info.partitions)]
    return partitions


def ends(context: Context, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Gives the end of each log on the source. Raises ``StepFailed`` for one that cannot be read."""
    found: dict[TopicPartition, int] = {}
    for tp, log in ranges(context, partitions).items():
        found[tp] = log.end
    return found


def ranges(context: Context, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogRange]:
    """Gives start and end of each log on the source. Raises ``StepFailed`` for one that cannot be read."""
    found: dict[TopicPartition, LogRange] = {}
    for tp, log in context.reach.source.log_ranges(partitions).items():
        if isinstance(log, Fault):
            raise StepFailed(f"the end of {tp.topic} {tp.partition} cannot be read on the source: {log}")
        found[tp] = log
    return found


def _told(moved: Mapping[str, int]) -> str:
    rows = sorted(moved.items(), key=lambda row: -row[1])
    return ", ".join(f"{topic} ({count} records)" for topic, count in rows[:5])


KIND = VerifyFenceKind()
