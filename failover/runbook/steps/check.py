"""Points of the health lists, and readiness, as a gate."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from failover.errors import StepFailed
from failover.model.health import PointName
from failover.model.plan import Severity
from failover.report.values import things
from failover.runbook.kinds import Context, Kind, Result

if TYPE_CHECKING:
    from failover.checks.status_checks import Limits
    from failover.kafka.port import Cluster
    from failover.library.health import Checkup
    from failover.library.open_flow import OpenFlow
    from failover.model.health import CheckPoint, Health
    from failover.model.plan import Finding

CheckName = Literal["readiness", "daily", "weekly", PointName]
_KEPT, _TOLD = "checkup", "told"
_SHOWN = 5
"""Findings told in full where a step has more of them."""


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``checks``: ``daily`` or ``weekly`` (a whole list), points of them, ``readiness`` (what status calls READY).

    ``fail_on``: the least that fails the step: ``error``, ``warning``, or ``unknown`` (also what nobody can tell).
    ``lag_records`` and ``lag``: both must be exceeded for a warning; ``heartbeat``: how old the newest may be, 0s: ten
    intervals, and a minute for readiness. ``max_age``: a look that an earlier check of this run took so long ago will
    do. ``url``: of the Connect cluster that is asked for connectors; empty: ``failover.connect.url``.
    """

    checks: list[CheckName]
    fail_on: Literal["error", "warning", "unknown"] = "error"
    lag_records: int = 1_000
    lag: float = 60.0
    heartbeat: float = 0.0
    max_age: float = 0.0
    url: str = ""


class NotWell(StepFailed):
    """Says that a check found something; the exit code is that of ``failover health``."""

    def __init__(self, message: str, *, exit_code: int, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


class CheckKind(Kind[Check]):
    """Goes through points of the health lists, or asks whether a failover could begin; looks and changes nothing."""

    parameters = Check
    results = {  # noqa: RUF012 - a class's constant
        "answers": "each point with its answer",
        "well": "points that are well, or have remarks alone",
        "errors": "findings",
        "warnings": "findings",
        "unknown": "points that nobody can tell",
    }
    acts = False

    def preview(self, given: Check, context: Context) -> str:
        answers = _answers(given, context)
        _judge(answers, given, context)
        return f"looked: {'; '.join(answers.told)}"

    def run(self, given: Check, context: Context) -> Result:
        answers = _answers(given, context)
        _judge(answers, given, context)
        for finding in answers.findings:
            if finding.severity is not Severity.INFO:
                context.say(f"{finding.severity}: {finding.message}")
                context.say(f"  to do: {finding.remedy}")
        return {
            "answers": answers.told,
            "well": sum(result in ("ok", "remark") for _, result, _ in answers.points),
            "errors": answers.count(Severity.ERROR),
            "warnings": answers.count(Severity.WARNING),
            "unknown": len(answers.unknown),
        }

    def by_hand(self, given: Mapping[str, Any]) -> str:
        names = given.get("checks")
        if not isinstance(names, list):
            return "failover health weekly"
        points = [name for name in names if name not in ("readiness", "daily", "weekly")]
        lines = ["failover status --check"] if "readiness" in names else []
        if points or {"daily", "weekly"} & set(names):
            lines.append(f"failover health {_period(names)}" + (f"   # {', '.join(points)}" if points else ""))
        return "\n".join(lines)


class _Answers(NamedTuple):
    """Is what was asked about: (name, result, answer) of each point, and the findings, heaviest first."""

    points: Sequence[tuple[str, str, str]]
    findings: Sequence[Finding]

    @property
    def told(self) -> list[str]:
        return [f"{name}: {result}" + (f", {detail}" if detail else "") for name, result, detail in self.points]

    @property
    def unknown(self) -> list[str]:
        return [name for name, result, _ in self.points if result == "unknown"]

    def count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)

    def failing(self, fail_on: str) -> list[Finding]:
        weights = (Severity.ERROR,) if fail_on == "error" else (Severity.ERROR, Severity.WARNING)
        return [finding for finding in self.findings if finding.severity in weights]


def _judge(answers: _Answers, given: Check, context: Context) -> None:
    """Raises ``NotWell`` where something weighs enough; what another step of this run told already is only counted."""
    failing = answers.failing(given.fail_on)
    unknown = answers.unknown if given.fail_on == "unknown" else []
    if not failing and not unknown:
        return
    errors, warnings = answers.count(Severity.ERROR), answers.count(Severity.WARNING)
    counted = [things(number, noun) for number, noun in ((errors, "error"), (warnings, "warning")) if number]
    by: dict[Finding, str] = context.reach.kept.setdefault(_TOLD, {})
    fresh = [finding for finding in failing if by.get(finding, context.step_id) == context.step_id]
    shown = fresh[:_SHOWN]
    by.update(dict.fromkeys(shown, context.step_id))
    period = _period(given.checks)
    said = [finding.message for finding in shown]
    hints = [finding.remedy for finding in shown]
    if unknown:
        counted.append(f"{len(unknown)} unknown")
        said.append(f"nobody can tell: {', '.join(unknown)}")
        hints.append(f"failover health {period} says why it is not known")
    if len(fresh) > _SHOWN:
        said.append(f"{things(len(fresh) - _SHOWN, 'finding')} more")
        hints.append(f"failover health {period} tells all")
    told = f": {_numbered(said)}" if said else ", told by the steps before"
    hint = _numbered(hints) or f"failover health {period} tells them together"
    raise NotWell(f"{', '.join(counted)}{told}", exit_code=3 if errors else 4, hint=hint)


def _period(names: Sequence[str]) -> str:
    """Names the shorter list that holds all of these."""
    return "daily" if set(names) <= {"daily", "readiness", *_points("daily")} else "weekly"


def _numbered(texts: Sequence[str]) -> str:
    if len(texts) < 2:
        return "".join(texts)
    return " ".join(f"({number}) {text}" for number, text in enumerate(texts, 1))


def _answers(given: Check, context: Context) -> _Answers:
    checkup, look = _checkup(given, context)
    points: dict[str, tuple[str, str, str]] = {}
    found: list[Finding] = []
    for name in given.checks:
        if name == "readiness":
            status = checkup.status(_limits(given, look, readiness=True))
            words = {"ready": "ok", "warnings": "warning", "not-ready": "error"}
            well = status.readiness == "ready"
            said = "a failover could begin now" if well else status.findings[0].message
            points[name] = (name, words[status.readiness], said)
            found += status.findings
            continue
        period = name if name in ("daily", "weekly") else "daily" if name in _points("daily") else "weekly"
        health = checkup.health(period, _limits(given, look))
        found += _findings(name, health)
        chosen = [point for point in health.points if name in (point.name, period)]
        points |= {point.name: _row(point) for point in chosen}
    from failover.checks.find import by_severity

    return _Answers(list(points.values()), by_severity(dict.fromkeys(found)))


def _findings(name: str, health: Health) -> Iterable[Finding]:
    from failover.planning.health import findings_about

    return health.findings if name in ("daily", "weekly") else findings_about(name, health)  # type: ignore[arg-type]


def _row(point: CheckPoint) -> tuple[str, str, str]:
    return point.name, point.result, point.detail


def _points(period: Literal["daily", "weekly"]) -> tuple[str, ...]:
    from failover.planning.health import point_names

    return point_names(period)


def _limits(given: Check, look: OpenFlow, *, readiness: bool = False) -> Limits:
    from failover.library import health, status

    usual = status.usual_limits(look) if readiness else health.usual_limits(look)
    return msgspec.structs.replace(
        usual,
        lag_records=given.lag_records,
        lag_seconds=given.lag,
        heartbeat_seconds=given.heartbeat or usual.heartbeat_seconds,
    )


def _checkup(given: Check, context: Context) -> tuple[Checkup, OpenFlow]:
    """Looks, or takes the look of an earlier check of this run where that is young enough."""
    from failover.library.connectors import ask_connect
    from failover.library.health import Checkup
    from failover.library.open_flow import OpenFlow

    reach = context.reach
    kept = reach.kept.get(_KEPT)
    if kept is not None and kept[0] == given.url and time.monotonic() - kept[1] < given.max_age:
        return kept[2], kept[3]

    def open_cluster(alias: str) -> Cluster:
        return reach.source if alias == reach.flow.source else reach.target

    look = OpenFlow(reach.flow, reach.state, open_cluster, source_down=reach.source_down)
    checkup = Checkup(look, ask_connect(reach.flow, url=given.url, warn=context.say))
    reach.kept[_KEPT] = (given.url, time.monotonic(), checkup, look)
    return checkup, look


KIND = CheckKind()
