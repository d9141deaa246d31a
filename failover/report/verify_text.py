"""What a look at the target after an execution found: held, back, advancing; forecast against fact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from failover.model.execution import BY_MM2, ExecutedGroup, Execution, Now, Verified, VerifiedGroup
from failover.report.inert import inert_line
from failover.report.table import labelled, table
from failover.report.values import count, duration, members, moment, offset, things, unknown

SHOWN_GROUPS = 30
LOOKED_HEADERS = ("GROUP", "STATE", "MEMBERS", "HELD", "ADVANCED", "NOT", "CONSUMED", "LAG", "WHY")
GOOD = (Now.HELD, Now.ADVANCED)
OUTCOMES = {
    0: "HOLDS: the target is at or beyond what was written",
    4: "NOT ALL BACK: the target holds what was written, some groups are not back",
    6: "DOES NOT HOLD: the target is not where it was put",
    7: "UNKNOWN: some groups cannot be read now",
}
MEANING = {
    Now.EXPIRED: "its commit is gone: the group had no members for longer than the brokers keep offsets",
    Now.MISSING: "its commit is gone: somebody deleted it",
    Now.OVERWRITTEN: "moved though no member was seen: a client with manual assignment seems live",
    Now.BELOW: "set back since",
}


def verify_text(execution: Execution, verified: Verified, *, verbosity: int = 0, width: int = 100) -> str:
    """Writes what verifying an execution found; groups that are well are folded above 30 unless ``verbosity``."""
    blocks = [
        list(_head(execution, verified, width)),
        list(_groups(execution, verified, verbosity, width)),
        list(_bad(execution, width)),
        list(_next(execution, verified)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def last_look(verified: Verified) -> str:
    """Says in one line when an execution was verified last and what came of it, the exit code included."""
    watched = f", watched for {duration(verified.watched)}" if verified.watched >= 1 else ""
    known = OUTCOMES.get(verified.exit_code, "not known")
    return f"{known} ({moment(verified.at)}{watched}, exit {verified.exit_code})"


def verdicts(execution: Execution, verified: Verified, *, verbosity: int = 0, width: int = 100) -> Iterator[str]:
    """Lists what verifying found of each group, and each partition that does not hold."""
    yield from _groups(execution, verified, verbosity, width)
    yield from _bad(execution, width)


def _head(execution: Execution, verified: Verified, width: int) -> Iterator[str]:
    alias = inert_line(execution.target_alias)
    watched = f", watched for {duration(verified.watched)}" if verified.watched >= 1 else ""
    yield f"{alias}   run {inert_line(execution.id)}   {moment(verified.at)}{watched}"
    yield from labelled("VERDICT", OUTCOMES[verified.exit_code], width=width, indent=10)
    totals = Counter(p.verdict for group in execution.groups for p in group.partitions if p.verdict is not None)
    yield from labelled(
        "OFFSETS", ", ".join(f"{count(totals[now])} {now}" for now in Now if totals[now]), width=width, indent=10
    )
    seen = sum(group.seen for group in verified.groups)
    live = sum(bool(group.members) for group in verified.groups)
    text = f"{count(seen)} of {things(len(verified.groups), 'group')} had members since; {count(live)} have now"
    yield from labelled("BACK", text, width=width, indent=10)
    forecasts = [p.lag_after for group in execution.groups for p in group.partitions if p.verdict is not None]
    lags = [group.lag for group in verified.groups if group.lag is not None]
    if forecasts and all(one is not None for one in forecasts) and lags:
        forecast = sum(one for one in forecasts if one is not None)
        moved = sum(group.moved or 0 for group in verified.groups)
        text = (
            f"forecast {things(forecast, 'record')} at the start; now {count(sum(lags))}, {count(moved)} consumed since"
        )
        yield from labelled("LAG", text, width=width, indent=10)


def _groups(execution: Execution, verified: Verified, verbosity: int, width: int) -> Iterator[str]:
    rows = looked_rows(execution, verified)
    shown = rows if verbosity or len(rows) <= SHOWN_GROUPS else [row for row in rows if row[1].text][: 2 * SHOWN_GROUPS]
    if shown:
        numbers = frozenset(LOOKED_HEADERS[2:-1])
        yield table(
            LOOKED_HEADERS, [looked_cells(group, looked) for group, looked in shown], width=width, numbers=numbers
        )
    if len(shown) < len(rows):
        yield f"{things(len(rows) - len(shown), 'more group')} (-v lists them)"


def looked_rows(execution: Execution, verified: Verified) -> list[tuple[ExecutedGroup, VerifiedGroup]]:
    """Pairs each group with what was found of it, those with something to say first."""
    by_name = {group.group: group for group in execution.groups}
    rows = [(by_name[looked.group], looked) for looked in verified.groups if looked.group in by_name]
    return sorted(rows, key=lambda row: (not row[1].text, row[1].group))


def looked_cells(group: ExecutedGroup, looked: VerifiedGroup) -> tuple[str, ...]:
    """Gives a group's row as text, in the order of ``LOOKED_HEADERS``."""
    totals = Counter(p.verdict for p in group.partitions if p.verdict is not None)
    bad = sum(number for now, number in totals.items() if now not in GOOD)
    why = looked.text
    if looked.members:
        why = f"{why}; {members(looked.members)}" if why else members(looked.members)
    return (
        group.group,
        looked.state,
        count(len(looked.members)),
        count(totals[Now.HELD]),
        count(totals[Now.ADVANCED]),
        count(bad),
        count(looked.moved),
        unknown(looked.lag),
        why,
    )


def _bad(execution: Execution, width: int) -> Iterator[str]:
    rows = [
        (group.group, f"{p.topic}-{p.partition}", offset(p.written), offset(p.now), str(p.verdict))
        for group in execution.groups
        for p in group.partitions
        if p.verdict is not None and p.verdict not in GOOD
    ]
    if not rows:
        return
    headers = ("GROUP", "PARTITION", "WRITTEN", "NOW", "VERDICT")
    yield table(headers, rows[: 2 * SHOWN_GROUPS], width=width, numbers=frozenset({"WRITTEN", "NOW"}))
    if len(rows) > 2 * SHOWN_GROUPS:
        yield f"{count(len(rows) - 2 * SHOWN_GROUPS)} more partitions (--format json lists them)"
    for verdict, meaning in meanings(execution):
        yield from labelled(f"{verdict}:", meaning, width=width, indent=13)


def meanings(execution: Execution) -> list[tuple[Now, str]]:
    """Says what each verdict that is no good one means, and who did it where that is known."""
    found = [p for group in execution.groups for p in group.partitions if p.verdict in MEANING]
    told = {(p.verdict, _sync(execution) if p.because == BY_MM2 else MEANING[p.verdict]) for p in found if p.verdict}
    return sorted(told)


def _sync(execution: Execution) -> str:
    flow = f"{inert_line(execution.source_alias)}->{inert_line(execution.target_alias)}"
    return (
        "MirrorMaker 2's group sync is live and moved it to its own checkpoint while the group had no members: "
        f"stop its checkpoint connector or set {flow}.sync.group.offsets.enabled = false, then plan again"
    )


def by_mm2(execution: Execution) -> bool:
    """Says whether MirrorMaker 2 overwrote something."""
    return any(p.because == BY_MM2 for group in execution.groups for p in group.partitions)


def _next(execution: Execution, verified: Verified) -> Iterator[str]:
    run = inert_line(execution.id)
    if verified.exit_code == 6 and by_mm2(execution):
        yield "next: stop MirrorMaker 2's checkpoint connector, which writes these offsets, then failover plan"
    elif verified.exit_code == 6:
        yield "next: stop what writes these offsets, then failover plan"
    elif verified.exit_code == 4:
        yield f"next: start the consumers on {inert_line(execution.target_alias)}, then failover verify {run} --for 5m"
    elif verified.exit_code == 7:
        yield f"next: failover verify {run}"
