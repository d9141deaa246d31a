"""Work that goes on beside the copying: done again and again, failing by itself, each trouble told once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from failover.errors import FailoverError

_log = logging.getLogger(__name__)

_RETRY_SECONDS = 30.0
_LOOK_SECONDS = 0.5


class Troubles:
    """Keeps what does not work at present: told when it begins and when it is over, however often it is seen."""

    def __init__(self) -> None:
        self._present: dict[str, str] = {}

    def tell(self, key: str, text: str, *, over: str = "") -> None:
        """Logs a trouble unless it is there already; ``over`` is for its end, none is logged without."""
        if key not in self._present:
            _log.warning("%s", text)
        self._present[key] = over

    def only(self, keys: Iterable[str] = ()) -> None:
        """Ends every trouble but these."""
        for key in self._present.keys() - set(keys):
            if over := self._present.pop(key):
                _log.warning("%s", over)


async def while_so(is_so: Callable[[], bool], work: Callable[[], Awaitable[None]]) -> None:
    """Does ``work`` while something is so, looked at twice a second, until cancelled; from its beginning each time."""
    while True:
        while not is_so():  # noqa: ASYNC110 - whoever changes it does so in another thread, or by the passing of time
            await asyncio.sleep(_LOOK_SECONDS)
        task = asyncio.ensure_future(work())
        try:
            while is_so():
                await asyncio.wait([task], timeout=_LOOK_SECONDS)
                if task.done():
                    return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def repeat(work: Callable[[], Awaitable[None]], *, seconds: float, what: str) -> None:
    """Does ``work`` now and every so many seconds, until cancelled.

    Whatever it raises is logged, once until it has succeeded again, and the work is tried again after half a minute at
    most. ``what`` begins the line.
    """
    troubles = Troubles()
    while True:
        pause = seconds
        try:
            await work()
        except FailoverError as error:
            hint = f"; {error.hint}" if error.hint else ""
            troubles.tell("failed", f"{what}: {error.message}{hint}; tried again", over=f"{what}: works again")
            pause = min(seconds, _RETRY_SECONDS)
        except Exception:  # noqa: BLE001 - a defect here is no reason to end the copying
            _log.exception("%s: unexpected error; tried again", what)
        else:
            troubles.only()
        await asyncio.sleep(pause)
