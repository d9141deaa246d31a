"""Reads which users brokers know by SCRAM (Kafka: KIP-554); no password or salt is ever told."""

from __future__ import annotations

from collections.abc import Sequence

from failover.kafka.faults import maybe_fault
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.controller import or_unsupported
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.rounds import settle
from failover.model.names import Fault
from failover.model.rights import ScramUser

DESCRIBE_SCRAM_USERS = 50

_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_SECONDS = 10.0


async def scram_users(cluster: WireCluster) -> tuple[ScramUser, ...] | Fault:
    """Reads every user, in name order, in one request.

    UNSUPPORTED_VERSION (35) before Kafka 2.7. Without DESCRIBE on the cluster a broker may not answer at all (measured
    on Kafka 4.1.1), and so hold up what is asked over the same connection.
    Raises ``ClusterUnreachable``, ``CredentialsRefused``.
    """

    async def ask(_: Sequence[int], __: bool) -> dict[int, tuple[ScramUser, ...] | Fault]:
        return await or_unsupported([0], cluster.ask_any(_call()))

    return (await settle([0], ask, budget=min(cluster.silence, _SECONDS)))[0]


def _call() -> Call[dict[int, tuple[ScramUser, ...] | Fault]]:
    def write(out: Writer, _: int) -> None:
        out.array(None)  # every user
        out.tags()

    def read(reader: Reader, _: int) -> dict[int, tuple[ScramUser, ...] | Fault]:
        reader.int32()
        reason = maybe_fault(reader.int16(), reader.nullable_string())
        users = []
        for _ in range(reader.array()):
            name, fault = reader.string(), maybe_fault(reader.int16(), reader.nullable_string())
            found = []
            for _ in range(reader.array()):
                mechanism, iterations = reader.int8(), reader.int32()
                reader.tags()
                found.append((_MECHANISMS.get(mechanism, f"mechanism {mechanism}"), iterations))
            reader.tags()
            if fault is None:
                users.append(ScramUser(name, tuple(sorted(found))))
        reader.tags()
        return {0: reason or tuple(sorted(users))}

    return written(DESCRIBE_SCRAM_USERS, 0, 0, flexible_from=0, write=write, read=read)
