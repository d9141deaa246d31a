"""Questions to many items of which some get no answer: these are asked again beside, and hold up nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Generic, TypeVar

from failover.errors import ClusterError
from failover.kafka.faults import fault_of_loss
from failover.model.names import Fault

K = TypeVar("K")
V = TypeVar("V")


class Aside(Generic[K, V]):
    """Asks about items again and again.

    An item whose answer was a fault that passes waits for its broker in a task of its own from then on, the whole
    accepted silence long; the others are answered meanwhile. ``late``: the items that are asked beside now.
    """

    def __init__(self, ask: Callable[[Collection[K]], Awaitable[Mapping[K, V | Fault]]]) -> None:
        self.late: frozenset[K] = frozenset()
        self._ask = ask
        self._task: asyncio.Future[Mapping[K, V | Fault]] | None = None
        self._last: dict[K, Fault] = {}

    async def __call__(self, items: Collection[K]) -> dict[K, V | Fault]:
        """Answers all items; one that is asked beside gets its fault until it has an answer.

        Raises what ``ask`` raises where the cluster as a whole cannot be asked.
        """
        answers: dict[K, V | Fault] = {}
        if self._task is not None and self._task.done():
            answers.update(self._came(self._task))
            self._task, self.late = None, frozenset()
        prompt = [item for item in items if item not in self.late and item not in answers]
        if prompt:
            answers.update(await self._ask(prompt))
        wanted = set(items)
        waiting = {item: found for item, found in answers.items() if isinstance(found, Fault) and _passes(found)}
        if self._task is None and (late := frozenset(waiting.keys() & wanted)):
            self.late, self._last = late, {item: waiting[item] for item in late}
            self._task = asyncio.ensure_future(self._ask(list(late)))
        answers.update((item, self._last[item]) for item in self.late if item not in answers)
        return {item: answers[item] for item in wanted}

    async def close(self) -> None:
        """Gives up what is asked beside."""
        task, self._task, self.late = self._task, None, frozenset()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _came(self, task: asyncio.Future[Mapping[K, V | Fault]]) -> Mapping[K, V | Fault]:
        try:
            return task.result()
        except ClusterError as error:
            return dict.fromkeys(self.late, fault_of_loss(error))


def _passes(found: Fault) -> bool:
    return found.retriable or found.number < 0
