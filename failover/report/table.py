"""Plain-text tables that fit the screen."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from failover.report.inert import inert_line

GAP = 2


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int = 100,
    numbers: frozenset[str] | None = None,
    keep: frozenset[str] = frozenset(),
    wrap: bool = False,
) -> str:
    """Lays out rows under headers, ``width`` columns at most, no trailing spaces.

    Columns named in ``numbers`` are set to the right; without it every column that holds nothing
    but numbers is. What does not fit is cut, with an ellipsis: the last column first, then the
    first; columns named in ``keep`` never are, since people copy from them. With ``wrap`` the last column goes on
    below instead, for prose that is there to be read. Cells are made inert.
    Wide characters (CJK, emoji) count as two columns.
    """
    from tabulate import tabulate

    cells = [[inert_line(cell) for cell in row] for row in rows]
    right = [
        header in numbers if numbers is not None else bool(cells) and all(_is_number(row[i]) for row in cells)
        for i, header in enumerate(headers)
    ]
    widths = [max([screen_width(h), *(screen_width(row[i]) for row in cells)]) for i, h in enumerate(headers)]
    kept = frozenset(i for i, h in enumerate(headers) if h in keep)
    limits = _fit(widths, [screen_width(h) for h in headers], width, kept)
    if wrap:
        cells = [line for row in cells for line in _below(row, limits[-1])]
    cut = [[shorten(cell, limits[i]) for i, cell in enumerate(row)] for row in cells]
    # As a row, since tabulate pads every header by two columns.
    text = tabulate(
        [list(headers), *cut],
        tablefmt="plain",
        disable_numparse=True,
        colalign=["right" if is_right else "left" for is_right in right],
    )
    return "\n".join(line.rstrip() for line in text.splitlines())


def _below(row: list[str], width: int) -> Iterator[list[str]]:
    """Yields a row with its last cell wrapped to ``width``: further lines stand under it, alone."""
    import textwrap

    first, *more = textwrap.wrap(row[-1], width, break_on_hyphens=False) or [""]
    yield [*row[:-1], first]
    yield from ([""] * (len(row) - 1) + [line] for line in more)


def _is_number(cell: str) -> bool:
    return cell.lstrip("<=~ ").replace(",", "").isdigit() or cell in ("-", "")


def _fit(widths: list[int], least: list[int], width: int, keep: frozenset[int]) -> list[int]:
    """Takes what is too much from the last column, then the first, then the widest; in need down to the headers."""
    limits = list(widths)
    over = sum(limits) + GAP * (len(limits) - 1) - width
    last = len(limits) - 1
    order = dict.fromkeys([last, 0, *sorted(range(1, last), key=lambda i: -widths[i])])
    for comfortable in (True, False):
        for i in order:
            floor = max(least[i], min(widths[i], 16 if i == last else 12)) if comfortable else least[i]
            if over > 0 and i not in keep:
                taken = min(over, max(0, limits[i] - floor))
                limits[i] -= taken
                over -= taken
    return limits


def screen_width(text: str) -> int:
    """Counts the columns a text takes on a screen: two for wide characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def shorten(text: str, width: int) -> str:
    """Cuts a text to a width, with an ellipsis."""
    if screen_width(text) <= width:
        return text
    kept = text[: max(0, width - 1)]
    while kept and screen_width(kept) > width - 1:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def labelled(label: str, text: str, *, width: int = 100, indent: int = 9) -> list[str]:
    """Wraps a text behind a label; following lines stand under its beginning.

    A command at the end of the text (behind ``then: ``, or one of Kafka's scripts behind ``-> ``) is never broken so
    that a copied piece of it would run by itself: it goes on behind a backslash.
    """
    import textwrap

    lines = textwrap.wrap(
        text,
        width,
        initial_indent=label.ljust(indent),
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=True,
    ) or [label]
    found = _COMMAND.search(text)
    if found is None or any(found.group() in line for line in lines):
        return lines
    before, after = text[: found.start()].rstrip(), text[found.end() :].strip()
    head = "" if before == "->" or not before else before
    lines = labelled(label, head, width=width, indent=indent) if head else []
    first = (" " * indent) if head else label.ljust(indent) + (f"{before} " if before else "")
    lines += _continued(found.group(), first, " " * len(first), width)
    return lines + (labelled("", after, width=width, indent=indent) if after else [])


_COMMAND = re.compile(r"(?<=then: )failover [^;]*$|(?<=^-> )kafka-[a-z-]+\.sh .*?(?= \([^()]*\)$|$)")
_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"]|['"])+""")


def _continued(command: str, first: str, indent: str, width: int) -> list[str]:
    """Breaks a command between its words; a shell reads the lines as one."""
    lines, line = [], first
    for word in _WORD.findall(command):
        grown = line + ("" if line in (first, indent) else " ") + word
        if screen_width(grown) > width - 2 and line not in (first, indent):
            lines.append(f"{line} \\")
            grown = indent + word
        line = grown
    return [*lines, line]
