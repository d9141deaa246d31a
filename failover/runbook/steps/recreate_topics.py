"""The old primary's topics deleted, so that they are mirrored whole from where applications are now."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from failover.checks.look import some
from failover.errors import Declined, Refused, StepFailed
from failover.model.cluster import LogRange, TopicInfo
from failover.model.names import TopicPartition
from failover.runbook.kinds import Context, Kind, Result, Settled
from failover.runbook.steps.noted import note_more, noted
from failover.runbook.steps.reverse_replication import check_way
from failover.runbook.steps.seed import opened
from failover.runbook.steps.tail import held_alone
from failover.state.tails import exported_tails

_SHOWN = 5


class RecreateTopics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``exported``: the file of a step ``tail``, which has to cover what is deleted. ``topics``: literal names; none:
    every topic of the flow that has one name on both clusters and is on the target.

    ``settle``: for so long it is watched that nothing is mirrored. ``url``: as of the step ``seed``.
    """

    exported: str
    topics: list[str] = []
    settle: float = 3.0
    url: str = ""


class RecreateTopicsKind(Kind[RecreateTopics]):
    """Deletes topics on the target, once the target's alias was typed, so that the mirror makes them anew and whole.

    Only topics that the source has too, and only if the exported file covers each partition to its end: what the
    target alone has is nowhere else. Positions that are kept for them are set to the beginning. The offsets that
    groups committed on these topics go with them (Kafka deletes both); a plan places the groups anew. There is no way
    back from this step.
    """

    parameters = RecreateTopics
    results = {"deleted": "topics that were deleted"}  # noqa: RUF012 - a class's constant
    asks = True

    def preview(self, given: RecreateTopics, context: Context) -> str:
        topics = self._topics(given, context)
        self._covered(given, topics, context)
        return f"would delete {len(topics)} topics on {context.reach.flow.target}: {some(topics, _SHOWN)}"

    def run(self, given: RecreateTopics, context: Context) -> Result:
        topics = self._topics(given, context)
        alias, gone = context.reach.flow.target, noted(context, "topics")
        if topics:
            self._covered(given, topics, context)
            asyncio.run(_stand_still(given, topics, context))
            question = (
                f"This deletes {len(topics)} topics on {alias} with all they hold, and the offsets groups"
                f" committed on them there: {some(topics, _SHOWN)}. Their tail is in {given.exported}. Go ahead?"
            )
            if not context.ask(question, alias):
                raise Declined(f"{context.operators[-1]} did not agree that topics of {alias} are deleted")
            gone = note_more(context, "topics", topics)
            faults = {name: fault for name, fault in context.reach.target.delete_topics(topics).items() if fault}
            if faults:
                name, fault = next(iter(faults.items()))
                raise StepFailed(
                    f"{len(faults)} of {len(topics)} topics could not be deleted, {name} because: {fault}",
                    hint="this user needs DELETE on them, and brokers delete.topic.enable",
                )
        context.wait(
            lambda: not _there(gone, context), what=lambda: f"still there: {some(_there(gone, context), _SHOWN)}"
        )
        failed = asyncio.run(_begin_again(given, gone, context))
        if failed:
            raise StepFailed(
                f"the positions of {len(failed)} partitions could not be set back, that of {failed[0].topic}"
                f" {failed[0].partition} among them: the mirror would begin in the middle"
            )
        context.say(f"deleted {len(gone)} topics on {alias}")
        return {"deleted": gone}

    def settle(self, given: RecreateTopics, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # what is deleted is not deleted again, and what is left is asked about again

    def by_hand(self, given: Mapping[str, Any]) -> str:  # noqa: ARG002 - the same for all
        return "kafka-topics.sh --bootstrap-server PRIMARY --delete --topic TOPIC"

    def _topics(self, given: RecreateTopics, context: Context) -> list[str]:
        kept = check_way("recreate", context)
        wanted = [topic for topic in kept if topic in given.topics or not given.topics]
        if unknown := sorted(set(given.topics) - set(wanted)):
            flow = context.reach.flow
            raise Refused(f"{unknown[0]} is no topic of {flow.source} that keeps its name on {flow.target}")
        return sorted(_there(wanted, context))

    def _covered(self, given: RecreateTopics, topics: Sequence[str], context: Context) -> None:
        """Raises ``Refused`` unless the file holds what each of the topics' partitions ends with."""
        target = context.reach.target
        tails = exported_tails(given.exported, target.alias)
        infos = target.describe_topics(topics)
        partitions = [
            TopicPartition(topic, number)
            for topic, info in infos.items()
            for number in range(info.partitions if isinstance(info, TopicInfo) else 0)
        ]
        bare = []
        for tp, log in target.log_ranges(partitions).items():
            tail = tails.get(tp)
            empty = isinstance(log, LogRange) and log.start == log.end
            if not empty and (tail is None or not isinstance(log, LogRange) or tail.end != log.end):
                bare.append(tp)
        if bare:
            held = held_alone("target", context) if not given.exported else None
            alone = f"; {target.alias} alone has about {held.records} records" if held is not None else ""
            raise Refused(
                f"{given.exported or 'no exported file'} does not hold what {len(bare)} partitions end with,"
                f" {bare[0].topic} {bare[0].partition} among them{alone}",
                hint="export the tail first, with nobody writing there: tail: export",
            )


def _there(topics: Sequence[str], context: Context) -> set[str]:
    found = context.reach.target.describe_topics(topics) if topics else {}
    return {topic for topic, info in found.items() if isinstance(info, TopicInfo)}


async def _stand_still(given: RecreateTopics, topics: Sequence[str], context: Context) -> None:
    """Raises ``Refused`` while something is mirrored between the two clusters, or somebody writes to the topics."""
    async with opened(given.url, context) as (work, _):
        await work.stands([one for one in await work.look(topics) if one.target_end is not None], given.settle)


async def _begin_again(given: RecreateTopics, topics: Sequence[str], context: Context) -> list[TopicPartition]:
    async with opened(given.url, context) as (work, _):
        return await work.begin_again(topics)


KIND = RecreateTopicsKind()
