"""The screens as they are: each constructed plan against its golden text, and what must hold for all.

Rewrite the golden files with ``UPDATE_GOLDEN=1 pytest tests/unit/report`` and read the difference.
"""

from __future__ import annotations

import csv
import io
import os
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from failover.execution.summary import summarize
from failover.model.cluster import ClusterState
from failover.model.execution import (
    CommitRecord,
    ExecutedGroup,
    ExecutedPartition,
    Execution,
    History,
    Outcome,
    Rehearsal,
    RehearsedGroup,
    Status,
)
from failover.model.groups import Member
from failover.model.plan import Plan
from failover.planning.plan_file import decode_plan
from failover.report.encode import to_json
from failover.report.execution_text import execution_text, rehearsal_text
from failover.report.history_text import history_text
from failover.report.plan_csv import plan_csv
from failover.report.plan_markdown import plan_markdown
from failover.report.plan_text import before_after, plan_text
from failover.report.table import labelled, screen_width
from tests.unit.planning.worlds import TAKEN
from tests.unit.report import plans

GOLDEN = Path(__file__).parent / "golden"

STORIES = {
    "source-down": plans.source_down,
    "thousand": plans.thousand,
    "all-ready": plans.all_ready,
    "all-refused": plans.all_refused,
    "conservative": plans.conservative,
    "hostile": plans.hostile,
    "nothing": plans.nothing,
}


def check(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def fits(text: str) -> None:
    for line in text.splitlines():
        assert screen_width(line) <= 100, line
        assert line == line.rstrip(), repr(line)


@pytest.mark.parametrize("story", STORIES)
def test_plan_screen(story):
    text = plan_text(STORIES[story]())
    fits(text)
    check(f"plan-{story}.txt", text)


@pytest.mark.parametrize("story", ["source-down", "conservative"])
def test_plan_screen_with_everything(story):
    text = plan_text(STORIES[story](), verbosity=1, evidence=story == "conservative")
    fits(text)
    check(f"plan-{story}-v.txt", text)


@pytest.mark.parametrize("story", ["source-down", "all-ready"])
def test_question_before_execute(story):
    plan = STORIES[story]()
    text = before_after(plan, [group.group for group in plan.groups])
    fits(text)
    check(f"question-{story}.txt", text + "\n")


@pytest.mark.parametrize("story", ["source-down", "hostile"])
def test_ticket(story):
    check(f"ticket-{story}.md", plan_markdown(STORIES[story]()))


def test_first_lines_answer_the_first_questions():
    for story in STORIES.values():
        labels = [line.split()[0] for line in plan_text(story()).splitlines()[1:] if line[:1].isupper()]
        assert labels[:6] == ["SOURCE", "LOSS", "RE-READ", "SKIP", "NOT", "GROUPS"]


def test_last_line_is_the_next_command():
    for story in STORIES.values():
        assert plan_text(story()).splitlines()[-1].startswith("next: ")


def test_worst_groups_come_first_and_ready_ones_are_folded():
    text = plan_text(plans.source_down())
    lines = text.splitlines()
    names = [line.split()[0] for line in lines[lines.index(next(x for x in lines if x.startswith("GROUP "))) + 1 :][:3]]
    assert names == ["fraud", "ledger", "search"]
    assert "46 more groups ready" in text
    assert "group-0007" not in text
    assert "group-0007" in plan_text(plans.source_down(), verbosity=1)


def test_screens_stay_bounded():
    refused = plans.big(1000, 4)
    for name in refused.groups:
        info = msgspec.structs.replace(refused.target.groups["ledger"], name=name)
        refused.target.groups[name] = info
    text = plan_text(plans.build(refused))
    assert len(text.splitlines()) < 100
    assert "more groups not ready" in text
    assert len(plan_markdown(plans.build(refused)).splitlines()) < 250


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (ClusterState.UP, "UP"),
        (ClusterState.DEGRADED, "DEGRADED: 1 of 3 brokers"),
        (ClusterState.DENIED, "DENIED, it refuses the credentials: 1 of 3 brokers"),
        (ClusterState.NOT_ASKED, "NOT ASKED (--source-down)"),
    ],
)
def test_states_of_the_source(state, said):
    plan = plans.source_down()
    source = msgspec.structs.replace(plan.source, state=str(state), detail="1 of 3 brokers", silent_since=None)
    line = plan_text(msgspec.structs.replace(plan, source=source)).splitlines()[1]
    assert line.startswith(f"SOURCE   {said}")


def test_silence_is_told_even_where_nobody_measured_it():
    plan = plans.source_down()
    source = msgspec.structs.replace(plan.source, silent_since=plan.created, detail="cluster primary gave no answer")
    line = plan_text(msgspec.structs.replace(plan, source=source)).splitlines()[1]
    assert line.startswith("SOURCE   DOWN: cluster primary gave no answer. Last known state 03:11:49 UTC")


def test_json_of_a_plan_is_the_plan():
    plan = plans.source_down()
    assert decode_plan(to_json(plan).encode()) == plan


def test_csv_has_a_row_for_every_partition_and_plain_numbers():
    plan = plans.source_down()
    rows = list(csv.DictReader(io.StringIO(plan_csv(plan))))
    assert len(rows) == sum(len(group.partitions) for group in plan.groups)
    ahead = next(row for row in rows if row["reason"] == "would-rewind")
    assert (ahead["group"], ahead["partition"], ahead["offset"], ahead["skipped"]) == ("fraud", "7", "", "5000")
    assert (ahead["position_after"], ahead["position_by"], ahead["ahead_because"]) == (
        "6995",
        "standing-commit",
        "unknown",
    )
    unknown = next(row for row in rows if row["reason"] == "no-checkpoint")
    assert (unknown["skipped"], unknown["position_by"]) == ("", "auto.offset.reset")


def test_csv_names_a_group_without_partitions():
    (row,) = csv.DictReader(io.StringIO(plan_csv(plans.nothing())))
    assert (row["group"], row["verdict"], row["topic"]) == ("payments", "nothing", "")


# -- after execute ------------------------------------------------------------------------------


def execution(plan: Plan, outcome: Outcome = Outcome.PARTIAL, **more: object) -> Execution:
    groups = []
    for group in plan.groups:
        status = {"commit": Status.COMMITTED, "skip": Status.SKIPPED, "refuse": Status.REFUSED}
        partitions = tuple(
            ExecutedPartition(
                p.topic, p.partition, None, p.offset, p.offset, p.offset, status[p.action], reason=p.reason
            )
            for p in group.partitions
        )
        groups.append(ExecutedGroup(group.group, group.exists, group.state, group.members, group.reasons, partitions))
    fields: dict[str, object] = {
        "version": 1,
        "id": "r-20261105-7f3a1c",
        "plan_id": plan.id,
        "fingerprint": plan.fingerprint,
        "started": TAKEN + timedelta(seconds=40),
        "finished": TAKEN + timedelta(seconds=47),
        "outcome": outcome,
        "tool_version": "0.1.0",
        "operator": "kim",
        "reason": "primary lost",
        "source_alias": "primary",
        "target_alias": "standby",
        "target_cluster_id": "TGT",
        "groups": tuple(groups),
    }
    return msgspec.convert(fields | more, Execution, from_attributes=True)


def test_execution_partly_done():
    plan = plans.source_down()
    text = execution_text(execution(plan), plan)
    fits(text)
    check("execution-partial.txt", text)


def test_execution_all_done():
    plan = plans.all_ready()
    text = execution_text(execution(plan, Outcome.DONE), plan)
    fits(text)
    check("execution-done.txt", text)


def test_execution_with_trouble_names_the_partitions():
    plan = plans.all_ready()
    done = execution(plan, Outcome.UNKNOWN, stopped="the connection to standby broke", warnings=("lock-unavailable",))
    (group,) = done.groups
    first, second, third = group.partitions
    partitions = (
        first,
        msgspec.structs.replace(
            second, status=Status.FAILED, before=CommitRecord(3), read_back=300, error="read back 300 instead of 690"
        ),
        msgspec.structs.replace(third, status=Status.UNKNOWN, read_back=None, error="no answer"),
    )
    done = msgspec.structs.replace(done, groups=(msgspec.structs.replace(group, partitions=partitions),))
    text = execution_text(done, plan)
    fits(text)
    check("execution-trouble.txt", text)


def test_rehearsal():
    plan = plans.source_down()
    groups = (
        RehearsedGroup("fraud", "Empty", (), 11, 0, (("primary.orders", 1, "would-rewind", "orders-1 moved on"),)),
        RehearsedGroup(
            "ledger", "Stable", (Member("app-1", "/10.0.3.7", "m"),), 0, 0, (), "group-active", "has members"
        ),
        RehearsedGroup("search", "Dead", (), 9, 1),
    )
    text = rehearsal_text(Rehearsal(plan.id, TAKEN + timedelta(seconds=30), "standby", groups, 4), plan)
    fits(text)
    check("rehearsal.txt", text)


def test_history():
    plan = plans.all_ready()
    older = execution(plan, Outcome.DONE, id="r-1", started=TAKEN - timedelta(days=3))
    newer = execution(plans.source_down(), undoes="r-1", reason="drill =1\x1b[0m")
    history = History((summarize(newer), summarize(older)), ("e-9: line 3 is damaged",))
    text = history_text(history, TAKEN + timedelta(minutes=5))
    fits(text)
    check("history.txt", text)
    assert history_text(History(()), TAKEN) == "No execution is on record here.\n"


def cut_short(plan, **more):
    """An execution whose process ended before it came to any group."""
    done = execution(plan, Outcome.REFUSED, finished=None, **more)
    groups = tuple(
        msgspec.structs.replace(
            group,
            message="",
            reasons=(),
            members=(),
            partitions=tuple(
                msgspec.structs.replace(p, status=Status.SKIPPED, reason="not-reached") for p in group.partitions
            ),
        )
        for group in done.groups
    )
    return msgspec.structs.replace(done, groups=groups)


def test_an_execution_that_was_cut_short_is_not_called_refused_or_planned():
    plan = plans.all_ready()
    done = cut_short(plan)
    text = execution_text(done, plan)
    fits(text)
    assert "OUTCOME    INTERRUPTED, nothing was written\n" in text
    assert "OPEN       3 partitions in 1 group not reached: it ended before them\n" in text
    assert "as planned" not in text
    assert text.endswith(f"1.  Go on with what was not reached: failover execute --resume {done.id}\n")
    back = execution_text(cut_short(plan, undoes="e-1"), plan)
    assert "PUT BACK   nothing\n" in back
    assert "failover rollback e-1\n" in back


def test_an_execution_with_nothing_to_write_says_why_groups_were_left():
    plan = plans.all_ready()
    done = execution(plan, Outcome.REFUSED)
    (group,) = done.groups
    left = tuple(msgspec.structs.replace(p, status=Status.SKIPPED, reason="would-rewind") for p in group.partitions)
    text = execution_text(msgspec.structs.replace(done, groups=(msgspec.structs.replace(group, partitions=left),)))
    assert "OUTCOME    NOTHING WRITTEN, and not every group stands as it should" in text
    assert "3 partitions: stands AHEAD" in text


def test_what_was_rolled_back_says_so_first_and_sends_nobody_to_start_consumers():
    plan = plans.all_ready()
    text = execution_text(execution(plan, Outcome.DONE), plan, undone="r-9, 2026-11-05 03:20:00 UTC")
    fits(text)
    assert text.splitlines()[1] == "REASON     primary lost"
    assert text.splitlines()[2] == "NOW        ROLLED BACK since, by r-9, 2026-11-05 03:20:00 UTC"
    assert text.endswith("What to do next:\n1.  Plan again before consumers start: failover plan\n")


@pytest.mark.parametrize(
    ("label", "text", "lines"),
    [
        (
            "",
            f"-> kafka-topics.sh --bootstrap-server {'h' * 70}:9092 --topic orders (likewise the others)",
            [
                f"         -> kafka-topics.sh --bootstrap-server \\\n            {'h' * 70}:9092 --topic \\",
                "            orders",
                "         (likewise the others)",
            ],
        ),
        (
            "1.",
            f"Stop the consumers of {'g' * 60}, then: failover execute --group 'a b' --group {'g' * 60}",
            [
                f"1.       Stop the consumers of {'g' * 60}, then:",
                f"         failover execute --group 'a b' --group \\\n         {'g' * 60}",
            ],
        ),
        ("hint:", "short, then: failover plan", ["hint:    short, then: failover plan"]),
    ],
)
def test_a_command_is_never_broken_so_that_a_piece_of_it_would_run(label, text, lines):
    assert labelled(label, text) == "\n".join(lines).splitlines()


def test_groups_that_moved_are_not_forgotten_beside_those_with_members():
    plan = plans.source_down()
    done = execution(plan, Outcome.REFUSED)
    groups = []
    for group in done.groups:
        where = tuple(msgspec.structs.replace(p, status=Status.REFUSED) for p in group.partitions)
        members = (Member("app-1", "/10.0.3.7", "m"),) if group.group == "ledger" else ()
        groups.append(msgspec.structs.replace(group, partitions=where, members=members))
    kept = tuple(group for group in groups if group.group in ("ledger", "fraud"))
    text = execution_text(msgspec.structs.replace(done, groups=kept), plan)
    assert "Stop the consumers of 1 refused group on standby (ledger), then:" in text
    assert "2.  Clear what is refused of fraud (WHY; failover explain CODE), then: failover plan" in text


def test_commits_that_had_no_effect_are_sent_again_and_nobody_is_suspected():
    plan = plans.all_ready()
    done = execution(plan, Outcome.FAILED)
    (group,) = done.groups
    first, *rest = group.partitions
    lost = msgspec.structs.replace(first, status=Status.FAILED, read_back=None, error="no answer, and without effect")
    done = msgspec.structs.replace(done, groups=(msgspec.structs.replace(group, partitions=(lost, *rest)),))
    text = execution_text(done, plan)
    fits(text)
    assert "OUTCOME    CUT SHORT: some commits were sent and had no effect" in text
    assert f"1.  Send again what had no effect: failover execute --resume {done.id}" in text
    assert "Somebody else" not in text
    assert "no answer, and without effect" in text
    stood = msgspec.structs.replace(lost, before=CommitRecord(3), read_back=300, error="read back 300 instead of 690")
    done = msgspec.structs.replace(done, groups=(msgspec.structs.replace(group, partitions=(stood, *rest)),))
    assert "Somebody else may be writing these offsets" in " ".join(execution_text(done, plan).split())
