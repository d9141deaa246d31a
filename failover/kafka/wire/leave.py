"""Removes members from a group on their behalf."""

from __future__ import annotations

from collections.abc import Sequence

from failover.kafka.faults import fault, maybe_fault
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.primitives import Reader, Writer
from failover.model.groups import GroupType, Member
from failover.model.names import Fault

_LEAVE_GROUP, _CONSUMER_HEARTBEAT = 13, 68
_LEAVING = -1
_UNKNOWN_MEMBER_ID = 25

Removed = dict[str, Fault | None]


async def remove_members(
    cluster: WireCluster, group: str, kind: GroupType, members: Sequence[Member]
) -> Removed | Fault:
    """Removes members by id, a static one by its instance id too; answers by member id, a Fault for the whole group.

    Classic groups: LeaveGroup (Kafka: KIP-345 lets an admin client send it for others). Groups of the
    consumer protocol: a last heartbeat in the member's name (Kafka: KIP-848, member epoch -1).
    A member that is gone by then counts as removed.
    """

    async def send(node: int, _: list[str]) -> dict[str, Removed | Fault]:
        if kind is not GroupType.CONSUMER:
            return {group: await cluster.send(node, _leave_call(group, members))}
        removed: Removed = {}
        for member in members:
            removed[member.member_id] = await cluster.send(node, _farewell_call(group, member))
        return {group: removed}

    answers: dict[str, Removed | Fault] = await cluster.spread_groups([group], send)
    answer = answers[group]
    if isinstance(answer, Fault):
        return answer
    gone = {name for name, found in answer.items() if found is not None and found.number == _UNKNOWN_MEMBER_ID}
    return {name: None if name in gone else found for name, found in answer.items()}


def _leave_call(group: str, members: Sequence[Member]) -> Call[Removed | Fault]:
    def write(out: Writer, version: int) -> None:
        out.string(group)
        out.array(len(members))
        for member in members:
            # a static member may have got a new id since it was described; its instance id names it
            out.string("" if member.group_instance_id is not None else member.member_id)
            out.string(member.group_instance_id)
            if version >= 5:
                out.string("removed by an operator (failover evict)")
            out.tags()
        out.tags()

    def read(reader: Reader, _: int) -> Removed | Fault:
        reader.int32()
        error = reader.int16()
        by_instance = {member.group_instance_id: member.member_id for member in members if member.group_instance_id}
        removed: Removed = {member.member_id: fault(_UNKNOWN_MEMBER_ID) for member in members}
        for _number in range(reader.array()):
            name, instance, found = reader.string(), reader.nullable_string(), reader.int16()
            reader.tags()
            removed[by_instance.get(instance, name) if instance is not None else name] = maybe_fault(found)
        return maybe_fault(error) or removed

    return written(_LEAVE_GROUP, 3, 5, flexible_from=4, write=write, read=read)


def _farewell_call(group: str, member: Member) -> Call[Fault | None]:
    def write(out: Writer, version: int) -> None:
        out.string(group)
        out.string(member.member_id)
        out.int32(_LEAVING)
        out.string(member.group_instance_id)
        out.string(None)  # rack
        out.int32(-1)  # rebalance timeout: unchanged
        out.array(None)  # subscribed topics: unchanged
        if version >= 1:
            out.string(None)  # subscribed pattern
        out.string(None)  # assignor
        out.array(None)  # partitions owned
        out.tags()

    def read(reader: Reader, _: int) -> Fault | None:
        reader.int32()
        error, text = reader.int16(), reader.nullable_string()
        return maybe_fault(error, text)

    return written(_CONSUMER_HEARTBEAT, 0, 1, flexible_from=0, write=write, read=read)
