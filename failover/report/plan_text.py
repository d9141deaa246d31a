"""The dry-run screen: answers first, then groups, worst first; the last line is the next command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from failover.model.plan import Action, Plan, PlannedPartition, Severity, Verdict
from failover.report.inert import inert_line
from failover.report.phrases import phrase
from failover.report.plan_head import head, source_answers, title
from failover.report.plan_rows import HEADERS, NUMBERS, GroupRow, plainly_ready, rows, told_by_group
from failover.report.table import labelled, shorten, table
from failover.report.values import at_most, clock, count, offset, things

FOLD_ABOVE = 30
SHOWN_NOT_READY = 60
SHOWN_WHYS = 5
SHOWN_PARTITIONS = 40
FEW_GROUPS = 5
FEW_PARTITIONS = 24
ASKED_ROWS = 15

_CAUSES = {
    "this-tool": "by this tool",
    "consumed-here": "consumed here",
    "mm2-group-sync": "by MM2's group sync",
    "unknown": "cause unknown",
}


def plan_text(plan: Plan, *, verbosity: int = 0, evidence: bool = False, width: int = 100) -> str:
    """Writes a plan for a terminal of ``width`` columns; ``verbosity`` 1 lists everything that is folded."""
    found = rows(plan)
    blocks = [
        [title(plan)] + [line for label, text in head(plan, found) for line in labelled(label, text, width=width)]
    ]
    blocks.append(list(_groups(found, verbosity, width)))
    if verbosity:
        blocks.append(list(_not_in(plan, width)))
    blocks.append(list(_notes(plan, verbosity, width)))
    blocks.append(list(_partitions(found, verbosity, width)))
    if evidence:
        blocks.append(list(_evidence(plan)))
    blocks.append(_next(plan, found, width))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _groups(found: list[GroupRow], verbosity: int, width: int) -> Iterator[str]:
    nothing = sum(row.group.verdict is Verdict.NOTHING for row in found)
    shown = found if verbosity else [row for row in found if row.group.verdict is not Verdict.NOTHING]
    folded = withheld = cut = 0
    if not verbosity and len(shown) > FOLD_ABOVE:
        others = [row for row in shown if not row.plain]
        withheld = sum(row.withheld for row in shown)
        folded, cut = len(shown) - len(others) - withheld, max(0, len(others) - SHOWN_NOT_READY)
        shown = others[:SHOWN_NOT_READY]
    if shown:
        screen = table(HEADERS, [row.cells() for row in shown], width=width, numbers=NUMBERS)
        yield screen
        cut_short = [row for row in shown if row.why and inert_line(row.why) not in screen]
        for row in cut_short if verbosity else cut_short[:SHOWN_WHYS]:
            yield from labelled("  ", f"{inert_line(row.group.group)}: {inert_line(row.why)}", width=width, indent=4)
    if cut:
        yield f"{things(cut, 'more group')} not ready (-v lists them)"
    if folded:
        more = "more " if shown else ""
        reread = [row.reread_max for row in found if row.group.verdict is Verdict.READY]
        worst = max((number for number in reread if number is not None), default=0)
        rest = f", each re-reading at most {count(worst)}" if worst and None not in reread else ""
        yield f"{things(folded, more + 'group')} ready{rest} (-v lists them)"
    if withheld:
        more = "more " if shown else ""
        yield f"{things(withheld, more + 'group')} withheld by --all-or-nothing until that is settled (-v lists them)"
    if nothing and not verbosity:
        yield f"{things(nothing, 'group')} with nothing to move: no commit or checkpoint on a mirrored topic"
    if not found:
        yield "No group is in this plan."


def _not_in(plan: Plan, width: int) -> Iterator[str]:
    if plan.not_planned:
        cells = [(left.group, left.why, ", ".join(left.topics)) for left in plan.not_planned]
        yield table(("NOT IN", "WHY", "TOPICS"), cells, width=width)


def _notes(plan: Plan, verbosity: int, width: int) -> Iterator[str]:
    yield from subscriptions(plan, width)
    for finding in plan.findings:
        if finding.code == "mm2-group-sync" and finding.severity is Severity.ERROR:
            yield "MM2 group sync is ON: stop MM2 before consumers start."
        elif finding.code != "subscription-changes" and (verbosity or finding.severity is not Severity.INFO):
            label = f"{finding.severity}:"
            yield from labelled(label, f"{inert_line(finding.message)} [{finding.code}]", width=width)
            if verbosity and finding.subject:
                yield from labelled("", f"on: {inert_line(finding.subject)}", width=width)
            yield from labelled("", f"-> {inert_line(finding.remedy)}", width=width)


def subscriptions(plan: Plan, width: int = 100) -> Iterator[str]:
    """Says what consumers must subscribe to where names change; groups with the same list share a line."""
    lists = Counter(group.subscribe for group in plan.groups if group.local_topics)
    for topics, groups in lists.most_common(3):
        shown = [inert_line(topic) for topic in topics[:6]]
        more = f" AND {len(topics) - 6} more" if len(topics) > 6 else ""
        text = f"Consumers must subscribe to {' AND '.join(shown)}{more} ({things(groups, 'group')})."
        yield from labelled("", text, width=width, indent=0)
    if len(lists) > 3:
        yield f"{len(lists) - 3} more lists of topics: subscribe of each group in --format json."


def _partitions(found: list[GroupRow], verbosity: int, width: int) -> Iterator[str]:
    """Lists partitions: of few groups without being asked, all of them where they are few, else the odd ones."""
    few = len(found) <= FEW_GROUPS
    if not verbosity and not few:
        return
    everything = sum(len(row.group.partitions) for row in found) <= FEW_PARTITIONS or verbosity > 1
    chosen = [
        (row.group, p)
        for row in found
        for p in row.group.partitions
        if (everything or not plainly_ready(p)) and not told_by_group(row.group, p)
    ]
    limit = SHOWN_PARTITIONS if not verbosity else len(chosen)
    if chosen:
        headers = ("PARTITION", "ACTION", "NOW", "AFTER", "LOG END", "PROOF", "RE-READ", "SKIP", "WHY")
        numbers = frozenset({"NOW", "AFTER", "LOG END", "RE-READ", "SKIP"})
        screen = table(headers, [_partition_cells(p) for _, p in chosen[:limit]], width=width, numbers=numbers)
        first, *lines = screen.splitlines()
        yield first
        last = "" if len(found) > 1 else found[0].group.group
        for (group, _), line in zip(chosen, lines, strict=False):
            if group.group != last:
                yield f"group {shorten(inert_line(group.group), width - 6)}"
                last = group.group
            yield line
    if len(chosen) > limit:
        yield f"{count(len(chosen) - limit)} more partitions (-v lists them)"


def _partition_cells(p: PlannedPartition) -> tuple[str, ...]:
    why = phrase(p.reason)
    if p.ahead:
        why = f"AHEAD, {_CAUSES.get(p.ahead_because or '', 'cause unknown')}"
    after = offset(p.position_after.offset) if p.position_after.offset is not None else "reset"
    return (
        f"{p.topic}-{p.partition}",
        str(p.action),
        offset(p.target_committed),
        after,
        offset(p.target_end),
        "-" if p.proof == "none" else p.proof,
        at_most(p.reread, p.reread_max),
        "?" if p.skipped is None and p.reason != "source-never-committed" else count(p.skipped),
        why,
    )


def _evidence(plan: Plan) -> Iterator[str]:
    for group in plan.groups:
        for p in group.partitions:
            placed = f"commit {p.offset}" if p.offset is not None else f"{p.action} ({p.reason})"
            place = f"{inert_line(group.group)}  {inert_line(p.topic)}-{p.partition}"
            yield f"{place}: {placed}, {p.precision} by {p.proof}"
            if p.source_committed is not None:
                yield f"    the source's committed offset is {p.source_committed}"
            if p.checkpoint is not None:
                seen = p.checkpoint
                when = clock(seen.timestamp, plan.created)
                yield f"    newest checkpoint {seen.upstream} -> {seen.downstream}, {when}"
            for line in p.evidence:
                yield f"    {inert_line(line)}"
            if p.mm2 is not None:
                cost = "" if p.mm2.reread is None else f", which reads {things(p.mm2.reread, 'record')} again"
                whose = "MM2's own answer is" if p.checkpoint is not None else "MM2 has no checkpoint yet, it would say"
                yield f"    {whose} {p.mm2.offset}{cost}"


def _next(plan: Plan, found: list[GroupRow], width: int) -> list[str]:
    command = f"next: {next_command(plan)}"
    word = _word_to_explain(plan, found)
    if not word:
        return [command]
    explain = f"explain a word: failover explain {word}"
    both = f"{command}          {explain}"
    return [both] if len(both) <= width else [explain, command]


def next_command(plan: Plan) -> str:
    """Gives the command, or the act, that comes next."""
    groups = plan.summary.groups
    # read backwards, the flow is none that a command picks by itself
    flow = f" --source {inert_line(plan.flow.source)} --target {inert_line(plan.flow.target)}" * plan.flow.reversed
    if plan.summary.partitions.commit:
        return f"failover execute{flow}"
    if _newer(plan) and not groups.refused and not groups.partial:
        return f"wait for MM2's first checkpoint of what is NOT IN, then failover plan{flow}"
    if not groups.refused and not groups.partial:
        return "start the consumers; all stand where they should" if groups.ready else "none: nothing is to be moved"
    if any("group-active" in group.reasons for group in plan.groups):
        return f"stop the members on {inert_line(plan.target.alias)}, then failover plan{flow}"
    return f"clear what is refused or unknown (WHY), then failover plan{flow}"


def _newer(plan: Plan) -> bool:
    return any(left.why == "newer-than-checkpoints" for left in plan.not_planned)


def _word_to_explain(plan: Plan, found: list[GroupRow]) -> str:
    for row in found:
        if row.group.reasons:
            return row.group.reasons[0]
    if any(f.code == "mm2-group-sync" for f in plan.findings):
        return "mm2-group-sync"
    if plan.summary.partitions.commit:
        return "re-read"
    return "newer-than-checkpoints" if _newer(plan) else ""


def before_after(plan: Plan, wanted: Collection[str], *, width: int = 100) -> str:
    """Writes the question before execute: what stands now, what will stand, and what that means.

    ``wanted``: the names of the groups that are executed.
    """
    found = [row for row in rows(plan) if row.group.group in wanted]
    writing = [row for row in found if row.commits]
    commits = sum(row.commits for row in writing)
    cells = [
        (
            row.group.group,
            f"{p.topic}-{p.partition}",
            offset(p.target_committed),
            offset(p.offset),
            at_most(p.reread, p.reread_max),
        )
        for row in writing
        for p in row.group.partitions
        if p.action is Action.COMMIT
    ]
    lines = [title(plan), ""]
    if len(cells) > ASKED_ROWS:
        lines.append(table(HEADERS, [row.cells() for row in found[:ASKED_ROWS]], width=width, numbers=NUMBERS))
        if len(found) > ASKED_ROWS:
            lines.append(f"{things(len(found) - ASKED_ROWS, 'more group')} (failover plan -v lists them)")
    elif cells:
        headers = ("GROUP", "PARTITION", "NOW", "AFTER", "RE-READ")
        lines.append(table(headers, cells, width=width, numbers=frozenset({"NOW", "AFTER", "RE-READ"})))
    lines.append("")
    who = f"plan {inert_line(plan.id)} of {inert_line(plan.operator)}"
    what = f"{things(commits, 'offset')} of {things(len(writing), 'group')}"
    lines.append(f"This commits {what} on {inert_line(plan.target.alias)} ({who}).")
    lines += _consequences(plan, found)
    return "\n".join(lines)


def _consequences(plan: Plan, found: list[GroupRow]) -> list[str]:
    lines = []
    skipped = sum(row.skipped for row in found)
    unknown = sum(row.unknown for row in found)
    refused = sum(row.group.verdict is Verdict.REFUSED for row in found)
    back = sum(
        p.target_committed is not None and p.offset is not None and p.offset < p.target_committed
        for row in found
        for p in row.group.partitions
    )
    if skipped:
        which = things(sum(row.skipped > 0 for row in found), "group")
        lines.append(f"{things(skipped, 'unread record')} will be SKIPPED in {which} when consumers start.")
    if unknown:
        lines.append(f"Where consumers start is UNKNOWN for {things(unknown, 'partition')}.")
    again = _read_again(found)
    if again:
        lines.append(again)
    if back:
        lines.append(f"{things(back, 'commit')} MOVE BACK (--allow-rewind).")
    if refused:
        lines.append(f"{things(refused, 'group')} {'is' if refused == 1 else 'are'} refused and left alone.")
    if not source_answers(plan):
        lines.append("The source does not answer: what was consumed there after the last checkpoint is read again.")
    if any(f.code == "mm2-group-sync" and f.severity is Severity.ERROR for f in plan.findings):
        lines.append("MM2 group sync is ON: stop MM2 before consumers start.")
    lines.append("It can be undone (failover rollback) until a group's consumers start.")
    return lines


def _read_again(found: list[GroupRow]) -> str:
    """Says how many records come again in what is committed, "" when none does."""
    committed = [p for row in found for p in row.group.partitions if p.action is Action.COMMIT]
    bounds = [p.reread_max for p in committed]
    if any(bound is None for bound in bounds):
        return "How many records are read again is not known for every partition."
    most = sum(bound or 0 for bound in bounds)
    return f"At most {things(most, 'record')} {'is' if most == 1 else 'are'} read again." if most else ""
