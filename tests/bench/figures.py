"""Figures as a table on the screen and in docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
import re
import statistics
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tabulate import tabulate

from failover.lab.jars import DEFAULT_VERSION
from failover.lab.java import find_java
from tests.bench.measure import Run

PAGE = Path(__file__).parents[2] / "docs/benchmarks.md"
HEADER = ("figure", "median", "min", "max", "runs", "goal")


class Figures:
    """Collects the figures of one benchmark; ``publish`` prints them and replaces its block in the page.

    ``name`` is that of the block, ``title`` its heading.
    """

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.title = title
        self.load = os.getloadavg()[0]
        self._tables: list[tuple[Sequence[str], list[Sequence[str]]]] = []
        self._notes: list[str] = []

    def add(self, what: str, values: Sequence[float], *, goal: str = "") -> None:
        """Adds one row; ``goal`` (``< 3``, ``>= 8``) is compared with the median and the result shown."""
        middle = statistics.median(values)
        shown = f"{goal}: {'met' if _meets(middle, goal) else 'MISSED'}" if goal else ""
        row = (what, _number(middle), _number(min(values)), _number(max(values)), str(len(values)), shown)
        if not self._tables or self._tables[-1][0] is not HEADER:
            self._tables.append((HEADER, []))
        self._tables[-1][1].append(row)

    def process(self, what: str, runs: Sequence[Run], *, seconds: str = "", megabytes: str = "") -> None:
        """Adds the rows of a process: wall time, CPU time, peak memory, with the goals of the first and the last."""
        self.add(f"{what}, s", [run.seconds for run in runs], goal=seconds)
        self.add(f"{what}, CPU s", [run.cpu for run in runs])
        self.add(f"{what}, peak MB", [run.megabytes for run in runs], goal=megabytes)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Adds a table of its own form."""
        self._tables.append((header, [[_cell(value) for value in row] for row in rows]))

    def note(self, text: str) -> None:
        """Adds a sentence below the tables."""
        self._notes.append(text)

    def publish(self) -> None:
        """Prints the figures and puts them into the page, in place of the block of the same name."""
        tables = [tabulate(rows, header, "pipe", disable_numparse=True) for header, rows in self._tables]
        parts = [f"### {self.title}", f"{machine()}, load {self.load:.1f} before.", *tables, *self._notes]
        text = "\n\n".join(parts)
        sys.stdout.write(f"\n{text}\n\n")
        begin, end = f"<!-- bench: {self.name} -->", f"<!-- end: {self.name} -->"
        block = f"{begin}\n\n{text}\n\n{end}"
        page = PAGE.read_text(encoding="utf-8")
        known = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        page = known.sub(lambda _: block, page) if known.search(page) else f"{page.rstrip()}\n\n{block}\n"
        PAGE.write_text(page, encoding="utf-8")


def machine() -> str:
    """Says when and on what was measured."""
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return (
        f"{today}, Kafka {DEFAULT_VERSION} on Java {find_java().major}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}"
    )


def _meets(value: float, goal: str) -> bool:
    sign, limit = goal.split()
    return value < float(limit) if sign == "<" else value >= float(limit)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
