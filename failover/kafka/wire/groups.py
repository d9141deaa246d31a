"""Groups of every type: listed by all brokers, described by their coordinators, deleted.

ConsumerGroupDescribe and ShareGroupDescribe are coded by hand: kafka-python does not know them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from failover.errors import ClusterError, ClusterUnreachable, CredentialsRefused
from failover.kafka.faults import maybe_fault
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.messages import Call, generated, written
from failover.kafka.wire.metadata import operation_names
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.rounds import lost
from failover.model.groups import GroupInfo, GroupType, ListedGroup, Member
from failover.model.names import Fault

_CONSUMER_DESCRIBE, _SHARE_DESCRIBE = 69, 77
_GROUP_ID_NOT_FOUND = 69
_NOT_SAID = -(1 << 31)
_GROUPS_AT_ONCE = 200


async def list_groups(cluster: WireCluster) -> tuple[dict[str, ListedGroup], tuple[Fault, ...]]:
    """Lists the groups of every broker, in the broker's own words, and the faults of brokers that could not be asked.

    Raises ``ClusterUnreachable`` when none answered.
    """
    from kafka.protocol.admin import ListGroupsRequest, ListGroupsResponse

    call = generated(ListGroupsRequest, ListGroupsResponse, 3, 5, {})
    answers = await asyncio.gather(*(cluster.send(node, call) for node in cluster.brokers), return_exceptions=True)
    groups: dict[str, ListedGroup] = {}
    faults: list[Fault] = []
    answered = False
    for answer in answers:
        if isinstance(answer, ClusterError) and not isinstance(answer, CredentialsRefused):
            faults.append(lost(answer))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            answered = True
            faults += filter(None, [maybe_fault(answer.error_code)])
            for row in answer.groups:
                kind = _type(row.group_type) if row.group_type else _type_of_old(row.protocol_type)
                groups[row.group_id] = ListedGroup(row.group_id, kind, row.group_state or "", row.protocol_type)
    if not answered:
        raise ClusterUnreachable(
            f"no broker of cluster {cluster.alias} lists its groups: {faults[0].message}", alias=cluster.alias
        )
    return groups, tuple(faults)


async def describe_groups(
    cluster: WireCluster, groups: Iterable[str], types: Mapping[str, GroupType] | None = None
) -> dict[str, GroupInfo]:
    """Describes groups with members and this client's rights; absent ones come back with ``exists`` False.

    ``types``: what a listing said; a group of unknown type is asked for as a consumer group first, then as a
    classic one, as Kafka's own admin client does. States are the broker's own words (``Assigning``,
    ``PreparingRebalance`` …).
    """
    wanted, known = list(dict.fromkeys(groups)), types or {}
    newer = {name for name in wanted if known.get(name) in (None, GroupType.UNKNOWN, GroupType.CONSUMER)}
    share = {name for name in wanted if known.get(name) is GroupType.SHARE}
    if cluster.highest(_CONSUMER_DESCRIBE) < 0:
        newer.clear()
    if cluster.highest(_SHARE_DESCRIBE) < 1:
        share.clear()
    described = await _describe(cluster, newer, _CONSUMER_DESCRIBE)
    described.update(await _describe(cluster, share, _SHARE_DESCRIBE))
    left = [name for name in wanted if name not in described or (not described[name].exists and name in newer)]
    described.update(await _describe_classic(cluster, left))
    return {name: described[name] for name in wanted}


async def delete_groups(cluster: WireCluster, groups: Iterable[str]) -> dict[str, Fault | None]:
    """Deletes groups: None when deleted, NON_EMPTY_GROUP (68), GROUP_ID_NOT_FOUND (69)."""
    from kafka.protocol.admin import DeleteGroupsRequest, DeleteGroupsResponse

    async def send(node: int, names: list[str]) -> dict[str, Fault | None]:
        call = generated(DeleteGroupsRequest, DeleteGroupsResponse, 1, 2, {"groups_names": names})
        answer = await cluster.send(node, call)
        return {row.group_id: maybe_fault(row.error_code) for row in answer.results}

    return await cluster.spread_groups(groups, send)


async def _describe_classic(cluster: WireCluster, groups: Sequence[str]) -> dict[str, GroupInfo]:
    from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse

    async def send(node: int, names: list[str]) -> dict[str, GroupInfo | Fault]:
        described: dict[str, GroupInfo | Fault] = {}
        for piece in _pieces(names):
            fields = {"groups": piece, "include_authorized_operations": True}
            call = generated(DescribeGroupsRequest, DescribeGroupsResponse, 5, 6, fields)
            answer = await cluster.send(node, call)
            described.update((row.group_id, _classic(row)) for row in answer.groups)
        return described

    return _settled(await cluster.spread_groups(groups, send))


def _classic(row: Any) -> GroupInfo | Fault:
    # Version 6 says GROUP_ID_NOT_FOUND of an absent group, older ones describe it as Dead.
    if row.error_code not in (0, _GROUP_ID_NOT_FOUND):
        return maybe_fault(row.error_code, row.error_message) or Fault(0, "NONE")
    exists = row.error_code == 0 and row.group_state != "Dead"
    members = (
        Member(member.client_id, member.client_host, member.member_id, member.group_instance_id)
        for member in row.members
    )
    return GroupInfo(
        name=row.group_id,
        exists=exists,
        type=GroupType.CLASSIC if exists else GroupType.UNKNOWN,
        state=row.group_state or "Dead",
        members=tuple(members),
        simple=exists and row.protocol_type == "",
        operations=operation_names(row.authorized_operations) if exists else None,
    )


async def _describe(cluster: WireCluster, groups: Collection[str], key: int) -> dict[str, GroupInfo]:
    """Describes groups of the protocol that API ``key`` is for; others come back as absent."""

    async def send(node: int, names: list[str]) -> dict[str, GroupInfo | Fault]:
        described: dict[str, GroupInfo | Fault] = {}
        for piece in _pieces(names):
            answer = await cluster.send(node, _describe_call(piece, key))
            described.update(answer)
        return described

    return _settled(await cluster.spread_groups(groups, send))


def _describe_call(groups: Sequence[str], key: int) -> Call[dict[str, GroupInfo | Fault]]:
    share = key == _SHARE_DESCRIBE

    def write(out: Writer, _: int) -> None:
        out.array(len(groups))
        for group in groups:
            out.string(group)
        out.int8(1)  # with this client's rights
        out.tags()

    def read(reader: Reader, version: int) -> dict[str, GroupInfo | Fault]:
        reader.int32()
        described: dict[str, GroupInfo | Fault] = {}
        for _ in range(reader.array()):
            error, text, name, state = reader.int16(), reader.nullable_string(), reader.string(), reader.string()
            reader.take(8)  # group epoch, assignment epoch
            reader.string()  # assignor
            members = tuple([_read_member(reader, version, share=share) for _ in range(reader.array())])
            rights = reader.int32()
            reader.tags()
            if error == _GROUP_ID_NOT_FOUND:
                described[name] = GroupInfo(name, exists=False, type=GroupType.UNKNOWN, state="Dead")
            else:
                described[name] = maybe_fault(error, text) or GroupInfo(
                    name=name,
                    exists=True,
                    type=GroupType.SHARE if share else GroupType.CONSUMER,
                    state=state,
                    members=members,
                    operations=_rights(rights),
                )
        return described

    low, high = (1, 1) if share else (0, 1)
    return written(key, low, high, flexible_from=0, write=write, read=read)


def _read_member(reader: Reader, version: int, *, share: bool) -> Member:
    member_id = reader.string()
    instance = None if share else reader.nullable_string()
    reader.nullable_string()  # rack
    reader.int32()  # member epoch
    client_id, host = reader.string(), reader.string()
    for _ in range(reader.array()):
        reader.string()  # subscribed topics
    if not share:
        reader.nullable_string()  # subscribed pattern
    for _ in range(1 if share else 2):  # assignment; of consumer groups also the target assignment
        for _ in range(reader.array()):
            reader.take(16)
            reader.string()
            reader.take(4 * reader.array())
            reader.tags()
        reader.tags()
    if not share and version >= 1:
        reader.int8()  # member type
    reader.tags()
    return Member(client_id, host, member_id, instance)


def _settled(answers: Mapping[str, GroupInfo | Fault]) -> dict[str, GroupInfo]:
    return {
        name: GroupInfo(name, exists=True, type=GroupType.UNKNOWN, state="Unknown", fault=answer)
        if isinstance(answer, Fault)
        else answer
        for name, answer in answers.items()
    }


def _rights(bits: int) -> frozenset[str] | None:
    return None if bits == _NOT_SAID else operation_names([code for code in range(32) if bits >> code & 1])


def _type(word: str) -> GroupType:
    try:
        return GroupType(word.lower())
    except ValueError:
        return GroupType.UNKNOWN


def _type_of_old(protocol_type: str) -> GroupType:
    """Tells the type where the broker does not (before Kafka 3.7): there are only classic groups."""
    return GroupType.CLASSIC if protocol_type in ("", "consumer", "connect") else GroupType.UNKNOWN


def _pieces(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[at : at + _GROUPS_AT_ONCE] for at in range(0, len(names), _GROUPS_AT_ONCE)]
