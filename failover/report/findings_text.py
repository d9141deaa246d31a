"""Findings for a terminal and for Markdown; tables for Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from failover.model.plan import Finding, Severity
from failover.report.inert import inert_line, inert_markdown
from failover.report.table import labelled


def findings_lines(findings: Iterable[Finding], *, verbosity: int = 0, width: int = 100) -> Iterator[str]:
    """Writes each finding with its code and remedy; those that only inform, and what they are about, with ``-v``."""
    for finding in findings:
        if finding.severity is Severity.INFO and not verbosity:
            continue
        text = f"{inert_line(finding.message)} [{finding.code}]"
        yield from labelled(f"{finding.severity}:", text, width=width)
        if verbosity and finding.subject:
            yield from labelled("", f"on: {inert_line(finding.subject)}", width=width)
        yield from labelled("", f"-> {inert_line(finding.remedy)}", width=width)


def findings_markdown(findings: Iterable[Finding]) -> Iterator[str]:
    """Writes every finding as a list item with its remedy."""
    for finding in findings:
        yield f"- **{finding.severity}** `{finding.code}`: {inert_markdown(finding.message)}"
        yield f"    - {inert_markdown(finding.remedy)}"


def markdown_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Writes rows under headers; cells are made inert."""
    yield f"| {' | '.join(headers)} |"
    yield "|" + "--|" * len(headers)
    for row in rows:
        yield "| " + " | ".join(inert_markdown(cell) for cell in row) + " |"
