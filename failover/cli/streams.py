"""Output that nobody cuts: a stream whose other holder made it non-blocking is waited for."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any, TextIO


class _Patient(io.FileIO):
    """Waits where a write would block: a buffered writer gives up there and loses what is left."""

    def write(self, data: Any, /) -> int:
        while (written := super().write(data)) is None:
            watched = select.poll()
            watched.register(self.fileno(), select.POLLOUT)
            watched.poll()
        return written


def wait_for_readers() -> None:
    """Replaces standard output and error where they were inherited non-blocking (Node.js leaves pipes that way).

    The descriptor itself stays as it is: whoever shares it relies on that.
    """
    sys.stdout, sys.stderr = _patient(sys.stdout), _patient(sys.stderr)


def fitting(text: str, encoding: str | None, form: str) -> str:
    """Gives a result as the terminal's encoding can hold it: what cannot be written is escaped as its form escapes."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        if form == "json":
            from failover.report.inert import ascii_json

            return ascii_json(text)
        escaped = "xmlcharrefreplace" if form in ("html", "markdown") else "backslashreplace"
        return text.encode(encoding or "utf-8", escaped).decode(encoding or "utf-8")
    return text


def _patient(stream: TextIO) -> TextIO:
    try:
        descriptor = stream.fileno()
        if os.get_blocking(descriptor):
            return stream
    except (AttributeError, OSError, ValueError):  # there is none, or it is closed
        return stream
    raw = _Patient(descriptor, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=stream is sys.stderr or stream.isatty()
    )
