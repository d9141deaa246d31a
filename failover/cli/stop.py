"""Ctrl-C and SIGTERM while something is written: the first one stops at the next safe moment."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from failover.errors import Interrupted

if TYPE_CHECKING:
    from failover.cli.frame import Settings

_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


class Stop:
    """Is asked between steps whether to go on; a context manager around the work.

    Calling it gives why to stop, "" to go on. A second signal does not wait: it raises
    ``Interrupted`` where the work stands.
    """

    def __init__(self, settings: Settings) -> None:
        self.number = 0
        self._settings = settings
        self._kept: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in _NAMES:
            self._kept[number] = signal.signal(number, self._caught)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._kept.items():
            signal.signal(number, handler)

    def __call__(self) -> str:
        return _NAMES[signal.Signals(self.number)] if self.number else ""

    def _caught(self, number: int, frame: FrameType | None) -> None:
        if self.number:
            raise Interrupted("stopped at once", signal_number=number)
        self.number = number
        self._settings.say("stopping once what is under way is written and read back; once more stops at once")
