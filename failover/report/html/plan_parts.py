"""What both pages say of a plan: its answers, charts and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from failover.model.plan import Action, Plan, PlannedGroup, PlannedPartition, Severity
from failover.model.plan import Verdict as GroupVerdict
from failover.report.html.charts import BarChart, bars
from failover.report.html.page import Answer, Note
from failover.report.html.tables import Cell, Column, Table, number, place, text, total
from failover.report.inert import inert_line
from failover.report.phrases import phrase
from failover.report.plan_head import head, source_answers
from failover.report.plan_rows import HARMLESS, HEADERS, NUMBERS, GroupRow
from failover.report.values import at_most, count, duration, moment, things, unknown

_QUESTIONS = {
    "SOURCE": "Is the source up?",
    "TARGET": "Is the target up?",
    "LOSS": "What is lost?",
    "RE-READ": "What is read again?",
    "SKIP": "What is skipped?",
    "UNKNOWN": "What is unknown?",
    "NOT IN": "What is not in this plan?",
    "GROUPS": "How many groups are ready?",
    "ASKED": "What was asked for?",
}
TONES = {
    GroupVerdict.READY: "good",
    GroupVerdict.PARTIAL: "warn",
    GroupVerdict.REFUSED: "bad",
    GroupVerdict.NOTHING: "",
    Action.COMMIT: "good",
    Action.SKIP: "warn",
    Action.REFUSE: "bad",
}
_CAUSES = {
    "this-tool": "put there by this tool",
    "consumed-here": "consumed here",
    "mm2-group-sync": "by MM2's group sync",
}
_WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def answers(plan: Plan, rows: list[GroupRow]) -> list[Answer]:
    """Gives the first lines of the plan's report as questions and answers."""
    found = []
    for label, line in head(plan, rows):
        said = line.removesuffix(" (-v lists them)")
        if label == "SKIP":
            skip, _, rest = said.partition("      UNKNOWN  ")
            found.append(_answer(plan, "SKIP", skip))
            found.append(_answer(plan, "UNKNOWN", rest))
        else:
            found.append(_answer(plan, label, said))
    return found


def _answer(plan: Plan, label: str, said: str) -> Answer:
    summary = plan.summary
    tone = ""
    if label == "LOSS":
        tone = {None: "warn", 0: "good" if source_answers(plan) else ""}.get(summary.unreplicated, "bad")
    elif label == "SKIP":
        tone = "bad" if summary.skipped else "good"
    elif label == "UNKNOWN":
        tone = "warn" if summary.unknown else "good"
    elif label in ("SOURCE", "TARGET"):
        state = plan.source.state if label == "SOURCE" else plan.target.state
        tone = {"up": "good", "not-asked": ""}.get(state, "warn")
    elif label == "RE-READ" and summary.reread_max is None:
        tone = "warn"
    return Answer(label, _QUESTIONS[label], said.replace("<= ", "≤ "), tone)


def findings(plan: Plan) -> list[Note]:
    """Gives a plan's findings in their order."""
    return [
        Note(str(f.severity), inert_line(f.code), inert_line(f.message), inert_line(f.remedy), inert_line(f.subject))
        for f in plan.findings
    ]


def worst_first(notes: Iterable[Note]) -> list[Note]:
    """Orders notes by their severity."""
    return sorted(notes, key=lambda note: _WORST_FIRST.index(Severity(note.severity)))


def words(plan: Plan) -> set[str]:
    """Collects the words of a plan that have an explanation."""
    found = {"re-read", "skip", "left", "lag-after", "precision", "loss"}
    for group in plan.groups:
        found |= {str(group.verdict), *group.reasons}
        for p in group.partitions:
            found |= {p.reason, p.precision, p.proof}
    return found | {finding.code for finding in plan.findings}


def groups_table(rows: list[GroupRow]) -> Table:
    """Lists every group, worst first."""
    *most, why = HEADERS
    columns = [
        Column(name, "number" if name in NUMBERS else "tag" if name == "VERDICT" else "text", name == "VERDICT")
        for name in most
    ]
    columns[0] = Column("GROUP", "name")
    columns[-1:] = [Column("SKIP", "number"), columns[-1], Column(why, "prose")]
    return Table("groups", "Groups", tuple(columns), [_group(row) for row in rows], opens="partitions")


def _group(row: GroupRow) -> tuple[Cell, ...]:
    name, state, verdict, commits, left, refused, reread, lag, why = row.cells()
    idle = row.group.verdict in (GroupVerdict.REFUSED, GroupVerdict.NOTHING)
    skip = (
        Cell("-" if idle else unknown(None), None, "warn")
        if row.unknown and not row.skipped
        else number(row.skipped, "bad")
    )
    return (
        text(name),
        text(state),
        Cell(verdict, None, TONES[row.group.verdict]),
        Cell(commits, row.commits),
        Cell(left, row.left),
        Cell(refused, row.refused, "bad" if row.refused else ""),
        Cell(reread.replace("<= ", "≤ "), None if idle else row.reread_max),
        Cell("-") if idle else skip,
        Cell(lag, None if idle else row.lag_after),
        text(why),
    )


def partitions_table(rows: list[GroupRow]) -> Table:
    """Lists every partition of every group, in the groups' order; they are many, so the page shows few at once."""
    columns = (
        Column("GROUP", "name"),
        Column("PARTITION", "name"),
        Column("ACTION", "tag", choice=True),
        Column("NOW", "number"),
        Column("AFTER", "number"),
        Column("LOG END", "number"),
        Column("RE-READ", "number"),
        Column("SKIP", "number"),
        Column("LAG AFTER", "number"),
        Column("PRECISION", choice=True),
        Column("PROOF", choice=True),
        Column("MM2", "number"),
        Column("WHY", "prose"),
    )
    cells = [_partition(row.group, p) for row in rows for p in row.group.partitions]
    return Table("partitions", "Partitions", columns, cells)


def _partition(group: PlannedGroup, p: PlannedPartition) -> tuple[Cell, ...]:
    cost = at_most(p.reread, p.reread_max).replace("<= ", "≤ ")
    never = p.reason == "source-never-committed"
    harmless = p.action is Action.SKIP and p.reason in HARMLESS
    odd = "" if group.verdict is GroupVerdict.REFUSED else "warn"
    return (
        text(group.group),
        text(f"{p.topic}-{p.partition}"),
        Cell(str(p.action), None, "" if harmless else TONES[p.action]),
        place(p.target_committed),
        place(p.position_after.offset, "auto.offset.reset"),
        place(p.target_end),
        Cell(cost, p.reread_max if p.reread_max is not None else p.reread),
        number(p.skipped, "bad") if p.skipped is not None or never else Cell(unknown(None), None, odd),
        number(p.lag_after),
        text(p.precision),
        text("-" if p.proof == "none" else p.proof),
        place(p.mm2.offset if p.mm2 is not None else None),
        text(_why(p)),
    )


def _why(p: PlannedPartition) -> str:
    if p.ahead:
        return f"stands {count(p.ahead)} AHEAD, {_CAUSES.get(p.ahead_because or '', 'cause unknown')}"
    return phrase(p.reason)


def topics_table(plan: Plan) -> Table:
    """Sums up every topic of the plan, those the target lacks most of first."""
    lost = _lost_by_topic(plan)
    by_topic: dict[tuple[str, str], list[tuple[str, PlannedPartition]]] = {}
    for group in plan.groups:
        for p in group.partitions:
            by_topic.setdefault((p.source_topic, p.topic), []).append((group.group, p))
    for row in plan.unreplicated or ():
        by_topic.setdefault((row.source_topic, row.topic), [])
    columns = (
        Column("TOPIC", "name"),
        Column("ON TARGET", "name"),
        Column("PARTITIONS", "number"),
        Column("GROUPS", "number"),
        Column("COMMIT", "number"),
        Column("LEFT", "number"),
        Column("REFUSED", "number"),
        Column("MISSING", "number"),
        Column("RE-READ", "number"),
        Column("SKIP", "number"),
        Column("LAG AFTER", "number"),
    )
    ordered = sorted(by_topic.items(), key=lambda item: (-(lost or {}).get(item[0][0], 0), item[0]))
    return Table("topics", "Topics", columns, [_topic(names, found, lost) for names, found in ordered])


def _topic(
    names: tuple[str, str], found: list[tuple[str, PlannedPartition]], lost: dict[str, int] | None
) -> tuple[Cell, ...]:
    actions = Counter(p.action for _, p in found)
    placed = [p for _, p in found if p.position_after.offset is not None]
    bound = total(p.reread_max for p in placed)
    cost = at_most(total(p.reread for p in placed), bound).replace("<= ", "≤ ")
    missing = None if lost is None else lost.get(names[0], 0)
    return (
        text(names[0] or "-"),
        text(names[1]),
        number(len({p.partition for _, p in found})),
        number(len({group for group, _ in found})),
        number(actions[Action.COMMIT]),
        number(actions[Action.SKIP]),
        number(actions[Action.REFUSE], "bad"),
        Cell("unknown", None, "warn") if missing is None else number(missing, "bad"),
        Cell(cost, bound),
        number(sum(p.skipped or 0 for _, p in found), "bad"),
        number(total(p.lag_after for p in placed)),
    )


def _lost_by_topic(plan: Plan) -> dict[str, int] | None:
    if plan.unreplicated is None:
        return None
    lost: Counter[str] = Counter()
    for row in plan.unreplicated:
        lost[row.source_topic] += row.records
    return dict(lost)


def lost_table(plan: Plan) -> Table | None:
    """Lists the partitions of which the target does not have everything; None without any."""
    if not plan.unreplicated:
        return None
    columns = (
        Column("PARTITION", "name"),
        Column("ON TARGET", "name"),
        Column("RECORDS", "number"),
        Column("BOUND", choice=True),
        Column("TIME", "number"),
        Column("AS OF"),
    )
    rows = [
        (
            text(f"{row.source_topic}-{row.partition}"),
            text(f"{row.topic}-{row.partition}"),
            number(row.records, "bad"),
            text(row.bound.replace("-", " ")),
            Cell("-" if row.seconds is None else duration(row.seconds), row.seconds),
            text(moment(row.as_of)),
        )
        for row in sorted(plan.unreplicated, key=lambda row: (-row.records, row.source_topic, row.partition))
    ]
    return Table("lost", "Records that the target does not have", columns, rows)


def not_in_table(plan: Plan) -> Table | None:
    """Lists the groups that are not in the plan; None without any."""
    if not plan.not_planned:
        return None
    columns = (Column("GROUP", "name"), Column("WHY", choice=True), Column("TOPICS", "prose"))
    rows = [
        (text(left.group), text(phrase(left.why)), text(", ".join(left.topics) or "-")) for left in plan.not_planned
    ]
    return Table("left-out", "Groups that are not in this plan", columns, rows)


def charts(plan: Plan) -> Iterator[BarChart]:
    """Draws what MM2 alone would have read again, what the target lacks, and what is left to read."""
    yield _against_mm2(plan)
    lost = _lost_by_topic(plan)
    if lost:
        yield bars(
            "Missing on the target, by topic",
            "Records of the source that the target does not have: lost if the source is gone.",
            [("bad", "missing")],
            [(topic, (records,)) for topic, records in lost.items()],
            noun="topic",
        )
    yield _lag(plan)


def _against_mm2(plan: Plan) -> BarChart:
    measured: dict[str, list[int]] = {}
    silent = 0
    bound = ""
    for group in plan.groups:
        for p in group.partitions:
            if p.action is not Action.COMMIT or p.offset is None:
                continue
            ours = p.reread if p.reread is not None else p.reread_max
            if p.mm2 is None or ours is None:
                silent += p.mm2 is None
                continue
            bound = bound if p.reread is not None else "at most "
            sums = measured.setdefault(group.group, [0, 0])
            # What lies between both answers comes again on top; MM2 (MirrorCheckpointTask) answers at or below ours.
            sums[0] += max(0, ours + p.offset - p.mm2.offset)
            sums[1] += ours
    theirs, mine = (sum(sums[i] for sums in measured.values()) for i in (0, 1))
    cost = f"{bound}{things(theirs, 'record')} by MM2's offsets, {count(mine)} by this plan"
    return bars(
        "Read again by group: MM2's offsets against this plan",
        f"In the partitions this plan commits: {cost}." if measured else "MM2 gives no offset to compare with.",
        [("plain", "MM2's own offsets"), ("main", "this plan")],
        [(name, tuple(sums)) for name, sums in measured.items()],
        noun="group",
        note=f"MM2 has no offset for {things(silent, 'partition')} that this plan commits." if silent else "",
    )


def _lag(plan: Plan) -> BarChart:
    lag: Counter[str] = Counter()
    open_ended = 0
    for group in plan.groups:
        for p in group.partitions:
            if p.lag_after is None:
                open_ended += 1
            else:
                lag[p.source_topic or p.topic] += p.lag_after
    return bars(
        "Lag per topic after the failover",
        "Records that consumers of all groups have to read on the target before they are up to date.",
        [("main", "lag")],
        [(topic, (records,)) for topic, records in lag.items()],
        noun="topic",
        note=f"Not known for {things(open_ended, 'partition')}." if open_ended else "",
    )
