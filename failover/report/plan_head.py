"""The first lines of a plan's report, as (label, answer): source up? lost? read again? skipped? not in it?"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from failover.model.plan import Plan, PlanOptions, Verdict
from failover.model.snapshot import NotPlanned
from failover.report.inert import inert_line
from failover.report.phrases import phrase
from failover.report.plan_rows import GroupRow, precision_of
from failover.report.values import age, clock, count, duration, things

_WHY_NOT = {
    "excluded": ("group excluded by the flow's filters", "groups excluded by the flow's filters"),
    "--exclude-group": ("group excluded by --exclude-group", "groups excluded by --exclude-group"),
    "--topic": ("group on other topics than --topic", "groups on other topics than --topic"),
    "share": ("share group", "share groups"),
    "streams": ("streams group", "streams groups"),
    "no-mirrored-topic": ("group on no mirrored topic", "groups on no mirrored topic"),
    "newer-than-checkpoints": ("group newer than the checkpoints", "groups newer than the checkpoints"),
}


def title(plan: Plan) -> str:
    """Names the flow, the plan and its time."""
    source, target = inert_line(plan.source.alias), inert_line(plan.target.alias)
    made = f"{plan.created:%Y-%m-%d %H:%M:%S} UTC"
    expires = clock(plan.expires, plan.created, seconds=False)
    return f"{source} -> {target}   plan {inert_line(plan.id)}   {made}   expires {expires}"


def head(plan: Plan, rows: list[GroupRow]) -> list[tuple[str, str]]:
    """Answers what an operator asks first."""
    lines = [("SOURCE", _source(plan))]
    if plan.target.state != "up":
        lines.append(("TARGET", _cluster_words(plan.target.state, plan.target.detail)))
    lines += [
        ("LOSS", _loss(plan)),
        ("RE-READ", _reread(plan, rows)),
        ("SKIP", _skip(plan, rows)),
        ("NOT IN", _not_in(plan)),
        ("GROUPS", _groups(plan)),
    ]
    asked = asked_for(plan.options)
    return lines + ([("ASKED", ", ".join(asked))] if asked else [])


def asked_for(options: PlanOptions) -> list[str]:
    """Writes the options that decide more than which groups are planned, as they are typed."""
    plain = PlanOptions()
    said = [f"--topic {inert_line(topic)}" for topic in options.topics]
    if options.rewind_by:
        said.append(f"--rewind-by {options.rewind_by:g}s")
    said += [
        f"--{name.replace('_', '-')} {inert_line(getattr(options, name))}"
        for name in ("missing", "precision", "local_topics")
        if getattr(options, name) != getattr(plain, name)
    ]
    if not options.content:
        said.append("--no-content")
    flags = ("all_or_nothing", "require_source_inactive", "create_group")
    allowed = ("allow_rewind", "allow_skip", "allow_moving_commits", "allow_unverified")
    return said + [f"--{name.replace('_', '-')}" for name in (*flags, *allowed) if getattr(options, name)]


def source_answers(plan: Plan) -> bool:
    """Says whether the source was asked and answered."""
    return plan.source.state in ("up", "degraded")


def _cluster_words(state: str, detail: str) -> str:
    words = {"not-asked": "NOT ASKED (--source-down)", "denied": "DENIED, it refuses the credentials"}
    text = words.get(state, inert_line(state.upper()))
    return f"{text}: {inert_line(detail)}" if detail and state not in ("down", "not-asked") else text


def _source(plan: Plan) -> str:
    source = plan.source
    text = _cluster_words(source.state, source.detail)
    if source_answers(plan):
        active = sum(bool(group.source_members) for group in plan.groups)
        verb = "consumes" if active == 1 else "consume"
        return text + (f"; {things(active, 'group')} still {verb} there" if active else "")
    silent = (plan.created - source.silent_since).total_seconds() if source.silent_since is not None else 0.0
    if silent >= 1:
        text += f", no answer for {duration(silent)}"
    elif source.state == "down" and source.detail:
        text += f": {inert_line(source.detail)}"
    known = last_known(plan)
    if known is None:
        return text + ". Nothing is known of its state"
    return text + f". Last known state {clock(known, plan.created)} ({age(known, plan.created)})"


def last_known(plan: Plan) -> datetime | None:
    """Gives when the newest checkpoint the plan relies on was written."""
    return max(
        (p.checkpoint.timestamp for g in plan.groups for p in g.partitions if p.checkpoint is not None), default=None
    )


def _loss(plan: Plan) -> str:
    lost = plan.unreplicated
    up = source_answers(plan)
    partly = any(finding.code == "position-unknown" for finding in plan.findings)
    if lost is None:
        asked = "" if up else " or how far the source was"
        return f"unknown: nothing tells how far the mirror is{asked}"
    if not lost:
        if partly:
            return "none where it is known; for some partitions nothing tells how far the mirror is"
        return "none: the target has everything" if up else "none known; what came later on the source is unknown"
    bounds = {row.bound for row in lost}
    if partly or (bounds & {"at-least"} and not bounds & {"at-most"}):
        bound = "at least "
    elif bounds == {"exact"}:
        bound = ""
    else:
        bound = "about " if "at-least" in bounds else "at most "
    worst = max(lost, key=lambda row: row.records)
    where = f"{inert_line(worst.source_topic)}-{worst.partition}"
    detail = where if len(lost) == 1 else f"{where}: {count(worst.records)}"
    total = things(sum(row.records for row in lost), "record")
    text = f"{bound}{total} in {things(len(lost), 'partition')} ({detail})"
    return text + (", if the source were gone now" if up else "")


def _reread(plan: Plan, rows: list[GroupRow]) -> str:
    counted = [row for row in rows if row.group.verdict in (Verdict.READY, Verdict.PARTIAL)]
    how = Counter(precision_of(row.group) for row in counted)
    words = [f"{how[kind]:,} {kind}" for kind in ("exact", "bounded", "conservative") if how[kind]]
    summary = plan.summary
    if not words:
        return "nothing"
    first, *others = words
    number, kind = first.split(" ", 1)
    noun = "group" if number == "1" else "groups"
    as_of = "" if source_answers(plan) or kind != "exact" else " as of then"
    detail = f" ({number} {noun} {kind}{as_of}{''.join(', ' + word for word in others)})"
    if summary.reread_max is None:
        return "unknown" + detail
    if summary.reread_max == 0:
        return "nothing" + detail
    if summary.reread is None or summary.reread == summary.reread_max:
        bound = "at most " if summary.reread is None else ""
        return f"{bound}{things(summary.reread_max, 'record')}{detail}"
    return f"about {things(summary.reread, 'record')}, at most {count(summary.reread_max)}{detail}"


def _skip(plan: Plan, rows: list[GroupRow]) -> str:
    summary = plan.summary
    skipping = sum(row.skipped > 0 for row in rows)
    skip = f"{things(summary.skipped, 'record')} in {things(skipping, 'group')}" if summary.skipped else "nothing"
    unknown = things(summary.unknown, "partition") if summary.unknown else "nothing"
    return f"{skip}      UNKNOWN  {unknown}"


def _groups(plan: Plan) -> str:
    counts = plan.summary.groups
    numbers = (
        (counts.ready, "ready"),
        (counts.partial, "partial"),
        (counts.refused, f"refused ({_why_refused(plan)})"),
        (counts.nothing, "with nothing to move"),
    )
    return ", ".join(f"{number:,} {word}" for number, word in numbers if number) or "none"


def _why_refused(plan: Plan) -> str:
    reasons = Counter(reason for group in plan.groups if group.verdict is Verdict.REFUSED for reason in group.reasons)
    if len(reasons) == 1:
        return phrase(next(iter(reasons)))
    more = "; others" if len(reasons) > 2 else ""
    return "; ".join(f"{number:,}: {phrase(reason)}" for reason, number in reasons.most_common(2)) + more


def _not_in(plan: Plan) -> str:
    whys = Counter(_left_by(plan, left) for left in plan.not_planned)
    if not whys:
        return "nothing is left out"
    parts = []
    # what waits for MM2 is no choice of anybody's, so it comes first
    for why, number in sorted(whys.items(), key=lambda item: (item[0] != "newer-than-checkpoints", -item[1])):
        one, many = _WHY_NOT.get(why, (f"group: {why}", f"groups: {why}"))
        parts.append(f"{number:,} {one if number == 1 else many}")
    return ", ".join(parts) + " (-v lists them)"


def _left_by(plan: Plan, left: NotPlanned) -> str:
    """Says who left a group out where the code alone does not."""
    if left.why != "excluded":
        return left.why
    if left.group in plan.options.exclude_groups:
        return "--exclude-group"
    return "--topic" if plan.options.topics and left.topics else left.why
