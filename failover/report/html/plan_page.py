"""A plan as one HTML file."""

from __future__ import annotations

from collections.abc import Iterator

from failover.model.plan import Plan, PlanOptions, Severity
from failover.report.html.page import Verdict, glossary, render
from failover.report.html.plan_parts import (
    answers,
    charts,
    findings,
    groups_table,
    lost_table,
    not_in_table,
    partitions_table,
    topics_table,
    words,
    worst_first,
)
from failover.report.inert import inert_line
from failover.report.plan_head import source_answers
from failover.report.plan_rows import GroupRow, rows
from failover.report.plan_text import next_command, subscriptions
from failover.report.values import count, duration, moment, things


def plan_html(plan: Plan) -> str:
    """Writes a plan as a page that needs nothing else: no network, no other file, no server."""
    found = rows(plan)
    tables = [
        groups_table(found),
        topics_table(plan),
        lost_table(plan),
        partitions_table(found),
        not_in_table(plan),
    ]
    return render(
        "plan.html.j2",
        {
            "title": f"Plan {inert_line(plan.id)}",
            "flow": (inert_line(plan.source.alias), inert_line(plan.target.alias)),
            "subtitle": f"Dry run made {moment(plan.created)}. Nothing was written to either cluster.",
            "verdict": plan_verdict(plan, found),
            "answers": answers(plan, found),
            "steps": list(_steps(plan)),
            "findings": worst_first(findings(plan)),
            "timeline": None,
            "charts": list(charts(plan)),
            "about": "About this plan",
            "tables": {table.id: table for table in tables if table is not None},
            "facts": list(plan_facts(plan)),
            "words": glossary(words(plan)),
            "version": inert_line(plan.tool_version),
        },
    )


def plan_verdict(plan: Plan, found: list[GroupRow]) -> Verdict:
    """Sums a plan up in one sentence for somebody who was not there."""
    groups, summary = plan.summary.groups, plan.summary
    alias = inert_line(plan.target.alias)
    all_groups = groups.ready + groups.partial + groups.refused
    if not all_groups:
        return Verdict("", "Nothing to do", "No group of this plan has an offset to move.")
    if not groups.ready + groups.partial:
        said = f"None of the {count(all_groups)} groups can continue" if all_groups > 1 else "The group cannot continue"
        return Verdict("bad", "Not ready", f"{said} on {alias} yet: as it stands, this plan would write nothing.")
    if groups.ready == all_groups:
        who = f"All {count(all_groups)} groups" if all_groups > 1 else "The group"
        tone, word, said = "good", "Ready", f"{who} can continue on {alias}"
    else:
        tone, word = "warn", "Ready in part"
        said = f"{count(groups.ready)} of {things(all_groups, 'group')} can continue on {alias}"
        rest = [
            f"{count(number)} {how}"
            for number, how in ((groups.partial, "only in part"), (groups.refused, "not yet"))
            if number
        ]
        said += f", {' and '.join(rest)}" if rest else ""
    parts = [said]
    if summary.skipped:
        skipping = things(sum(row.skipped > 0 for row in found), "group")
        parts.append(f"{things(summary.skipped, 'unread record')} would be skipped in {skipping}")
    if summary.unknown:
        parts.append(f"for {things(summary.unknown, 'partition')} nobody can tell where consumers start")
    if not summary.skipped and not summary.unknown:
        parts.append("no unread record is skipped")
    if summary.reread_max is None:
        parts.append("how many records are read again is not known for every partition")
    elif summary.reread_max:
        again = "is" if summary.reread_max == 1 else "are"
        parts.append(f"at most {things(summary.reread_max, 'record')} {again} read again")
    else:
        parts.append("none is read again" if parts[-1] == "no unread record is skipped" else "nothing is read again")
    return Verdict(tone, word, f"{parts[0]}: {', '.join(parts[1:-1])}{' and ' if parts[1:-1] else ''}{parts[-1]}.")


def _steps(plan: Plan) -> Iterator[tuple[str, str]]:
    """Gives what to do, as (text, command); the command may be empty."""
    command = next_command(plan)
    if command.startswith("failover "):
        told = "Commit this plan" if plan.summary.partitions.commit else "Plan again"
        yield told, f"{command} {plan.id}" if command == "failover execute" else command
    else:
        yield command[0].upper() + command[1:], ""
    if not source_answers(plan) and plan.unreplicated:
        yield "Keep this page: it is the record of what the target does not have", ""
    if any(f.code == "mm2-group-sync" and f.severity is Severity.ERROR for f in plan.findings):
        yield "Stop MM2 before consumers start: its group sync is ON and would write these groups' offsets", ""
    for line in subscriptions(plan, 10**6):
        yield " ".join(line.split()).removesuffix("."), ""


def plan_facts(plan: Plan) -> Iterator[tuple[str, str]]:
    """Gives what identifies a plan and how it was asked for."""
    yield "Plan", inert_line(plan.id)
    yield "Made", f"{moment(plan.created)} by {inert_line(plan.operator)}"
    yield "Expires", moment(plan.expires)
    if plan.reason:
        yield "Reason", inert_line(plan.reason)
    for label, cluster in (("Source", plan.source), ("Target", plan.target)):
        identity = f", cluster id {inert_line(cluster.cluster_id)}" if cluster.cluster_id else ""
        detail = f" ({inert_line(cluster.detail)})" if cluster.detail else ""
        yield label, f"{inert_line(cluster.alias)}: {inert_line(cluster.state)}{detail}{identity}"
    yield "Replication policy", inert_line(plan.flow.replication_policy)
    yield "Options", _options(plan.options)
    yield "Expected time to execute", duration(plan.summary.execute_seconds)
    yield "Fingerprint", inert_line(plan.fingerprint)


def _options(options: PlanOptions) -> str:
    plain = PlanOptions()
    changed = []
    for name in PlanOptions.__struct_fields__:
        value = getattr(options, name)
        if value == getattr(plain, name):
            continue
        said = ", ".join(value) if isinstance(value, tuple) else str(value)
        changed.append(name.replace("_", " ") + ("" if value is True else f": {said}"))
    return inert_line("; ".join(changed)) or "none"
