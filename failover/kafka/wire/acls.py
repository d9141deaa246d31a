"""Reads, creates and deletes ACLs, many in one request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from failover.kafka.faults import maybe_fault
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.controller import at_controller, in_pieces, or_unsupported
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.rounds import settle
from failover.model.names import Fault

DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 29, 30, 31

_ANY = 1
_DESCRIBE_SECONDS = 10.0


class AclResource(IntEnum):
    """Is a kind of resource (Kafka: ResourceType)."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class AclPattern(IntEnum):
    """Says how an ACL's name is compared (Kafka: PatternType)."""

    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """Is an operation (Kafka: AclOperation)."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    """Says whether an ACL allows or denies (Kafka: AclPermissionType)."""

    DENY = 2
    ALLOW = 3


class Acl(NamedTuple):
    """Is one ACL. ``operation`` and the other numbers: a member of the enumerations above, or one that is newer."""

    name: str
    principal: str
    host: str
    operation: int
    permission: int
    resource: int = AclResource.TOPIC
    pattern: int = AclPattern.LITERAL

    def __str__(self) -> str:
        permission, operation = word(AclPermission, self.permission), word(AclOperation, self.operation)
        return f"{permission} {operation} for {self.principal} from {self.host} on {self.name}"


def word(words: type[IntEnum], number: int) -> str:
    """Gives a number's word, or the number of one that is newer."""
    return next((each.name for each in words if each == number), str(number))


async def describe_acls(
    cluster: WireCluster, resource: int = AclResource.TOPIC, pattern: int | None = None
) -> tuple[Acl, ...] | Fault:
    """Reads every ACL on resources of a kind, of one kind of pattern if given.

    SECURITY_DISABLED (54) where brokers have no authorizer, CLUSTER_AUTHORIZATION_FAILED (31) without DESCRIBE on the
    cluster. Raises ``ClusterUnreachable``, ``CredentialsRefused``.
    """

    async def ask(_: Sequence[int], __: bool) -> dict[int, tuple[Acl, ...] | Fault]:
        call = _describe_call(resource, _ANY if pattern is None else pattern)
        return await or_unsupported([resource], cluster.ask_any(call))

    return (await settle([resource], ask, budget=min(cluster.silence, _DESCRIBE_SECONDS)))[resource]


async def create_acls(cluster: WireCluster, acls: Iterable[Acl]) -> dict[Acl, Fault | None]:
    """Creates ACLs; one that is there stays as it is, and is no fault.

    Faults as of ``describe_acls``, the right being ALTER on the cluster. Raises ``ClusterUnreachable``,
    ``CredentialsRefused``.
    """
    return await in_pieces(list(dict.fromkeys(acls)), lambda piece: at_controller(cluster, piece, _create_call))


async def delete_acls(cluster: WireCluster, acls: Iterable[Acl]) -> dict[Acl, Fault | None]:
    """Deletes these very ACLs; one that is not there is no fault. Faults and errors as of ``create_acls``."""
    return await in_pieces(list(dict.fromkeys(acls)), lambda piece: at_controller(cluster, piece, _delete_call))


# -- inside ------------------------------------------------------------------------------------------


def _describe_call(resource: int, pattern: int) -> Call[dict[int, tuple[Acl, ...] | Fault]]:
    def write(out: Writer, _: int) -> None:
        out.int8(resource)
        out.string(None)  # every name
        out.int8(pattern)
        out.string(None)  # every principal
        out.string(None)  # every host
        out.int8(_ANY)
        out.int8(_ANY)
        out.tags()

    def read(reader: Reader, _: int) -> dict[int, tuple[Acl, ...] | Fault]:
        reader.int32()
        reason = maybe_fault(reader.int16(), reader.nullable_string())
        found: list[Acl] = []
        for _ in range(reader.array()):
            kind, name, how = reader.int8(), reader.string(), reader.int8()
            for _ in range(reader.array()):
                principal, host = reader.string(), reader.string()
                found.append(Acl(name, principal, host, reader.int8(), reader.int8(), kind, how))
                reader.tags()
            reader.tags()
        return {resource: reason or tuple(found)}

    return written(DESCRIBE_ACLS, 1, 3, flexible_from=2, write=write, read=read)


def _create_call(acls: Sequence[Acl]) -> Call[dict[Acl, Fault | None]]:
    return _change_call(CREATE_ACLS, acls, lambda reader: maybe_fault(reader.int16(), reader.nullable_string()))


def _delete_call(acls: Sequence[Acl]) -> Call[dict[Acl, Fault | None]]:
    # Every field of a filter is given, so that it matches its ACL and no other.
    return _change_call(DELETE_ACLS, acls, _read_deleted)


def _change_call(
    key: int, acls: Sequence[Acl], read_one: Callable[[Reader], Fault | None]
) -> Call[dict[Acl, Fault | None]]:
    """Makes a request that names ACLs by all their fields; ``read_one`` reads the answer to one of them."""

    def write(out: Writer, _: int) -> None:
        out.array(len(acls))
        for acl in acls:
            out.int8(acl.resource)
            out.string(acl.name)
            out.int8(acl.pattern)
            out.string(acl.principal)
            out.string(acl.host)
            out.int8(acl.operation)
            out.int8(acl.permission)
            out.tags()
        out.tags()

    def read(reader: Reader, _: int) -> dict[Acl, Fault | None]:
        reader.int32()
        reasons = []
        for _ in range(reader.array()):
            reasons.append(read_one(reader))
            reader.tags()
        if len(reasons) != len(acls):
            raise ValueError(f"{len(reasons)} answers to {len(acls)} ACLs")
        return dict(zip(acls, reasons, strict=True))

    return written(key, 1, 3, flexible_from=2, write=write, read=read)


def _read_deleted(reader: Reader) -> Fault | None:
    reason = maybe_fault(reader.int16(), reader.nullable_string())
    for _ in range(reader.array()):
        reason = reason or maybe_fault(reader.int16(), reader.nullable_string())
        reader.int8()
        reader.string()
        reader.int8()
        reader.string()
        reader.string()
        reader.int8()
        reader.int8()
        reader.tags()
    return reason
