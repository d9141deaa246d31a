"""The question before a roll back, and its dry run: what stands now, what will stand, and what is left."""

from __future__ import annotations

from failover.model.execution import Execution, Rehearsal
from failover.report.inert import inert_line
from failover.report.phrases import phrase
from failover.report.table import labelled, table
from failover.report.values import moment, offset, things

ASKED_ROWS = 30
_HEADERS = ("GROUP", "PARTITION", "NOW", "AFTER")


def rollback_text(rehearsal: Rehearsal, undone: Execution, *, width: int = 100) -> str:
    """Writes what rolling back would do now, group by group, and the consequence in one line."""
    changes = [(group, change) for group in rehearsal.groups for change in group.changes]
    cells = [
        (group.group, f"{topic}-{partition}", offset(now), "none" if after is None else offset(after))
        for group, (topic, partition, now, after) in changes[:ASKED_ROWS]
    ]
    lines = [f"Rolling back run {inert_line(undone.id)} of {moment(undone.started)} by {inert_line(undone.operator)}"]
    if cells:
        lines += ["", table(_HEADERS, cells, width=width, numbers=frozenset({"NOW", "AFTER"}))]
    if len(changes) > ASKED_ROWS:
        lines.append(f"{things(len(changes) - ASKED_ROWS, 'more partition')} (--dry-run --format json lists them)")
    left = [text for group in rehearsal.groups for _, _, _, text in group.refused]
    left += [group.message or f"{group.group}: {phrase(group.reason)}" for group in rehearsal.groups if group.reason]
    if left:
        lines += ["", "Left as it is:"]
        lines += [line for text in left[:ASKED_ROWS] for line in labelled("-", inert_line(text), width=width, indent=2)]
    if len(left) > ASKED_ROWS:
        lines.append(f"{things(len(left) - ASKED_ROWS, 'more')} (--dry-run --format json lists them)")
    restored = sum(after is not None for _, (_, _, _, after) in changes)
    deleted = len(changes) - restored
    removed = sum(group.removes for group in rehearsal.groups)
    alias = inert_line(rehearsal.target_alias)
    acts = [f"puts back {things(restored, 'offset')}"] if restored or not deleted else []
    acts += [f"deletes {things(deleted, 'offset')}"] if deleted else []
    gone = f"; {things(removed, 'group')} that did not exist before {'goes' if removed == 1 else 'go'} away"
    told = f"This {' and '.join(acts)} on {alias}{gone if removed else ''}."
    lines += ["", *labelled("", told, width=width, indent=0)]
    if changes:
        lines.append("Consumers that start afterwards begin where they stood before the execution.")
    return "\n".join(lines)
