"""Sends changes to a cluster's controller: many in one request, in smaller ones where it takes no more at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from typing import TypeVar

from failover.errors import BrokerError
from failover.kafka.faults import fault
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.messages import Call
from failover.kafka.wire.rounds import scatter, settle
from failover.model.names import Fault

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_UNSUPPORTED_VERSION, _NOT_CONTROLLER, _NO_SERVER = 35, 41, -1
# INVALID_REQUEST, POLICY_VIOLATION: also the answer to a request with too many topics, or with more than 10,000
# partitions (Kafka: ReplicationControlManager).
_TOO_MANY = frozenset({42, 44})
_AT_ONCE = 200


async def at_controller(
    cluster: WireCluster, items: Sequence[K], call: Callable[[Sequence[K]], Call[dict[K, V | Fault]]]
) -> dict[K, V | Fault]:
    """Sends the controller some items, following it when it moves.

    Without ZooKeeper every broker passes them on, and metadata names any of them as the controller.
    """

    async def send(node: int, share: list[K]) -> dict[K, V | Fault]:
        return await or_unsupported(share, cluster.send(node, call(share), patience=cluster.silence))

    async def ask(open_items: Sequence[K], again: bool) -> dict[K, V | Fault]:
        if again or cluster.controller is None:
            await cluster.metadata()
        node = cluster.controller
        absent = fault(_NOT_CONTROLLER, f"cluster {cluster.alias} names no controller")
        return await scatter(dict.fromkeys(open_items, absent if node is None else node), send)

    return await settle(items, ask, budget=cluster.silence)


async def in_pieces(
    items: Collection[K], send: Callable[[Sequence[K]], Awaitable[dict[K, V | Fault]]]
) -> dict[K, V | Fault]:
    """Sends items in pieces, smaller ones where the broker takes no more at once, one after the other."""
    answers: dict[K, V | Fault] = {}
    waiting, size = list(items), _AT_ONCE
    while waiting:
        piece = waiting[:size]
        answer = await send(piece)
        numbers = {found.number if isinstance(found, Fault) else 0 for found in answer.values()}
        if len(piece) > 1 and numbers <= _TOO_MANY:
            size = len(piece) // 2
            continue
        answers.update(answer)
        del waiting[:size]
        if max(numbers) < _NO_SERVER:
            # Nobody there: each further piece would wait as long.
            answers.update(dict.fromkeys(waiting, next(iter(answer.values()))))
            break
    return answers


async def or_unsupported(items: Iterable[K], asked: Awaitable[dict[K, V | Fault]]) -> dict[K, V | Fault]:
    """Gives the answer, or the fault of a broker that speaks no fitting version."""
    try:
        return await asked
    except BrokerError as error:
        if error.number != _UNSUPPORTED_VERSION:
            raise
        return dict.fromkeys(items, fault(_UNSUPPORTED_VERSION, error.message))
