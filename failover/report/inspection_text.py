"""What is in MM2's internal topics, as a table; and one line a record while it is followed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from failover.model.inspection import (
    CheckpointRow,
    HeartbeatRow,
    Inspection,
    OffsetSyncRow,
    PositionRow,
    Row,
    UnreadableRecord,
)
from failover.report.findings_text import markdown_table
from failover.report.inert import inert_line, inert_markdown
from failover.report.table import labelled, screen_width, shorten, table
from failover.report.values import age, count, things

HEADERS = {
    "checkpoints": (
        "GROUP",
        "TOPIC",
        "PARTITION",
        "UPSTREAM",
        "DOWNSTREAM",
        "BY",
        "PROOF",
        "RE-READ",
        "AGE",
        "METADATA",
    ),
    "offset-syncs": ("TOPIC", "PARTITION", "UPSTREAM", "DOWNSTREAM", "SYNCS", "AGE"),
    "heartbeats": ("TOPIC", "ON", "SOURCE", "TARGET", "HEARTBEAT", "AGE"),
    "positions": ("TOPIC", "PARTITION", "LAST COPIED", "GOES ON AT", "CONNECTOR", "SOURCE", "AGE"),
}
_NUMBERS = frozenset(
    {"PARTITION", "UPSTREAM", "DOWNSTREAM", "SYNCS", "RE-READ", "LAST COPIED", "GOES ON AT", "HEARTBEAT"}
)
_NAMES = frozenset({"GROUP", "TOPIC"})
LONGEST_NAMES = 36
"""Columns up to which a row's names are never cut, for the numbers to have room beside them."""
_NOUNS = {
    "checkpoints": "checkpoint",
    "offset-syncs": "offset sync",
    "heartbeats": "heartbeat",
    "positions": "position",
}


def inspection_text(found: Inspection, *, width: int = 100) -> str:
    """Writes where the records are, what to know about them, the records themselves, and those nobody can read."""
    lines = []
    for topic in found.topics:
        if topic.exists:
            where = f"{inert_line(topic.topic)} on {inert_line(topic.cluster)}"
            lines.append(f"{where}: {things(topic.records, 'record')}, {count(topic.unreadable)} unreadable")
    for note in found.notes:
        lines += labelled("note:", inert_line(note), width=width, indent=6)
    headers = HEADERS[found.what]
    if found.records:
        rows = [cells(row, found.taken) for row in found.records]
        if headers[-1] == "METADATA" and not any(row[-1] for row in rows):
            headers, rows = headers[:-1], [row[:-1] for row in rows]
        keep = _NAMES if max(sum(map(screen_width, row[:2])) for row in rows) <= LONGEST_NAMES else frozenset[str]()
        lines += ["", table(headers, rows, width=width, numbers=_NUMBERS, keep=keep), ""]
    lines.append(_last(found))
    for bad in found.unreadable:
        lines += labelled("unreadable:", unreadable_text(bad), width=width, indent=12)
    return "\n".join(lines) + "\n"


def inspection_markdown(found: Inspection) -> str:
    """Writes the same as a Markdown table."""
    headers = HEADERS[found.what]
    lines = [f"# {found.what} of {inert_markdown(found.source)}->{inert_markdown(found.target)}", ""]
    lines += [f"- {inert_markdown(note)}" for note in found.notes]
    lines += ["", *markdown_table(headers, [cells(row, found.taken) for row in found.records])]
    lines += ["", _last(found)]
    return "\n".join(lines) + "\n"


def cells(row: Row, now: datetime) -> tuple[str, ...]:
    """Gives one row as text, in the order of ``HEADERS``."""
    old = "-" if row.record.timestamp is None else age(row.record.timestamp, now).removesuffix(" ago")
    if isinstance(row, CheckpointRow):
        surely = "" if row.precision == "exact" else f", {row.precision}"
        proof = "-" if row.proof is None else f"{row.proof}{surely}"
        bound = "-" if row.reread_max is None else f"<= {row.reread_max:,}" if row.reread_max else "0"
        offsets = (str(row.partition), str(row.upstream_offset), str(row.downstream_offset))
        return (row.group_id, row.topic, *offsets, row.by, proof, bound, old, row.metadata)
    if isinstance(row, OffsetSyncRow):
        offsets = (str(row.partition), str(row.upstream_offset), str(row.downstream_offset))
        return (row.topic, *offsets, count(row.syncs), old)
    if isinstance(row, HeartbeatRow):
        aliases = (row.source_cluster_alias, row.target_cluster_alias)
        return (row.record.topic, row.record.cluster, *aliases, str(row.heartbeat_timestamp), old)
    return _position(row, old)


def followed_line(row: Row, now: datetime, widths: Sequence[int]) -> str:
    """Writes one appended record as a line under the columns of the table before it."""
    parts = [inert_line(cell) for cell in cells(row, now)]
    return "  ".join(
        shorten(part, max(width, 12)).ljust(width) for part, width in zip(parts, widths, strict=True)
    ).rstrip()


def followed_widths(found: Inspection) -> list[int]:
    """Gives the widths under which the lines that follow are set."""
    rows = [
        HEADERS[found.what],
        *(tuple(inert_line(cell) for cell in cells(row, found.taken)) for row in found.records),
    ]
    return [min(40, max(len(row[column]) for row in rows)) for column in range(len(rows[0]))]


def unreadable_text(bad: UnreadableRecord) -> str:
    """Names a record that cannot be decoded, and why."""
    return inert_line(f"{bad.topic}-{bad.partition} offset {bad.offset}: {bad.reason}")


def _position(row: PositionRow, old: str) -> tuple[str, ...]:
    return (row.topic, str(row.partition), str(row.offset), str(row.next_offset), row.connector, row.cluster, old)


def _last(found: Inspection) -> str:
    noun = _NOUNS[found.what]
    shown = things(len(found.records), noun)
    return f"{shown}, the newest of each key; every record: --all" if found.latest else shown
