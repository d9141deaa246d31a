"""Start positions of a reverse mirror as a table: before they are written, and what became of them."""

from __future__ import annotations

import shlex

from failover.model.seed import Seed, SeedPartition
from failover.report.inert import inert_line
from failover.report.table import table
from failover.report.values import things

SHOWN = 40
_ORDER = {"refuse": 0, "write": 1, "none": 2}


def seed_text(seed: Seed, *, width: int = 100) -> str:
    """Writes the whole: one line of sums, the partitions, worst first, why others are none, and the next step."""
    source, target = inert_line(seed.source), inert_line(seed.target)
    sums = [
        things(len(seed.to_write), "position") + (" written" if _written(seed) else " to write"),
        f"{len(seed.refused)} refused",
        f"{sum(one.action == 'none' for one in seed.partitions)} there already",
    ]
    lines = [f"{source}->{target}   start positions in {_place(seed, 'of')}   {', '.join(sums)}"]
    if seed.partitions:
        rows = [_row(one) for one in sorted(seed.partitions, key=lambda one: _ORDER[one.action])]
        headers = ("TOPIC", "PARTITION", "BEGINS AT", "OF", "BEFORE", "ALONE THERE", "COMPARED", "STATE")
        lines += ["", table(headers, rows[:SHOWN], width=width)]
        if len(rows) > SHOWN:
            lines.append(things(len(rows) - SHOWN, "more partition"))
    for one in seed.refused[:SHOWN]:
        lines.append(f"{inert_line(one.topic)}-{one.partition}: {one.reason}: {inert_line(one.detail)}")
    for topic, why in sorted(seed.not_seeded.items()):
        lines.append(f"{inert_line(topic)}: nothing to do: {inert_line(why)}")
    lines += ["", *_next(seed)]
    return "\n".join(lines) + "\n"


def seed_question(seed: Seed, *, width: int = 100) -> str:
    """Writes the table and what going ahead does."""
    return (
        seed_text(seed, width=width)
        + f"This writes {things(len(seed.to_write), 'position')} to {_place(seed)}, whatever stood there before."
    )


def _place(seed: Seed, word: str = "on") -> str:
    topic, target = inert_line(seed.topic), inert_line(seed.target)
    return f"connector {inert_line(seed.connector)} at {topic}" if seed.connector else f"{topic} {word} {target}"


def _written(seed: Seed) -> bool:
    return any(one.status in ("written", "failed") for one in seed.partitions)


def _row(one: SeedPartition) -> tuple[str, ...]:
    shown = [_number(value) for value in (one.offset, one.end, one.before)]
    tail = _number(one.tail) if one.offset is not None else "-"
    state = one.status or {"write": "to write", "refuse": f"refused: {one.reason}", "none": "unchanged"}[one.action]
    return (one.topic, str(one.partition), *shown, tail, _number(one.compared), state)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _next(seed: Seed) -> list[str]:
    source, target = inert_line(seed.source), inert_line(seed.target)
    if any(one.status == "failed" for one in seed.partitions):
        return ["next: the same command again"]
    lines = []
    if any(one.reason == "unreplicated-tail" for one in seed.refused):
        lines.append(f"Records that {target} alone has stay there, and {source} never gets them: export them if they")
        lines.append("are needed, then --keep-tail.")
    if seed.refused:
        lines.append("MirrorMaker 2 copies a refused partition from its start: do not start it before that is settled.")
    if not _written(seed) and seed.to_write:
        lines.append("next: the same command without --dry-run" if seed.dry_run else "next: answer the question")
    elif not seed.refused and seed.connector:
        lines.append(f"next: failover connect resume {shlex.quote(inert_line(seed.connector))}, with the same --url")
    elif not seed.refused:
        lines.append(f"next: failover replicate --source {source} --target {target}, or MirrorMaker 2 for it")
    return lines or ["next: settle what is refused, then the same command again"]
