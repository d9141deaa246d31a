"""A group's translated offsets as a table."""

from __future__ import annotations

from failover.kafka.tools import shell
from failover.model.translated import GroupTranslation, TranslatedOffset
from failover.report.findings_text import markdown_table
from failover.report.inert import inert_line, inert_markdown
from failover.report.phrases import phrase
from failover.report.table import labelled, table
from failover.report.values import age, at_most, offset, things

HEADERS = ("TOPIC", "PARTITION", "MM2", "CHECKPOINT", "SOURCE", "EXACT", "PRECISION", "PROOF", "RE-READ")
_NUMBERS = frozenset({"PARTITION", "MM2", "SOURCE", "EXACT", "RE-READ"})


def translation_text(found: GroupTranslation, *, width: int = 100) -> str:
    """Writes what each column is, the rows, and what they sum up to."""
    flow = f"{inert_line(found.source)}->{inert_line(found.target)}"
    if not found.partitions:
        state = "" if found.source_state == "up" else f" ({found.source} gives no answer)"
        return f"{flow}: no checkpoint and no offset of group {inert_line(found.group)} is known{inert_line(state)}\n"
    lines = [f"group {inert_line(found.group)}, {flow}, {things(len(found.partitions), 'partition')}", ""]
    lines.append(table(HEADERS, [_cells(one, found) for one in found.partitions], width=width, numbers=_NUMBERS))
    lines.append("")
    lines += labelled(
        "",
        "MM2 is its newest checkpoint, as Java's RemoteClusterUtils.translateOffsets answers; EXACT is where the"
        " source's commit (SOURCE) lies.",
        width=width,
        indent=0,
    )
    lines.append(f"next: failover plan --group {shell(found.group)}")
    return "\n".join(lines) + "\n"


def translation_markdown(found: GroupTranslation) -> str:
    """Writes the rows as a Markdown table."""
    title = f"# Group {inert_markdown(found.group)}, {inert_markdown(found.source)}->{inert_markdown(found.target)}"
    rows = markdown_table(HEADERS, [_cells(one, found) for one in found.partitions])
    return "\n".join([title, "", *rows]) + "\n"


def _cells(one: TranslatedOffset, found: GroupTranslation) -> tuple[str, ...]:
    return (
        one.topic,
        str(one.partition),
        offset(one.offset),
        "-" if one.checkpoint_time is None else age(one.checkpoint_time, found.taken),
        offset(one.upstream),
        offset(one.placed),
        str(one.precision),
        str(one.proof) if one.failure is None else phrase(one.failure),
        "-" if one.placed is None else at_most(one.reread, one.reread_max),
    )
