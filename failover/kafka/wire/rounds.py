"""How many items are asked for at once: spread over brokers, retried where a fault passes by itself."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from failover.errors import ClusterError, CredentialsRefused
from failover.kafka.faults import fault_of_loss
from failover.kafka.wire.connection import ConnectionLost
from failover.model.names import Fault

K = TypeVar("K")
V = TypeVar("V")

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5


async def settle(
    items: Iterable[K], ask: Callable[[Sequence[K], bool], Awaitable[Mapping[K, V | Fault]]], *, budget: float
) -> dict[K, V | Fault]:
    """Asks for items until each has a value or a fault that will not pass, ``budget`` seconds at most.

    ``ask`` gets the items still open and whether this is a repetition, so that leaders and coordinators are looked
    up anew; it answers all of them. A fault that outlives the budget is the answer.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + budget
    answers: dict[K, V | Fault] = {}
    open_items, again, pause = list(dict.fromkeys(items)), False, FIRST_PAUSE
    while open_items:
        answers.update(await ask(open_items, again))
        open_items = [item for item in open_items if _passes(answers[item])]
        if open_items and loop.time() + pause >= end:
            break
        if open_items:
            await asyncio.sleep(pause)
        again, pause = True, min(pause * 2, LONGEST_PAUSE)
    return answers


async def scatter(
    routes: Mapping[K, int | Fault], send: Callable[[int, list[K]], Awaitable[Mapping[K, V | Fault]]]
) -> dict[K, V | Fault]:
    """Sends each broker its items, all brokers at once, and gathers the answers.

    ``routes``: the broker of each item, or why there is none. A broker that cannot be asked gives its own items a
    fault and holds up no other; a lost connection is worth another try, silence is not. Raises
    ``CredentialsRefused``.
    """
    answers: dict[K, V | Fault] = {}
    shares: dict[int, list[K]] = defaultdict(list)
    for item, route in routes.items():
        if isinstance(route, Fault):
            answers[item] = route
        else:
            shares[route].append(item)
    results = await asyncio.gather(*(send(node, share) for node, share in shares.items()), return_exceptions=True)
    for share, result in zip(shares.values(), results, strict=True):
        if isinstance(result, ClusterError) and not isinstance(result, CredentialsRefused):
            reason = lost(result)
            answers.update((item, reason) for item in share)
        elif isinstance(result, BaseException):
            raise result
        else:
            answers.update(result)
    return answers


def lost(error: ClusterError) -> Fault:
    """Makes the fault of items whose broker was lost while they were read."""
    reason = fault_of_loss(error)
    silent = isinstance(error, ConnectionLost) and error.silent
    return Fault(reason.number, reason.name, reason.message, retriable=not silent)


async def first_answer(attempts: Sequence[Callable[[], Awaitable[V]]], *, stagger: float) -> V:
    """Gives the first answer of several who could give it, asking the next when one fails or takes ``stagger`` seconds.

    Raises ``CredentialsRefused`` if anyone refused them and nobody answered, else the last ``ClusterError``.
    """
    waiting, failures = list(attempts), []
    running: set[asyncio.Future[V]] = set()
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.ensure_future(waiting.pop(0)()))
            done, running = await asyncio.wait(
                running, timeout=stagger if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            # All are looked at before one is returned: asyncio complains of an exception nobody took.
            errors = [(attempt, attempt.exception()) for attempt in done]
            for attempt, error in errors:
                if error is None:
                    return attempt.result()
                if not isinstance(error, ClusterError):
                    raise error
                failures.append(error)
    finally:
        for attempt in running:
            attempt.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    raise next((error for error in failures if isinstance(error, CredentialsRefused)), failures[-1])


def _passes(answer: object) -> bool:
    return isinstance(answer, Fault) and answer.retriable
