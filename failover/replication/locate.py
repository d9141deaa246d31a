"""Finds, behind the fence, from where each partition's copying goes on: nothing twice, nothing left out.

The rule is in ``locate_rule``; here the stretches it wants are read, those of all partitions together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.logs import LATEST, OffsetAt, list_offsets, log_ranges
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition
from failover.replication.anchor import Anchor
from failover.replication.locate_answer import MAX_RECORDS, Located, Question, Unknown, same_topic
from failover.replication.locate_reads import Steps
from failover.replication.locate_rule import locating
from failover.replication.reading import Stretch, Want, read_stretches

__all__ = ["Located", "Place", "Unknown", "locate"]

Answer = Located | Unknown | Fault

_OUT_OF_RANGE = 1
_ATTEMPTS = 3
_AT_ONCE = 500_000
"""Offsets read at once for all partitions together: a record that is compared takes some 200 bytes."""

_ONLY_COUNTED = 10
"""So much more may be read at once where records are counted alone."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Is a source partition and where its copy lies.

    ``anchors``: newest first, the position on record before the offset syncs. ``source_topic_id``,
    ``target_topic_id``: as they are now, ``NO_TOPIC_ID`` where a broker has none. ``whole``: see ``Question``.
    """

    source: TopicPartition
    target: TopicPartition
    anchors: tuple[Anchor, ...] = ()
    source_topic_id: bytes = NO_TOPIC_ID
    target_topic_id: bytes = NO_TOPIC_ID
    whole: int | None = None


async def locate(
    source: WireCluster,
    target: WireCluster,
    places: Iterable[Place],
    *,
    read_committed: bool,
    start: Literal["earliest", "latest"] | int = "earliest",
    max_records: int = MAX_RECORDS,
) -> dict[TopicPartition, Answer]:
    """Finds the positions of many partitions, by source partition; call it when nobody writes on the target any more.

    ``read_committed``: aborted transactions are not copied. ``start``: where a partition begins of which nothing was
    ever copied, a number being a time (epoch ms): at the first record from then on, or at the end (KIP-1106).
    ``max_records``: offsets of one log whose records are compared for one partition at most; ten times as
    many are counted. A partition that cannot be read gives a ``Fault``; the others are not affected. Raises
    ``ClusterUnreachable``, ``CredentialsRefused``.
    """
    answers: dict[TopicPartition, Answer] = {}
    left = {place.source: place for place in places}
    for _ in range(_ATTEMPTS):
        # Asked before the last stable offsets, which are as high as these unless a transaction is open.
        ends: Mapping[TopicPartition, OffsetAt | Fault] = (
            await list_offsets(source, dict.fromkeys(left, LATEST)) if read_committed else {}
        )
        sources, targets = await asyncio.gather(
            log_ranges(source, left, read_committed=read_committed),
            log_ranges(target, [place.target for place in left.values()]),
        )
        begins: Mapping[TopicPartition, OffsetAt | Fault] = (
            await list_offsets(source, dict.fromkeys(left, start)) if isinstance(start, int) else {}
        )
        searches: dict[TopicPartition, Steps[Located | Unknown]] = {}
        for tp, place in left.items():
            here, there, begin = sources[tp], targets[place.target], begins.get(tp)
            if isinstance(here, Fault):
                answers[tp] = here
            elif isinstance(there, Fault):
                answers[tp] = there
            elif isinstance(begin, Fault):
                answers[tp] = begin
            else:
                searches[tp] = locating(_question(place, here, there, _start(start, begin), max_records))
        targets_of = {tp: place.target for tp, place in left.items()}
        answers |= await _search(source, target, searches, targets_of, committed=read_committed)
        for tp in searches:
            if (why := _open_below(left[tp], answers[tp], sources[tp], ends.get(tp))) is not None:
                answers[tp] = why
        # Retention may move a log's start while it is read.
        left = {tp: place for tp, place in left.items() if _overtaken(answers[tp]) and tp in searches}
        if not left:
            break
    return answers


def _open_below(place: Place, answer: Answer, stable: LogRange | Fault, end: OffsetAt | Fault | None) -> Unknown | None:
    """Says that transactions are open on the source below the place where the copying stood, if there may be some.

    It was copied while aborted records were not left out. What lies behind the last stable offset cannot be read as it
    will be, and the source is not shorter for it.
    """
    if not isinstance(end, OffsetAt) or isinstance(stable, Fault) or end.offset <= stable.end:
        return None
    newest = next(iter(place.anchors), None)
    if newest is None or newest.chosen or same_topic(newest.source_topic_id, place.source_topic_id) is False:
        return None
    beyond = stable.end < newest.upstream <= end.offset
    if beyond or (isinstance(answer, Located) and answer.how == "source-truncated"):
        return Unknown(f"transactions are open from source offset {stable.end} on, and records behind it were copied")
    return None


def _start(start: Literal["earliest", "latest"] | int, found: OffsetAt | None) -> Literal["earliest", "latest"] | int:
    """Gives where a question's partition begins: a time's offset, the end if no record is that young."""
    if isinstance(start, str):
        return start
    return found.offset if found is not None and found.offset >= 0 else "latest"


def _question(
    place: Place, source: LogRange, target: LogRange, start: Literal["earliest", "latest"] | int, max_records: int
) -> Question:
    return Question(
        anchors=tuple(place.anchors),
        source=source,
        target=target,
        source_topic_id=place.source_topic_id,
        target_topic_id=place.target_topic_id,
        start=start,
        max_records=max_records,
        whole=place.whole,
    )


def _overtaken(answer: Answer) -> bool:
    return isinstance(answer, Fault) and answer.number == _OUT_OF_RANGE


async def _search(
    source: WireCluster,
    target: WireCluster,
    searches: Mapping[TopicPartition, Steps[Located | Unknown]],
    targets: Mapping[TopicPartition, TopicPartition],
    *,
    committed: bool,
) -> dict[TopicPartition, Answer]:
    """Drives searches to their ends: what they want is read together, as much at once as memory should hold."""
    answers: dict[TopicPartition, Answer] = {}
    waiting: dict[TopicPartition, tuple[Want, ...]] = {}
    for tp, search in searches.items():
        _advance(tp, search, None, waiting, answers)
    while waiting:
        turn = _turn(waiting)
        asked = {tp: waiting.pop(tp) for tp in turn}
        read: dict[TopicPartition, dict[Want, Stretch | Fault]] = {tp: {} for tp in asked}
        here = [(tp, want) for tp, wants in asked.items() for want in wants if want.side == "source"]
        there = [(tp, want) for tp, wants in asked.items() for want in wants if want.side == "target"]
        # The target is read as it is: an aborted record there would be a record, whoever wrote it.
        stretches = await asyncio.gather(
            read_stretches(source, here, committed=committed),
            read_stretches(target, [(targets[tp], want) for tp, want in there], committed=False),
        )
        for (tp, want), stretch in zip((*here, *there), (*stretches[0], *stretches[1]), strict=True):
            read[tp][want] = stretch
        for tp, found in read.items():
            _advance(tp, searches[tp], found, waiting, answers)
    return answers


def _turn(waiting: Mapping[TopicPartition, Sequence[Want]]) -> list[TopicPartition]:
    """Chooses whose wants are read next; at least one partition's."""
    chosen: list[TopicPartition] = []
    offsets = 0
    for tp, wants in waiting.items():
        offsets += sum((want.stop - want.start) // (1 if want.records else _ONLY_COUNTED) for want in wants)
        if chosen and offsets > _AT_ONCE:
            break
        chosen.append(tp)
    return chosen


def _advance(
    tp: TopicPartition,
    search: Steps[Located | Unknown],
    found: Mapping[Want, Stretch | Fault] | None,
    waiting: dict[TopicPartition, tuple[Want, ...]],
    answers: dict[TopicPartition, Answer],
) -> None:
    """Gives a search what it wanted; notes what it wants next or what it found."""
    try:
        if found is None:
            waiting[tp] = next(search)
            return
        stretches: dict[Want, Stretch] = {}
        for want, stretch in found.items():
            if isinstance(stretch, Fault):
                search.close()
                answers[tp] = stretch
                return
            stretches[want] = stretch
        waiting[tp] = search.send(stretches)
    except StopIteration as stop:
        answers[tp] = stop.value
