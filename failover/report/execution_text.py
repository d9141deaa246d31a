"""What an execution did, and what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from failover.model.execution import ExecutedGroup, ExecutedPartition, Execution, Outcome, Rehearsal, Status
from failover.model.plan import Plan, Severity
from failover.report.inert import inert_line
from failover.report.phrases import phrase
from failover.report.plan_text import subscriptions
from failover.report.table import labelled, table
from failover.report.values import count, duration, members, moment, offset, things
from failover.report.verify_text import last_look, verdicts

SHOWN_GROUPS = 30
SHOWN_PARTITIONS = 40
SHOWN_WHYS = 5
HEADERS = ("GROUP", "WAS", "COMMITTED", "SAME", "LEFT", "REFUSED", "FAILED", "UNKNOWN", "WHY")

OUTCOMES = {
    Outcome.DONE: "DONE",
    Outcome.PARTIAL: "PARTLY DONE",
    Outcome.REFUSED: "REFUSED, nothing was written",
    Outcome.FAILED: "FAILED: the target does not hold what was written",
    Outcome.UNKNOWN: "UNKNOWN: some writes were sent and their outcome could not be read back",
}
PLAN_AGAIN = "Plan again before consumers start: failover plan"
NOT_REACHED = "not-reached"
_AS_USUAL = frozenset({"", "already-there", "source-never-committed"})
"""Why a partition is left that nobody needs to look at."""
_WORST = (Status.UNKNOWN, Status.FAILED, Status.REFUSED, Status.SKIPPED, Status.COMMITTED, Status.UNCHANGED)


def execution_text(
    execution: Execution, plan: Plan | None = None, *, undone: str = "", verbosity: int = 0, width: int = 100
) -> str:
    """Writes an execution for a terminal; with its plan also what consumers must subscribe to.

    ``undone``: by which run, and when, it was rolled back since; "" where it was not. Groups whose offsets are all
    in place are folded unless ``verbosity``; ``verbosity`` 2 lists every partition.
    """
    blocks = [list(_head(execution, undone, width)), list(_groups(execution, verbosity, width))]
    blocks.append(list(_troubles(execution, verbosity, width)))
    blocks.append([line for text in execution.warnings for line in labelled("warning:", inert_line(text), width=width)])
    if execution.verified is not None:
        blocks.append(list(verdicts(execution, execution.verified, verbosity=verbosity, width=width)))
    blocks.append(list(_steps(execution, plan, undone, width)))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(execution: Execution, undone: str, width: int) -> Iterator[str]:
    what = f"rolls back {execution.undoes}" if execution.undoes else f"of plan {execution.plan_id}"
    aliases = f"{inert_line(execution.source_alias)} -> {inert_line(execution.target_alias)}"
    yield f"{aliases}   run {inert_line(execution.id)} {inert_line(what)}   {moment(execution.started)}"
    if execution.reason:
        yield from labelled("REASON", inert_line(execution.reason), width=width, indent=11)
    for label, text in facts(execution, undone):
        yield from labelled(label, text, width=width, indent=11)


def outcome_words(execution: Execution) -> str:
    """Says in a few words what became of an execution; one that ended before it came to anything is not refused."""
    partitions = [p for group in execution.groups for p in group.partitions]
    refused = any(group.message for group in execution.groups) or any(p.status is Status.REFUSED for p in partitions)
    if execution.outcome is Outcome.FAILED and without_effect(execution):
        return "CUT SHORT: some commits were sent and had no effect"
    if execution.outcome is not Outcome.REFUSED or refused:
        return OUTCOMES[execution.outcome]
    if any(p.reason == NOT_REACHED for p in partitions):
        return "INTERRUPTED, nothing was written"
    return "NOTHING WRITTEN, and not every group stands as it should"


def without_effect(execution: Execution) -> bool:
    """Says whether all that failed stands as it did before: nobody else wrote there, and it can be sent again."""
    failed = [p for group in execution.groups for p in group.partitions if p.status is Status.FAILED]
    return all(p.read_back == (p.before.offset if p.before is not None else None) for p in failed)


def facts(execution: Execution, undone: str = "") -> Iterator[tuple[str, str]]:
    """Gives the first lines of the report as (label, answer)."""
    if undone:
        yield "NOW", f"ROLLED BACK since, by {inert_line(undone)}"
    took = ""
    if execution.finished is not None:
        took = f" in {duration((execution.finished - execution.started).total_seconds())}"
    yield "OUTCOME", outcome_words(execution) + took
    totals = Counter(_fate(p) for group in execution.groups for p in group.partitions)
    written = sum(any(p.status is Status.COMMITTED for p in group.partitions) for group in execution.groups)
    text = f"{things(totals[Status.COMMITTED], 'offset')} of {things(written, 'group')}, read back and found right"
    if not written:
        text = "nothing"
    if totals[Status.UNCHANGED]:
        text += f"; {count(totals[Status.UNCHANGED])} stood there already"
    yield "PUT BACK" if execution.undoes else "COMMITTED", text
    for status, label, words in (
        (NOT_REACHED, "OPEN", "not reached: it ended before them"),
        (Status.SKIPPED, "LEFT", "left as they are, as planned"),
        (Status.REFUSED, "REFUSED", "refused, nothing written"),
        (Status.FAILED, "FAILED", "not as written"),
        (Status.UNKNOWN, "UNKNOWN", "sent, outcome unknown"),
    ):
        if totals[status]:
            groups = sum(any(_fate(p) == status for p in group.partitions) for group in execution.groups)
            yield label, f"{things(totals[status], 'partition')} in {things(groups, 'group')} {words}"
    if execution.overrides:
        yield "ALLOWED", ", ".join(f"--{inert_line(name).replace('_', '-')}" for name in execution.overrides)
    if execution.stopped:
        yield "STOPPED", inert_line(execution.stopped)
    if execution.verified is not None:
        yield "VERIFIED", last_look(execution.verified)


def _fate(p: ExecutedPartition) -> str:
    """Is a partition's status, or that the execution ended before it came to it."""
    return NOT_REACHED if p.status is Status.SKIPPED and p.reason == NOT_REACHED else p.status


def _groups(execution: Execution, verbosity: int, width: int) -> Iterator[str]:
    ordered = sorted(execution.groups, key=lambda group: (rank(group), group.group))
    placed = [group for group in ordered if in_place(group)]
    shown = ordered
    if not verbosity:
        shown = ordered if len(ordered) <= SHOWN_GROUPS else [g for g in ordered if not in_place(g)]
        shown = shown[: 2 * SHOWN_GROUPS]
    if shown:
        numbers = frozenset(HEADERS[2:-1])
        screen = table(HEADERS, [group_cells(group) for group in shown], width=width, numbers=numbers)
        yield screen
        cut_short = [group for group in shown if inert_line(_why(group)) not in screen]
        for group in cut_short if verbosity else cut_short[:SHOWN_WHYS]:
            yield from labelled("  ", f"{inert_line(group.group)}: {inert_line(_why(group))}", width=width, indent=4)
    folded = len(ordered) - len(shown)
    if folded:
        kind = "in place" if folded <= len(placed) and len(shown) < 2 * SHOWN_GROUPS else "not listed"
        yield f"{things(folded, 'more group' if shown else 'group')} {kind} (-v lists them)"


def rank(group: ExecutedGroup) -> int:
    """Orders groups, those with the worst outcome first."""
    if group.message:
        return _WORST.index(Status.REFUSED)
    return min((_WORST.index(p.status) for p in group.partitions), default=len(_WORST))


def in_place(group: ExecutedGroup) -> bool:
    """Says whether all of a group's offsets are where they were put, or were there already."""
    return rank(group) >= _WORST.index(Status.COMMITTED)


def group_cells(group: ExecutedGroup) -> tuple[str, ...]:
    """Gives a group's row as text, in the order of ``HEADERS``."""
    totals = Counter(p.status for p in group.partitions)
    order = (Status.COMMITTED, Status.UNCHANGED, Status.SKIPPED, Status.REFUSED, Status.FAILED, Status.UNKNOWN)
    state = group.state if group.existed else "absent"
    return (group.group, state, *(count(totals[status]) for status in order), _why(group))


def _why(group: ExecutedGroup) -> str:
    if group.members:
        return members(group.members)
    if group.message or group.reasons:
        return group.message or "; ".join(phrase(code) for code in group.reasons)
    left = Counter(p.reason for p in group.partitions if p.status is Status.SKIPPED and p.reason not in _AS_USUAL)
    return "; ".join(f"{things(number, 'partition')}: {phrase(code)}" for code, number in sorted(left.items()))


def _troubles(execution: Execution, verbosity: int, width: int) -> Iterator[str]:
    """Names each partition that failed or is unknown; at verbosity 2 every partition."""
    odd = {Status.FAILED, Status.UNKNOWN}
    chosen = [(group, p) for group in execution.groups for p in group.partitions if p.status in odd or verbosity > 1]
    limit = len(chosen) if verbosity else SHOWN_PARTITIONS
    if chosen:
        headers = ("GROUP", "PARTITION", "BEFORE", "PLANNED", "READ BACK", "STATUS", "WHY")
        cells = [
            (
                group.group,
                f"{p.topic}-{p.partition}",
                offset(p.before.offset if p.before is not None else None),
                offset(p.planned),
                offset(p.read_back),
                str(p.status),
                p.error or phrase(p.reason),
            )
            for group, p in chosen[:limit]
        ]
        yield table(headers, cells, width=width, numbers=frozenset({"BEFORE", "PLANNED", "READ BACK"}))
    if len(chosen) > limit:
        yield f"{count(len(chosen) - limit)} more partitions (-v lists them)"
    for group in execution.groups if verbosity else ():
        for note in group.notes:
            yield from labelled("note:", f"{inert_line(group.group)}: {inert_line(note)}", width=width)


def _steps(execution: Execution, plan: Plan | None, undone: str, width: int) -> Iterator[str]:
    steps = list(next_steps(execution, plan, undone))
    if steps:
        yield "What to do next:"
    for number, step in enumerate(steps, 1):
        yield from labelled(f"{number}.", step, width=width, indent=4)


def next_steps(execution: Execution, plan: Plan | None, undone: str = "") -> Iterator[str]:
    """Says what to do next, a sentence each; of one that was rolled back since, its own steps are past."""
    if undone:
        yield PLAN_AGAIN
        return
    run, alias = inert_line(execution.id), inert_line(execution.target_alias)
    statuses = Counter(p.status for group in execution.groups for p in group.partitions)
    if statuses[Status.UNKNOWN]:
        yield f"Settle what is unknown: failover execute --resume {run} reads the target again and goes on."
    how = f"rollback {inert_line(execution.undoes)}" if execution.undoes else f"execute --resume {run}"
    if statuses[Status.FAILED] and without_effect(execution):
        yield f"Send again what had no effect: failover {how}"
    elif statuses[Status.FAILED]:
        yield f"See what the target holds: failover show {run} -v. Somebody else may be writing these offsets."
    if any(_fate(p) == NOT_REACHED for group in execution.groups for p in group.partitions):
        yield f"Go on with what was not reached: failover {how}"
    if execution.undoes:
        yield PLAN_AGAIN
        return
    written = statuses[Status.COMMITTED] + statuses[Status.UNCHANGED]
    if plan is not None and written and _sync_is_live(plan):
        yield "Stop MM2's checkpoint connector: its group sync would write these groups' offsets again."
    active = [group for group in execution.groups if group.members]
    if active:
        command = "failover execute --wait 5m" + "".join(f" --group {shlex.quote(inert_line(g.group))}" for g in active)
        if len(active) > 3:
            command = f"failover execute {inert_line(execution.plan_id)} --wait 5m"
        who = f"{things(len(active), 'refused group')} on {alias} ({_named(active)})"
        yield f"Stop the consumers of {who}, then: {command}"
    rest = [g for g in execution.groups if not g.members and any(p.status is Status.REFUSED for p in g.partitions)]
    if rest:
        names = f" of {_named(rest)}" if active else ""
        yield f"Clear what is refused{names} (WHY; failover explain CODE), then: failover plan"
    if not written:
        return
    wanted = [" ".join(line.split()) for line in subscriptions(plan, 10**6)] if plan is not None else []
    start = f"Start the consumers on {alias}."
    yield " ".join([start, *wanted])
    yield f"Watch them come back: failover verify {run} --for 5m"
    yield f"To undo, before they start: failover rollback {run}"


def _named(groups: list[ExecutedGroup]) -> str:
    return ", ".join(inert_line(group.group) for group in groups[:3]) + (" …" if len(groups) > 3 else "")


def _sync_is_live(plan: Plan) -> bool:
    return any(f.code == "mm2-group-sync" and f.severity is Severity.ERROR for f in plan.findings)


def rehearsal_text(rehearsal: Rehearsal, plan: Plan, *, width: int = 100) -> str:
    """Writes what executing the plan would do now; nothing was written."""
    commits = sum(group.commits for group in rehearsal.groups)
    same = sum(group.unchanged for group in rehearsal.groups)
    left = [group for group in rehearsal.groups if group.reason]
    alias = inert_line(rehearsal.target_alias)
    lines = [
        f"Dry run of plan {inert_line(plan.id)} on {alias}   {moment(rehearsal.at)}   nothing was written",
        f"It would commit {things(commits, 'offset')} of "
        f"{things(sum(group.commits > 0 for group in rehearsal.groups), 'group')}"
        + (f"; {count(same)} stand there already" if same else "")
        + (f"; {things(len(left), 'group')} would be left alone" if left else "")
        + ".",
    ]
    odd = [group for group in rehearsal.groups if group.reason or group.refused]
    shown = rehearsal.groups if len(rehearsal.groups) <= SHOWN_GROUPS else odd[: 2 * SHOWN_GROUPS]
    if shown:
        headers = ("GROUP", "TARGET", "COMMIT", "SAME", "REFUSED", "WHY")
        cells = [
            (
                group.group,
                "absent" if group.state == "Dead" else group.state,
                count(group.commits),
                count(group.unchanged),
                count(len(group.refused)),
                members(group.members) if group.members else group.message or "; ".join(r[3] for r in group.refused),
            )
            for group in sorted(shown, key=lambda group: (not group.reason, not group.refused, group.group))
        ]
        numbers = frozenset({"COMMIT", "SAME", "REFUSED"})
        lines += ["", table(headers, cells, width=width, numbers=numbers)]
    if len(shown) < len(rehearsal.groups):
        lines.append(f"{things(len(rehearsal.groups) - len(shown), 'more group')} (--format json lists them)")
    lines += ["", f"next: failover execute {inert_line(plan.id)}" if commits else "next: failover plan"]
    return "\n".join(lines) + "\n"
