"""A checklist with its answers, for a terminal and for Markdown."""

from __future__ import annotations

from collections import Counter

from failover.model.health import CheckPoint, Health, Lag
from failover.model.plan import Finding, Severity
from failover.report.findings_text import findings_lines, findings_markdown, markdown_table
from failover.report.inert import inert_line, inert_markdown
from failover.report.table import table
from failover.report.values import duration, moment, things

CHECKS = ("CHECK", "RESULT", "QUESTION", "ANSWER")
LAGS = ("LAG BY", "RECORDS", "SECONDS", "FROM")


def health_text(health: Health, *, verbosity: int = 0, width: int = 100) -> str:
    """Writes the list, the lag by each way, and what to do about what is not well."""
    lines = [headline(health), _counted(health), ""]
    rows = [(point.name, point.result, point.detail) for point in _points(health)]
    lines.append(table(("CHECK", "RESULT", "ANSWER"), rows, width=width))
    lines += ["", table(LAGS, [_lag(lag) for lag in health.lags], width=width, numbers=frozenset({"RECORDS"}))]
    findings = list(findings_lines(health.findings, verbosity=verbosity, width=width))
    if findings:
        lines += ["", *findings]
    hidden = sum(finding.severity is Severity.INFO for finding in health.findings)
    if hidden and not verbosity:
        lines += ["", f"{things(hidden, 'remark')} more with -v"]
    worst = next((one for one in health.findings if one.severity is not Severity.INFO), None)
    lines += ["", f"next: {_next(worst)}"]
    return "\n".join(lines) + "\n"


def _next(worst: Finding | None) -> str:
    if worst is None:
        return "nothing"
    return "failover plan" if worst.code == "source-silent" else f"failover explain {worst.code}"


def health_markdown(health: Health) -> str:
    """Writes the same as Markdown, every finding with it."""
    lines = [f"# {inert_markdown(headline(health))}", "", _counted(health), ""]
    lines += markdown_table(CHECKS, [_point(point) for point in health.points])
    lines += ["", *markdown_table(LAGS, [_lag(lag) for lag in health.lags])]
    if health.findings:
        lines += ["", "## Findings", "", *findings_markdown(health.findings)]
    return "\n".join(lines) + "\n"


def headline(health: Health) -> str:
    """Says how it went, for which list and flow, when."""
    severities = Counter(finding.severity for finding in health.findings)
    errors, warnings = severities[Severity.ERROR], severities[Severity.WARNING]
    said = ", ".join(things(number, noun) for number, noun in ((errors, "error"), (warnings, "warning")) if number)
    flow = f"{inert_line(health.source.alias)} -> {inert_line(health.target.alias)}"
    state = f"NOT WELL: {said}" if said else "WELL"
    return f"{state}   {flow}   {health.period}   {moment(health.taken)}"


def _counted(health: Health) -> str:
    results: Counter[str] = Counter(point.result for point in health.points)
    words = {
        "error": "with an error",
        "warning": "with a warning",
        "unknown": "unknown",
        "remark": "with a remark",
        "ok": "well",
    }
    counted = [f"{results[result]} {said}" for result, said in words.items() if results[result]]
    return f"{things(len(health.points), 'check')}: {', '.join(counted)}"


def _points(health: Health) -> list[CheckPoint]:
    order = {"error": 0, "warning": 1, "unknown": 2, "remark": 3, "ok": 4}
    return sorted(health.points, key=lambda point: order[point.result])


def _point(point: CheckPoint) -> tuple[str, ...]:
    return (point.name, point.result, point.question, point.detail)


def _lag(lag: Lag) -> tuple[str, ...]:
    records = "-" if lag.records is None else f"{lag.records:,}"
    return (lag.by, records, "-" if lag.seconds is None else duration(lag.seconds), lag.detail)
