"""What changed between two plans, for a terminal: sums first, then groups, worst first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from failover.model.plan import Finding, Severity
from failover.report.inert import inert_line
from failover.report.phrases import phrase
from failover.report.plan_diff import Change, GroupDiff, PartitionDiff, PlanDiff
from failover.report.table import labelled, table
from failover.report.values import count, duration, moment, things

SHOWN_GROUPS = 30
SHOWN_PARTITIONS = 40
ALIKE = 3
"""Partitions of one group that changed alike and are still listed one by one."""
_FIELDS = {"reread_max": "re-read", "skipped": "skip", "lag_after": "lag after", "position_after": "starts at"}
_LABELS = {
    "source": "source",
    "target": "target",
    "groups ready": "groups ready",
    "groups partial": "groups partial",
    "groups refused": "groups refused",
    "groups nothing": "groups with nothing to move",
    "groups not_planned": "groups not in the plan",
    "partitions commit": "partitions to commit",
    "partitions skip": "partitions left",
    "partitions refuse": "partitions refused",
    "unreplicated": "records the target lacks (LOSS)",
    "reread_max": "records read again at most (RE-READ)",
    "skipped": "records skipped (SKIP)",
    "unknown": "partitions with an unknown start (UNKNOWN)",
}


def diff_text(diff: PlanDiff, *, verbosity: int = 0, width: int = 100) -> str:
    """Writes a comparison of two plans; ``verbosity`` 1 lists every partition that changed."""
    blocks = [
        list(_head(diff)),
        list(_sums(diff, width)),
        list(_groups(diff, verbosity, width)),
        list(_partitions(diff, verbosity, width)),
        list(_findings(diff, verbosity, width)),
    ]
    if not any((diff.summary, diff.options, diff.groups, diff.findings_new, diff.findings_gone)):
        blocks.append(["The plans say the same."])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(diff: PlanDiff) -> Iterator[str]:
    apart = (diff.new.created - diff.old.created).total_seconds()
    when = f"{duration(abs(apart))} {'later' if apart >= 0 else 'EARLIER'}"
    yield f"{inert_line(diff.source)} -> {inert_line(diff.target)}"
    yield f"OLD  plan {inert_line(diff.old.id)}   {moment(diff.old.created)}   {inert_line(diff.old.operator)}"
    yield f"NEW  plan {inert_line(diff.new.id)}   {moment(diff.new.created)}   {inert_line(diff.new.operator)}   {when}"


def _sums(diff: PlanDiff, width: int) -> Iterator[str]:
    cells = [(_LABELS.get(c.what, c.what), _value(c.old), _value(c.new), _difference(c)) for c in diff.summary]
    cells += [(f"option {c.what.replace('_', '-')}", _value(c.old), _value(c.new), "") for c in diff.options]
    if cells:
        yield table(("SUM", "OLD", "NEW", "CHANGE"), cells, width=width, numbers=frozenset({"OLD", "NEW", "CHANGE"}))


def _groups(diff: PlanDiff, verbosity: int, width: int) -> Iterator[str]:
    if not diff.groups:
        if diff.summary or diff.options:
            yield f"{things(diff.same, 'group')} as before."
        return
    shown = diff.groups if verbosity else diff.groups[: 2 * SHOWN_GROUPS]
    cells = [
        (group.group, str(group.old or "-"), str(group.new or "-"), count(len(group.partitions)), _why(group))
        for group in shown
    ]
    headers = ("GROUP", "OLD", "NEW", "PARTITIONS", "WHAT CHANGED")
    yield table(headers, cells, width=width, numbers=frozenset({"PARTITIONS"}))
    if len(shown) < len(diff.groups):
        yield f"{things(len(diff.groups) - len(shown), 'more group')} changed (-v lists them)"
    yield f"{things(diff.same, 'group')} as before."


def _why(group: GroupDiff) -> str:
    if group.kind == "added":
        return "not in the old plan"
    if group.kind == "gone":
        return f"not in the new plan: {phrase(group.why)}" if group.why else "not in the new plan"
    parts = []
    for change in group.changes:
        if change.what == "reasons":
            came = [phrase(code) or code for code in change.new if code not in change.old]
            went = [phrase(code) or code for code in change.old if code not in change.new]
            parts += [f"now: {'; '.join(came)}"] * bool(came) + [f"no longer: {'; '.join(went)}"] * bool(went)
        elif change.what != "verdict":
            parts.append(f"{change.what} {_value(change.old)} -> {_value(change.new)}")
    offsets = [c for p in group.partitions for c in p.changes if c.what == "offset"]
    for found, word in (
        ([c for c in offsets if c.old is None], "to commit"),
        ([c for c in offsets if c.new is None], "no longer to commit"),
        ([c for c in offsets if None not in (c.old, c.new)], "moved"),
    ):
        parts += [f"{things(len(found), 'offset')} {word}"] * bool(found)
    return "; ".join(parts)


def _partitions(diff: PlanDiff, verbosity: int, width: int) -> Iterator[str]:
    """Lists changed partitions; those of a group that changed alike share a line unless ``verbosity``."""
    cells = [row for group in diff.groups for row in _rows(group, whole=verbosity > 0)]
    shown = cells if verbosity else cells[:SHOWN_PARTITIONS]
    if shown:
        yield table(
            ("GROUP", "PARTITION", "ACTION", "OFFSET", "NOW", "WHAT ELSE"), shown, width=width, numbers=frozenset()
        )
    if len(shown) < len(cells):
        yield f"{things(len(cells) - len(shown), 'more line')} of partitions (-v lists each partition)"


def _rows(group: GroupDiff, *, whole: bool) -> Iterator[tuple[str, ...]]:
    alike: dict[tuple[str, ...], list[PartitionDiff]] = {}
    for p in group.partitions:
        key = (f"{p.topic}-{p.partition}",) if whole else (p.topic, p.kind, *_action(p))
        alike.setdefault(key, []).append(p)
    for found in alike.values():
        if len(found) > ALIKE:
            first = found[0]
            action, why = _action(first)
            place = f"{things(len(found), 'partition')} of {first.topic}"
            yield (group.group, place, action or first.kind, "", "", why)
        else:
            for p in found:
                yield _partition(group.group, p)


def _action(p: PartitionDiff) -> tuple[str, str]:
    """Gives what a partition's action became, and why."""
    by_name = {change.what: change for change in p.changes}
    reason = by_name.get("reason")
    why = phrase(reason.new) if reason is not None else ""  # "translated" goes without saying
    return _arrow(by_name.get("action")), f"now {why}" if why else ""


def _partition(group: str, p: PartitionDiff) -> tuple[str, ...]:
    place = f"{p.topic}-{p.partition}"
    if p.kind != "changed":
        return (group, place, p.kind, "", "", "")
    by_name = {change.what: change for change in p.changes}
    action, why = _action(p)
    shown = {"action", "reason", "offset", "target_committed"}
    # Where consumers start follows the offset where the plan commits; it is news only otherwise.
    if "offset" in by_name:
        shown.add("position_after")
    rest = [why] * bool(why)
    rest += [f"{_FIELDS.get(c.what, c.what)} {_arrow(c)}" for c in p.changes if c.what not in shown]
    return (
        group,
        place,
        action,
        *(_arrow(by_name.get(name)) for name in ("offset", "target_committed")),
        ", ".join(rest),
    )


def _arrow(change: Change | None) -> str:
    return "" if change is None else f"{_value(change.old, plain=True)} -> {_value(change.new, plain=True)}"


def _findings(diff: PlanDiff, verbosity: int, width: int) -> Iterator[str]:
    for label, found in (("new", diff.findings_new), ("gone", diff.findings_gone)):
        for finding in found:
            if verbosity or finding.severity is not Severity.INFO:
                yield from labelled(f"{label}:", _finding(finding), width=width, indent=6)


def _finding(finding: Finding) -> str:
    return f"{finding.severity}: {inert_line(finding.message)} [{inert_line(finding.code)}]"


def _value(value: Any, *, plain: bool = False) -> str:
    """Writes a value of either plan; ``plain``: as an offset, which people copy."""
    if value is None:
        return "-" if plain else "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value) if plain else count(value)
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _difference(change: Change) -> str:
    if isinstance(change.old, int) and isinstance(change.new, int):
        return f"{change.new - change.old:+,}"
    return ""
