"""A progress bar on stderr, only on a terminal and only for work that lasts."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from failover.cli.frame import Settings

PATIENCE = 1.0
"""Seconds of work before a bar appears."""


class ProgressBar:
    """Shows how far a command is; call it with a label, how many are done, and of how many."""

    def __init__(self, settings: Settings) -> None:
        self._color = settings.color
        self._wanted = sys.stderr.isatty() and not settings.quiet
        self._started = time.monotonic()
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        """Shows one more step."""
        if not self._wanted or (self._bar is None and time.monotonic() - self._started < PATIENCE):
            return
        bar = self._bar or self._open()
        if label not in self._tasks:
            self._tasks[label] = bar.add_task(label, total=total)
        bar.update(self._tasks[label], completed=done, total=total)

    def _open(self) -> Progress:
        # rich is imported only here: most commands end before a bar would appear.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(30),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            # without the option, rich itself looks at NO_COLOR
            console=Console(stderr=True, no_color=None if self._color else True),
            transient=True,
        )
        self._bar.start()
        return self._bar
