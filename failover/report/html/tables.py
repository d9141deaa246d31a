"""Tables of a page: every value written here once, sorted, searched and shown in parts by the page's script.

A table's data goes into the page column by column, each distinct value once: 12,000 partitions
take a tenth of what a row of markup each would take, and the script compares numbers where it
would compare texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from failover.report.explain import entries
from failover.report.inert import inert_line
from failover.report.values import count, offset

SHOWN = 50
"""Rows that stand in the page as markup; the script shows more of them on demand."""


class Cell(NamedTuple):
    """Is one value: its text, the number it sorts by (None: below every number), and its tone."""

    text: str
    key: float | None = None
    tone: str = ""


class Column(NamedTuple):
    """Is one column. ``kind``: text (short), prose, name (set as code), number or tag.

    ``choice``: the page offers a list that narrows the table to one of the column's values.
    """

    name: str
    kind: str = "text"
    choice: bool = False

    @property
    def hint(self) -> str:
        """Says what the column means, "" where nothing is on record."""
        entry = entries().get(self.name.lower().replace(" ", "-"))
        return f"{entry.title[0].upper()}{entry.title[1:]}" if entry is not None else ""


class Table(NamedTuple):
    """Is one table. ``opens``: the id of a table that a row's first cell filters by its first column."""

    id: str
    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    opens: str = ""

    @property
    def shown(self) -> Sequence[tuple[Cell, ...]]:
        """Gives the rows that stand in the page as markup."""
        return self.rows[:SHOWN]

    @property
    def data(self) -> dict[str, Any]:
        """Gives the table for the page's script: see ``_packed``."""
        columns = [
            _packed(column, [row[number] for row in self.rows] if self.rows else [])
            for number, column in enumerate(self.columns)
        ]
        return {"rows": len(self.rows), "step": SHOWN, "opens": self.opens, "columns": columns}


def _packed(column: Column, cells: Sequence[Cell]) -> dict[str, Any]:
    """Writes a column as its distinct texts (``d``), sort keys (``k``) and tones (``t``), and each row's index (``i``).

    ``k`` is left out where the texts are the numbers, ``t`` where no cell has a tone, ``i`` where
    every value is another one.
    """
    distinct: dict[Cell, int] = {}
    index = [distinct.setdefault(cell, len(distinct)) for cell in cells]
    packed: dict[str, Any] = {"kind": column.kind, "choice": column.choice, "d": [cell.text for cell in distinct]}
    if column.kind == "number" and any(cell.text != str(cell.key) for cell in distinct):
        packed["k"] = [cell.key for cell in distinct]
    if any(cell.tone for cell in distinct):
        packed["t"] = [cell.tone for cell in distinct]
    if len(distinct) != len(index):
        packed["i"] = index
    return packed


def text(value: str, tone: str = "") -> Cell:
    """Makes a cell of any text, outside text included."""
    return Cell(inert_line(value), None, tone)


def number(value: int | None, tone: str = "") -> Cell:
    """Makes a cell that counts; the tone is for a number above zero."""
    return Cell(count(value), value, tone if value else "")


def place(value: int | None, absent: str = "-") -> Cell:
    """Makes a cell that holds an offset."""
    return Cell(absent if value is None else offset(value), value)


def total(numbers: Iterable[int | None]) -> int | None:
    """Adds up; unknown as soon as one is."""
    found = list(numbers)
    return None if None in found else sum(one for one in found if one is not None)
