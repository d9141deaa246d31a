"""How a flow stands, for a terminal and for Markdown: ready or not first, then what a failover now would cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from failover.model.plan import Severity
from failover.model.status import GroupStatus, MirroredPartition, Readiness, Status
from failover.report.findings_text import findings_lines, findings_markdown, markdown_table
from failover.report.inert import inert_line, inert_markdown
from failover.report.phrases import phrase
from failover.report.table import labelled, table
from failover.report.values import age, clock, count, duration, moment, things

FOLD = 30
"""Rows of a table before the rest, which is no worse, is counted only."""

PARTITIONS = ("TOPIC", "PARTITION", "SOURCE END", "MIRRORED TO", "LAG", "SECONDS", "KNOWN BY", "LAST RECORD")
GROUPS = ("GROUP", "READY", "ON SOURCE", "ON TARGET", "CHECKPOINT", "EXACT", "RE-READ", "WHY")
_NUMBERS = frozenset({"PARTITION", "SOURCE END", "MIRRORED TO", "LAG", "SECONDS", "RE-READ"})
_REASONS = {"newer-than-checkpoints": "no checkpoint of it yet"}
_SIGNS = {"exact": "", "at-most": "<= ", "at-least": ">= ", None: ""}


def status_text(
    status: Status, *, verbosity: int = 0, width: int = 100, rows: int = FOLD, every: float | None = None
) -> str:
    """Writes the whole for a terminal; ``rows``: of each table at most, the worst first.

    ``every``: it is painted anew so often, in seconds.
    """
    lines = [headline(status), ""]
    for label, text in answers(status):
        lines += labelled(label, text, width=width, indent=13)
    if status.partitions:
        lines += ["", *_folded(PARTITIONS, [_partition(status, row) for row in status.partitions], width, rows)]
        rest = status.partitions[rows:]
        if rest:
            worst = max((row.records or 0 for row in rest), default=0)
            lines.append(f"and {things(len(rest), 'more partition')}, none behind by more than {count(worst)}")
    if status.groups:
        shown = [row for number, row in enumerate(status.groups) if number < rows or (verbosity and not row.ready)]
        lines += ["", *_folded(GROUPS, [_group(row) for row in shown], width, len(shown))]
        rest_groups = len(status.groups) - len(shown)
        if rest_groups:
            ready = sum(row.ready for row in status.groups[len(shown) :])
            lines.append(f"and {things(rest_groups, 'more group')}, {ready:,} of them ready")
    if status.skipped:
        lines += ["", *_skipped(status, verbosity, width)]
    findings = list(findings_lines(status.findings, verbosity=verbosity, width=width))
    if findings:
        lines += ["", *findings]
    hidden = sum(finding.severity is Severity.INFO for finding in status.findings)
    if hidden and not verbosity:
        lines += ["", f"{things(hidden, 'remark')} more with -v"]
    lines += ["", _next(status) if every is None else f"a look every {duration(every)}; Ctrl-C ends it"]
    return "\n".join(lines) + "\n"


def status_markdown(status: Status) -> str:
    """Writes the whole as Markdown, every partition and group with it."""
    lines = [f"# {inert_markdown(headline(status))}", ""]
    lines += [f"- **{label}** {inert_markdown(text)}" for label, text in answers(status)]
    if status.findings:
        lines += ["", "## Findings", "", *findings_markdown(status.findings)]
    if status.partitions:
        lines += ["", "## Partitions", ""]
        lines += markdown_table(PARTITIONS, [_partition(status, row) for row in status.partitions])
    if status.groups:
        lines += ["", "## Groups", "", *markdown_table(GROUPS, [_group(row) for row in status.groups])]
    if status.skipped:
        lines += ["", "## Topics that are not mirrored", ""]
        lines += markdown_table(("TOPIC", "WHY"), [(one.topic, one.reason) for one in status.skipped])
    return "\n".join(lines) + "\n"


def headline(status: Status) -> str:
    """Says ready or not, for which flow, when."""
    errors = sum(finding.severity is Severity.ERROR for finding in status.findings)
    warnings = sum(finding.severity is Severity.WARNING for finding in status.findings)
    words = {
        Readiness.READY: "READY",
        Readiness.WARNINGS: f"READY, with {things(warnings, 'warning')}",
        Readiness.NOT_READY: f"NOT READY: {things(errors, 'error')}",
    }
    flow = f"{inert_line(status.source.alias)} -> {inert_line(status.target.alias)}"
    return f"{words[status.readiness]}   {flow}   {moment(status.taken)}"


def answers(status: Status) -> Iterator[tuple[str, str]]:
    """Answers what an operator asks first, as (label, text)."""
    source = inert_line(status.source.alias)
    cost = status.cost
    if status.back:
        target = inert_line(status.target.alias)
        yield "GOING BACK", f"from {source} to {target} now: {_reread(status)}; {_ready(status)}"
    elif status.as_of is None:
        yield "IF NOW", f"if {source} died this second: {_loss(status)}; {_reread(status)}; {_ready(status)}"
    else:
        known = f"as of {clock(status.as_of, status.taken)} ({age(status.as_of, status.taken)})"
        yield "SOURCE", f"{inert_line(status.source.state.upper())}: {inert_line(status.source.detail) or 'no answer'}"
        yield "LAST KNOWN", f"{known}: {_loss(status)}; {_reread(status)}; {_ready(status)}"
    if status.source.state == "degraded":
        yield "SOURCE", f"DEGRADED: {inert_line(status.source.detail)}"
    if status.target.state != "up":
        yield "TARGET", f"{inert_line(status.target.state.upper())}: {inert_line(status.target.detail)}"
    if cost.groups_ready:
        yield "THEN", f"execute takes about {duration(cost.execute_seconds)}"
    if status.back:
        return
    yield "HEARTBEAT", _heartbeat(status)
    programs = [f"{inert_line(one.program)} ({inert_line(one.detail)})" for one in status.replicators]
    if programs or not status.connectors:
        told = "; ".join(programs) or "nothing on the target tells (MM2 on Kafka Connect leaves no sign there)"
        yield "COPIED BY", told
    if status.connectors:
        words = [
            f"{inert_line(one.name)} {one.state}, tasks {' '.join(one.tasks) or 'none'}" for one in status.connectors
        ]
        yield "CONNECTORS", "; ".join(words)


def _loss(status: Status) -> str:
    cost = status.cost
    if cost.records is None:
        return "what would be lost is unknown"
    unknown = f" (unknown for {things(cost.unknown_partitions, 'partition')})" if cost.unknown_partitions else ""
    if not cost.records and cost.bound == "exact":
        return f"nothing lost{unknown}"
    if not cost.records and cost.bound == "at-least":
        return f"nothing known to be lost, what came later is unknown{unknown}"
    back = "" if not cost.seconds else f", {duration(cost.seconds)}"
    return f"{_SIGNS[cost.bound]}{things(cost.records, 'record')}{back} lost{unknown}"


def _reread(status: Status) -> str:
    bound = status.cost.reread_max
    if bound is None:
        return "how many are read again is unknown"
    return "nothing read again" if not bound else f"<= {count(bound)} read again"


def _ready(status: Status) -> str:
    cost = status.cost
    return f"{count(cost.groups_ready)} of {things(cost.groups, 'group')} ready" if cost.groups else "no group to move"


def _heartbeat(status: Status) -> str:
    beat = status.heartbeat
    if beat.newest is None or beat.age_seconds is None:
        return "off" if beat.state == "off" else "none is mirrored"
    return f"{duration(beat.age_seconds)} old"


def _folded(headers: Sequence[str], cells: Sequence[Sequence[str]], width: int, rows: int) -> Iterator[str]:
    yield table(headers, cells[:rows], width=width, numbers=_NUMBERS)


def _partition(status: Status, row: MirroredPartition) -> tuple[str, ...]:
    seconds = "-" if row.seconds is None else f"{row.seconds:,.0f}"
    lag = "unknown" if row.records is None else f"{_SIGNS[row.bound] if row.records else ''}{row.records:,}"
    return (
        row.source_topic,
        str(row.partition),
        count(row.source_end),
        count(row.mirrored_to),
        lag,
        seconds,
        row.known_by,
        "-" if row.last_record is None else age(min(row.last_record, status.taken), status.taken),
    )


def _group(row: GroupStatus) -> tuple[str, ...]:
    source = "-" if row.source_state is None else _members(row.source_state, row.source_members or 0)
    return (
        row.group,
        "yes" if row.ready else "no",
        source,
        _members("absent" if row.target_state == "Dead" else row.target_state, row.target_members),
        "-" if row.checkpoint_age is None else duration(row.checkpoint_age),
        "-" if row.exact_age is None else duration(row.exact_age),
        "-" if row.reread_max is None else ("0" if not row.reread_max else f"<= {row.reread_max:,}"),
        "" if row.ready else "; ".join(_REASONS.get(reason) or phrase(reason) or reason for reason in row.reasons),
    )


def _members(state: str, members: int) -> str:
    return f"{state} ({members})" if members else state


def _skipped(status: Status, verbosity: int, width: int) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for one in status.skipped:
        by_reason.setdefault(one.reason, []).append(one.topic)
    limit = len(status.skipped) if verbosity else 5
    for reason, topics in by_reason.items():
        more = f" and {len(topics) - limit} more (-v)" if len(topics) > limit else ""
        text = f"{', '.join(inert_line(topic) for topic in topics[:limit])}{more}: {inert_line(reason)}"
        yield from labelled("NOT MIRRORED", text, width=width, indent=14)


def _next(status: Status) -> str:
    if status.as_of is not None:
        return "next: failover plan"
    worst = next((one for one in status.findings if one.severity is not Severity.INFO), None)
    return f"next: failover explain {worst.code}" if worst is not None else "next: failover status --watch"
