"""Several flows side by side in one process: each fails by itself, and one that cannot be reached is tried again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Literal, Protocol, TypeAlias

import msgspec

from failover.errors import ClusterUnreachable, FailoverError

_log = logging.getLogger(__name__)

FLOW: ContextVar[str] = ContextVar("flow", default="")
"""The flow that the running task works for, ``A->B``; for the log."""

_WORST_FIRST = (1, 7, 6, 8, 5, 3, 2, 4)


class Stoppable(Protocol):
    """Is a flow at work; see ``failover.replication.engine.Engine``."""

    def stop(self) -> None:
        """Ends it in good order."""


Work: TypeAlias = Callable[[Callable[[Stoppable], None]], Awaitable[None]]
"""Runs one flow to its end; what it is given must be called with it once its clusters answer."""


class Restart(msgspec.Struct, frozen=True):
    """Says whether a flow whose cluster does not answer is tried again, and after how many seconds: ``least`` doubles.

    Keys ``failover.replicator.restart``, ``.restart.min``, ``.restart.max``.
    """

    kind: Literal["never", "backoff"] = "backoff"
    least: float = 1.0
    most: float = 60.0


class Flows:
    """Runs flows until all have ended or ``stop`` is called.

    A flow that fails ends alone; it is logged, once. One whose cluster does not answer at its start waits and is tried
    again, as long as another flow is at work: when all wait, nothing is left to be kept going, and all end. Where flows
    are ``restartable``, one that failed in another way waits likewise, for ``begin_again``.
    """

    def __init__(self, work: Mapping[str, Work], restart: Restart | None = None, *, restartable: bool = False) -> None:
        self._restartable = restartable
        self._again = {name: asyncio.Event() for name in work}
        self._work = work
        self._restart = restart or Restart()
        self._at_work: dict[str, Stoppable] = {}
        self._waiting: set[str] = set()
        self._left = set(work)
        self._stop = asyncio.Event()
        self._hopeless = asyncio.Event()
        self._tasks: list[asyncio.Task[BaseException | None]] = []

    async def run(self) -> dict[str, BaseException]:
        """Gives the failures of the flows, in their order."""
        self._tasks = [asyncio.get_running_loop().create_task(self._keep(name), name=name) for name in self._work]
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        return {name: error for name, error in zip(self._work, ended, strict=True) if error is not None}

    def stop(self) -> None:
        """Ends every flow in good order; those that have not begun at once, and at the second call all of them."""
        again = self._stop.is_set()
        self._stop.set()
        for flow in self._at_work.values():
            flow.stop()
        for task in self._tasks:
            if again or (task.get_name() not in self._at_work and task.get_name() not in self._waiting):
                task.cancel()

    def begin_again(self, name: str) -> None:
        """Has a flow that waits tried now."""
        self._again[name].set()

    # -- inside ----------------------------------------------------------------------------------

    async def _keep(self, name: str) -> BaseException | None:
        FLOW.set(name if len(self._work) > 1 else "")
        try:
            return await self._until_it_ends(name)
        except asyncio.CancelledError:
            if self._stop.is_set():
                return None
            raise
        finally:
            self._left.discard(name)
            self._at_work.pop(name, None)
            self._judge()

    async def _until_it_ends(self, name: str) -> BaseException | None:
        said, pause = "", self._restart.least
        while True:
            try:
                await self._work[name](partial(self._started, name, bool(said)))
                return None
            except ClusterUnreachable as error:
                failure: BaseException = error
                again = self._restart.kind == "backoff" and len(self._work) > 1
            except FailoverError as error:
                failure, again = error, False
            except Exception as error:  # noqa: BLE001 - a defect met by one flow is no reason to end the others
                failure, again = error, False
                _log.debug("flow %s", name, exc_info=error)
            self._at_work.pop(name, None)
            waits = again or (self._restartable and len(self._work) > 1)
            seconds = pause if again else None
            if not waits or self._stop.is_set() or not await self._wait(name, failure, said, seconds):
                self._say(name, failure, "it has ended")
                return failure
            said, pause = str(failure), min(pause * 2, self._restart.most)

    async def _wait(self, name: str, failure: BaseException, said: str, seconds: float | None) -> bool:
        """Waits to try a flow again, until told to if there are no ``seconds``; False: nothing is left to wait for."""
        if str(failure) != said:
            self._say(name, failure, "it is tried again" if seconds is not None else "it waits to be restarted")
        self._waiting.add(name)
        self._judge()
        again = self._again[name]
        again.clear()
        ends = [asyncio.ensure_future(event.wait()) for event in (self._stop, self._hopeless, again)]
        try:
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        if self._stop.is_set() or self._hopeless.is_set():
            return False
        self._waiting.discard(name)
        return True

    def _started(self, name: str, late: bool, flow: Stoppable) -> None:
        if late:
            _log.warning("flow %s: its clusters answer now", name)
        self._at_work[name] = flow
        if self._stop.is_set():
            flow.stop()

    def _judge(self) -> None:
        if self._left <= self._waiting:
            self._hopeless.set()

    def _say(self, name: str, failure: BaseException, outcome: str) -> None:
        if len(self._work) == 1:
            return  # whoever runs the only one says it
        text = str(failure) if isinstance(failure, FailoverError) else f"unexpected: {failure!r}"
        hint = f" ({failure.hint})" if isinstance(failure, FailoverError) and failure.hint else ""
        _log.error("flow %s: %s%s; %s", name, text, hint, outcome)


def worst(errors: Mapping[str, BaseException]) -> BaseException | None:
    """Gives the failure whose exit code counts where several flows have failed; None where none has."""

    def rank(error: BaseException) -> int:
        code = error.exit_code if isinstance(error, FailoverError) else 1
        return _WORST_FIRST.index(code) if code in _WORST_FIRST else len(_WORST_FIRST)

    return min(errors.values(), key=rank, default=None)
