"""The findings about a configuration, for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from failover.model.plan import Finding, Severity
from failover.report.inert import inert_line
from failover.report.table import labelled
from failover.report.values import things

_PLACE = re.compile(r"\(([^()]+)\)$")


class ConfigCheck(msgspec.Struct, frozen=True):
    """Is what ``config check`` found. ``flows``: the enabled ones. ``asked``: aliases of clusters that answered."""

    path: str
    flows: tuple[str, ...]
    findings: tuple[Finding, ...]
    asked: tuple[str, ...] = ()


def check_text(check: ConfigCheck, *, width: int = 100) -> str:
    """Writes the findings, errors first, each with its place and what to do; then what comes next."""
    return "\n".join(_lines(check, width)) + "\n"


def _lines(check: ConfigCheck, width: int) -> Iterator[str]:
    counts = {severity: sum(one.severity is severity for one in check.findings) for severity in Severity}
    words = ((Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "remark"))
    parts = [things(counts[severity], word) for severity, word in words if counts[severity]]
    yield f"{inert_line(check.path)}: {', '.join(parts) or 'nothing to remark'}"
    yield f"flows: {inert_line(', '.join(check.flows)) or 'none enabled'}"
    if check.asked:
        yield f"asked: {inert_line(', '.join(check.asked))}"
    for finding in check.findings:
        yield ""
        yield from _finding(finding, width)
    errors, warnings = counts[Severity.ERROR], counts[Severity.WARNING]
    yield ""
    if errors or warnings:
        first = check.findings[0].code
        yield f"next: correct {'the errors' if errors else 'these'}; explain a word: failover explain {first}"
    elif check.asked:
        yield "next: failover plan"
    else:
        yield "next: failover config check --connect (tries the clusters and the rights there)"


def _finding(finding: Finding, width: int) -> Iterator[str]:
    found = _PLACE.search(finding.subject)
    place = found.group(1) if found is not None else ""
    label = f"{finding.severity}:"
    text = f"{place}: {finding.message}" if place else finding.message
    yield from labelled(label, f"{inert_line(text)} [{finding.code}]", width=width)
    if finding.remedy:
        yield from labelled("", f"-> {inert_line(finding.remedy)}", width=width)
