"""Committed offsets: read for many groups at once, written and deleted over several connections.

Metadata of a commit is bytes both ways.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from failover.errors import ClusterUnreachable
from failover.kafka.faults import NO_ANSWER, fault, fault_of_loss, maybe_fault
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.connection import ConnectionLost
from failover.kafka.wire.logs import by_topic, partitions_of, write_topics
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.rounds import settle
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition

GroupOffsets = dict[TopicPartition, Commit | Fault]
CommitResults = dict[TopicPartition, Fault | None]

LANES = 16
"""Connections for each coordinator: a commit waits about 5 ms at the broker, and one connection's commits wait in a
row.
"""

_OFFSET_COMMIT, _OFFSET_FETCH, _OFFSET_DELETE = 8, 9, 47
_COORDINATOR_NOT_AVAILABLE = 15
_UNKNOWN_TOPIC_OR_PARTITION = 3
_GROUPS_AT_ONCE = 200


async def committed_offsets(
    cluster: WireCluster,
    groups: Iterable[str],
    *,
    require_stable: bool = False,
    partitions: Collection[TopicPartition] | None = None,
) -> dict[str, GroupOffsets | Fault]:
    """Reads the committed offsets of each group: all of them, or those of ``partitions``. A group without any has {}.

    With ``require_stable`` a partition whose commit an open transaction holds back has fault UNSTABLE_OFFSET_COMMIT
    (88); it is not waited for. Without it the last committed offset is given.
    """
    batched = cluster.highest(_OFFSET_FETCH) >= 8

    async def send(node: int, share: list[str]) -> dict[str, GroupOffsets | Fault]:
        size = _GROUPS_AT_ONCE if batched else 1
        pieces = [share[at : at + size] for at in range(0, len(share), size)]
        calls = [_fetch_call(piece, partitions, require_stable=require_stable) for piece in pieces]
        answers = await asyncio.gather(*(cluster.send(node, call, purpose="offsets") for call in calls))
        return {group: offsets for answer in answers for group, offsets in answer.items()}

    return await cluster.spread_groups(groups, send)


async def commit_offsets(
    cluster: WireCluster,
    commits: Mapping[str, Mapping[TopicPartition, Commit]],
    done: Callable[[str, CommitResults | Fault], None] | None = None,
    *,
    lanes: int = LANES,
) -> dict[str, CommitResults | Fault]:
    """Commits each group's offsets in one request, as a client outside the group (generation -1, no member).

    Per partition None when accepted, else the fault: UNKNOWN_MEMBER_ID (25) while the group is active. What passes by
    itself (a coordinator that moved or loads) is tried again for those partitions. A fault for the whole group with a
    number below zero: the answer was lost, the outcome is unknown; COORDINATOR_NOT_AVAILABLE: nothing was sent.
    ``done`` is called once a group, in order of completion. ``lanes``: connections for each coordinator.
    """

    async def attempt(
        group: str, wanted: Mapping[TopicPartition, Commit], node: int, lane: int
    ) -> CommitResults | Fault:
        try:
            return await cluster.send(node, _commit_call(group, wanted), purpose=f"commit-{lane}")
        except ConnectionLost as error:
            if not error.written:
                return fault(_COORDINATOR_NOT_AVAILABLE, error.message)
            return Fault(NO_ANSWER, "NO_ANSWER", error.message)

    async def commit(group: str, lane: int) -> CommitResults | Fault:
        results: CommitResults = {}

        async def ask(open_items: Sequence[TopicPartition], again: bool) -> Mapping[TopicPartition, Any]:
            try:
                node = (await cluster.coordinators([group], refresh=again))[group]
            except ClusterUnreachable as error:  # of these partitions nothing was sent, or it was refused
                node = fault(_COORDINATOR_NOT_AVAILABLE, error.message)
            if isinstance(node, Fault):
                return dict.fromkeys(open_items, node)
            answer = await attempt(group, {tp: commits[group][tp] for tp in open_items}, node, lane)
            return dict.fromkeys(open_items, answer) if isinstance(answer, Fault) else answer

        results.update(await settle(commits[group], ask, budget=cluster.silence))
        whole = next((result for result in results.values() if result is not None and result.number < 0), None)
        return whole or results

    return await _in_lanes(cluster, commits, commit, done, lanes)


async def delete_offsets(
    cluster: WireCluster, offsets: Mapping[str, Collection[TopicPartition]], *, lanes: int = LANES
) -> dict[str, CommitResults | Fault]:
    """Deletes committed offsets (Kafka API 47).

    Per partition None when deleted, GROUP_SUBSCRIBED_TO_TOPIC (86) while consumers read the topic;
    GROUP_ID_NOT_FOUND (69) for the whole group. Repeating it is harmless, so a lost answer is asked for again.
    """

    async def delete(group: str, lane: int) -> CommitResults | Fault:
        async def send(node: int, _: list[str]) -> dict[str, CommitResults | Fault]:
            answer = await cluster.send(node, _delete_call(group, offsets[group]), purpose=f"commit-{lane}")
            return {group: answer}

        answers: dict[str, CommitResults | Fault] = await cluster.spread_groups([group], send)
        return answers[group]

    return await _in_lanes(cluster, offsets, delete, None, lanes)


async def _in_lanes(
    cluster: WireCluster,
    groups: Collection[str],
    work: Callable[[str, int], Any],
    done: Callable[[str, CommitResults | Fault], None] | None,
    lanes: int,
) -> dict[str, CommitResults | Fault]:
    """Works through groups over several connections; the coordinators of all are asked for in one go beforehand."""
    await cluster.coordinators(groups)
    answers: dict[str, CommitResults | Fault] = {}
    waiting = iter(groups)

    async def worker(lane: int) -> None:
        for group in waiting:
            try:
                answers[group] = await work(group, lane)
            except ClusterUnreachable as error:
                answers[group] = fault_of_loss(error)
            if done is not None:
                done(group, answers[group])

    workers = [asyncio.ensure_future(worker(lane)) for lane in range(min(lanes, len(groups)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for each in workers:
            each.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return answers


def _fetch_call(
    groups: Sequence[str], partitions: Collection[TopicPartition] | None, *, require_stable: bool
) -> Call[dict[str, GroupOffsets | Fault]]:
    topics = None if partitions is None else by_topic(partitions)

    def write(out: Writer, version: int) -> None:
        if version >= 8:
            out.array(len(groups))
        for group in groups:
            out.string(group)
            if version >= 9:
                out.string(None)  # no member
                out.int32(-1)
            if topics is None:
                out.array(None)
            else:
                write_topics(out, topics)
            if version >= 8:
                out.tags()
        if version >= 7:
            out.int8(1 if require_stable else 0)
        out.tags()

    def read(reader: Reader, version: int) -> dict[str, GroupOffsets | Fault]:
        reader.int32()
        answers: dict[str, GroupOffsets | Fault] = {}
        for _ in range(reader.array() if version >= 8 else 1):
            group = reader.string() if version >= 8 else groups[0]
            offsets = _read_offsets(reader)
            answers[group] = maybe_fault(reader.int16()) or offsets
            reader.tags()
        return answers

    # Version 7 brings require_stable, version 10 replaces names by topic ids.
    return written(_OFFSET_FETCH, 7 if require_stable else 6, 9, flexible_from=6, write=write, read=read)


def _read_offsets(reader: Reader) -> GroupOffsets:
    offsets: GroupOffsets = {}
    for tp in partitions_of(reader):
        offset, epoch, metadata, error = reader.int64(), reader.int32(), reader.raw_string(), reader.int16()
        reader.tags()
        if error:
            offsets[tp] = fault(error)
        elif offset >= 0:
            offsets[tp] = Commit(offset, metadata or b"", epoch if epoch >= 0 else None)
    return offsets


def _commit_call(group: str, commits: Mapping[TopicPartition, Commit]) -> Call[CommitResults]:
    topics = by_topic(commits)

    def write(out: Writer, _: int) -> None:
        out.string(group)
        out.int32(-1)  # generation
        out.string("")  # member id
        out.string(None)  # group instance id
        out.array(len(topics))
        for name, numbers in topics.items():
            out.string(name)
            out.array(len(numbers))
            for number in numbers:
                commit = commits[TopicPartition(name, number)]
                out.int32(number)
                out.int64(commit.offset)
                out.int32(-1 if commit.leader_epoch is None else commit.leader_epoch)
                out.string(commit.metadata)
                out.tags()
            out.tags()
        out.tags()

    def read(reader: Reader, _: int) -> CommitResults:
        reader.int32()
        return _read_results(reader)

    return written(_OFFSET_COMMIT, 8, 9, flexible_from=8, write=write, read=read)


def _delete_call(group: str, partitions: Collection[TopicPartition]) -> Call[CommitResults | Fault]:
    def write(out: Writer, _: int) -> None:
        topics = by_topic(partitions)
        out.string(group)
        out.array(len(topics))
        for name, numbers in topics.items():
            out.string(name)
            out.int32s(numbers)

    def read(reader: Reader, _: int) -> CommitResults | Fault:
        error = reader.int16()
        reader.int32()
        return maybe_fault(error) or _read_results(reader)

    return written(_OFFSET_DELETE, 0, 0, flexible_from=1, write=write, read=read, throttle_at=2)


def _read_results(reader: Reader) -> CommitResults:
    results: CommitResults = {}
    for tp in partitions_of(reader):
        results[tp] = _final(maybe_fault(reader.int16()))
        reader.tags()
    return results


def _final(found: Fault | None) -> Fault | None:
    """Takes UNKNOWN_TOPIC_OR_PARTITION for the answer it is: the coordinator itself looked for the partition.

    Kafka counts it as passing because a client's metadata may be behind; retried, a commit for a topic
    that is not there took all of the accepted silence.
    """
    if found is None or found.number != _UNKNOWN_TOPIC_OR_PARTITION:
        return found
    return Fault(found.number, found.name, found.message, retriable=False)
