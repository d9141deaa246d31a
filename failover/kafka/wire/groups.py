"""Groups of every type: listed by all brokers, described by their coordinators, deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence

from failover.errors import ClusterError, ClusterUnreachable, CredentialsRefused
from failover.kafka.faults import maybe_fault
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.metadata import operation_names
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.rounds import lost, scatter
from failover.model.groups import GroupInfo, GroupType, ListedGroup, Member
from failover.model.names import Fault

_DESCRIBE_GROUPS, _LIST_GROUPS, _DELETE_GROUPS, _CONSUMER_DESCRIBE, _SHARE_DESCRIBE = 15, 16, 42, 69, 77
_GROUP_ID_NOT_FOUND, _UNSUPPORTED_VERSION = 69, 35
_GROUPS_AT_ONCE = 200


async def list_groups(cluster: WireCluster) -> tuple[dict[str, ListedGroup], tuple[Fault, ...]]:
    """Lists the groups of every broker, in the broker's own words, and the faults of brokers that could not be asked.

    Raises ``ClusterUnreachable`` when none answered.
    """
    answers = await asyncio.gather(
        *(cluster.send(node, _list_call()) for node in cluster.brokers), return_exceptions=True
    )
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
            found, reason = answer
            groups.update(found)
            faults += filter(None, [reason])
    if not answered:
        raise ClusterUnreachable(
            f"no broker of cluster {cluster.alias} lists its groups: {faults[0].message}", alias=cluster.alias
        )
    return groups, tuple(faults)


async def groups_of_brokers(cluster: WireCluster, nodes: Iterable[int]) -> dict[int, dict[str, ListedGroup] | Fault]:
    """Lists the groups of each of these brokers, or says why one does not; see ``list_groups``."""

    async def send(node: int, _: list[int]) -> dict[int, dict[str, ListedGroup] | Fault]:
        found, reason = await cluster.send(node, _list_call())
        return {node: found if reason is None else reason}

    return await scatter({node: node for node in nodes}, send)


async def describe_groups(
    cluster: WireCluster, groups: Iterable[str], types: Mapping[str, GroupType] | None = None
) -> dict[str, GroupInfo]:
    """Describes groups with members and this client's rights; absent ones come back with ``exists`` False.

    ``types``: what a listing said; a group of unknown type is asked for as a consumer group first, then as a
    classic one, as Kafka's own admin client does, and where it is neither as a share group: both calls tell
    of a share group as of one that is not there. States are the broker's own words (``Assigning``, …).
    """
    wanted, known = list(dict.fromkeys(groups)), types or {}
    newer = {name for name in wanted if known.get(name) in (None, GroupType.UNKNOWN, GroupType.CONSUMER)}
    share = {name for name in wanted if known.get(name) is GroupType.SHARE}
    if cluster.highest(_CONSUMER_DESCRIBE) < 0:
        newer.clear()
    shares = cluster.highest(_SHARE_DESCRIBE) >= 1
    if not shares:
        share.clear()
    described = await _describe(cluster, newer, _CONSUMER_DESCRIBE)
    described.update(await _describe(cluster, share, _SHARE_DESCRIBE))
    left = [name for name in wanted if name not in described or (not described[name].exists and name in newer)]
    described.update(await _describe(cluster, left, _DESCRIBE_GROUPS))
    if shares:
        absent = [name for name in left if name not in share and not described[name].exists]
        found = await _describe(cluster, absent, _SHARE_DESCRIBE)
        described.update((name, info) for name, info in found.items() if info.exists and info.fault is None)
    return {name: described[name] for name in wanted}


async def delete_groups(cluster: WireCluster, groups: Iterable[str]) -> dict[str, Fault | None]:
    """Deletes groups: None when deleted, NON_EMPTY_GROUP (68), GROUP_ID_NOT_FOUND (69)."""

    async def send(node: int, names: list[str]) -> dict[str, Fault | None]:
        return await cluster.send(node, _delete_call(names))

    return await cluster.spread_groups(groups, send)


async def _describe(cluster: WireCluster, groups: Collection[str], key: int) -> dict[str, GroupInfo]:
    """Describes groups by API ``key``; those of another protocol come back as absent."""

    async def send(node: int, names: list[str]) -> dict[str, GroupInfo | Fault]:
        described: dict[str, GroupInfo | Fault] = {}
        for piece in _pieces(names):
            make = _classic_call if key == _DESCRIBE_GROUPS else _describe_call
            answer = await cluster.send(node, make(piece, key))
            described.update(answer)
        return described

    return _settled(await cluster.spread_groups(groups, send))


def _list_call() -> Call[tuple[dict[str, ListedGroup], Fault | None]]:
    def write(out: Writer, version: int) -> None:
        if version >= 4:
            out.strings(())  # of every state
        if version >= 5:
            out.strings(())  # of every type
        out.tags()

    def read(reader: Reader, version: int) -> tuple[dict[str, ListedGroup], Fault | None]:
        reader.int32()
        error = reader.int16()
        groups = {}
        for _ in range(reader.array()):
            name, protocol = reader.string(), reader.string()
            state = reader.string() if version >= 4 else ""
            kind = _type(reader.string()) if version >= 5 else _type_of_old(protocol)
            reader.tags()
            groups[name] = ListedGroup(name, kind, state, protocol)
        return groups, maybe_fault(error)

    return written(_LIST_GROUPS, 3, 5, flexible_from=3, write=write, read=read)


def _delete_call(groups: Sequence[str]) -> Call[dict[str, Fault | None]]:
    def write(out: Writer, _: int) -> None:
        out.strings(groups)
        out.tags()

    def read(reader: Reader, _: int) -> dict[str, Fault | None]:
        reader.int32()
        results = {}
        for _ in range(reader.array()):
            name, error = reader.string(), reader.int16()
            reader.tags()
            results[name] = maybe_fault(error)
        return results

    return written(_DELETE_GROUPS, 2, 2, flexible_from=2, write=write, read=read)


def _classic_call(groups: Sequence[str], key: int) -> Call[dict[str, GroupInfo | Fault]]:
    def write(out: Writer, _: int) -> None:
        out.strings(groups)
        out.int8(1)  # with this client's rights
        out.tags()

    def read(reader: Reader, _: int) -> dict[str, GroupInfo | Fault]:
        reader.int32()
        described: dict[str, GroupInfo | Fault] = {}
        for _ in range(reader.array()):
            error = reader.int16()
            name, state, protocol = reader.string(), reader.string(), reader.string()
            reader.string()  # protocol data: the assignor
            members = tuple([_read_classic_member(reader) for _ in range(reader.array())])
            rights = operation_names(reader.int32())
            reader.tags()
            if error == 0 and state == "Dead":
                described[name] = _absent(name, rights)
            else:
                described[name] = maybe_fault(error) or GroupInfo(
                    name=name,
                    exists=True,
                    type=GroupType.CLASSIC,
                    state=state,
                    members=members,
                    simple=protocol == "",
                    operations=rights,
                )
        return described

    # Version 6 says GROUP_ID_NOT_FOUND of an absent group and no longer what this client may do with it.
    return written(key, 5, 5, flexible_from=5, write=write, read=read)


def _read_classic_member(reader: Reader) -> Member:
    member_id, instance = reader.string(), reader.nullable_string()
    client_id, host = reader.string(), reader.string()
    reader.sized()  # subscription
    reader.sized()  # assignment
    reader.tags()
    return Member(client_id, host, member_id, instance)


def _describe_call(groups: Sequence[str], key: int) -> Call[dict[str, GroupInfo | Fault]]:
    share = key == _SHARE_DESCRIBE

    def write(out: Writer, _: int) -> None:
        out.strings(groups)
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
            # Kafka 3.7 to 3.9 offer the call and refuse it where the protocol is not switched on (measured on 3.9.1).
            if error == _GROUP_ID_NOT_FOUND or (error == _UNSUPPORTED_VERSION and not share):
                described[name] = _absent(name)
            else:
                described[name] = maybe_fault(error, text) or GroupInfo(
                    name=name,
                    exists=True,
                    type=GroupType.SHARE if share else GroupType.CONSUMER,
                    state=state,
                    members=members,
                    operations=operation_names(rights),
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


def _absent(name: str, rights: frozenset[str] | None = None) -> GroupInfo:
    return GroupInfo(name, exists=False, type=GroupType.UNKNOWN, state="Dead", operations=rights)


def _settled(answers: Mapping[str, GroupInfo | Fault]) -> dict[str, GroupInfo]:
    return {
        name: GroupInfo(name, exists=True, type=GroupType.UNKNOWN, state="Unknown", fault=answer)
        if isinstance(answer, Fault)
        else answer
        for name, answer in answers.items()
    }


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
