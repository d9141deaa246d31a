"""What earlier runs say of the next one, and of drills from time to time."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from failover.report.encode import to_json
from failover.runbook import events as e
from failover.runbook.history import Drill, drills, earlier_runs, forecast, history_of, trend
from failover.runbook.history_text import forecast_text, history_blocks
from failover.runbook.parse import parse
from failover.runbook.record import RunLog, RunRecord, StepRecord
from failover.state.folder import StateFolder
from failover.state.playbook_runs import RECORD, new_playbook_run

START = datetime(2026, 11, 30, 8, tzinfo=UTC)
BOOK = """\
name: weekly
description: x
steps:
  - {id: look, title: T, uses: plan}
  - {id: try, title: T, uses: group-shadow, with: {plan: "{{ steps.look.plan_id }}"}}
"""
PLAYBOOK = parse(BOOK, "x.yaml")


def run(number: int, *, outcome: str = "done", looked: float = 2.0, **found: Any) -> RunRecord:
    """Is a run that tried a plan out, the later the higher its number."""
    done = outcome == "done"
    result = {"ready_seconds": 1.0, "missing_records": 5, "missing_seconds": 3.0, "compared": 40} | found
    return RunRecord(
        id=f"p-{number:06}",
        playbook="weekly",
        digest="",
        started=START + timedelta(days=7 * number),
        finished=START + timedelta(days=7 * number, seconds=9),
        outcome=outcome,
        exit_code=0,
        operators=["ann"],
        host="h",
        tool_version="1",
        source="a",
        target="b",
        variables={},
        steps=[
            StepRecord(
                id="look", title="T", uses="plan", status="done", seconds=looked, result={"ready": 7, "refused": 1}
            ),
            StepRecord(
                id="try",
                title="T",
                uses="group-shadow",
                status="done" if done else "failed",
                seconds=4.0,
                result=result if done else {},
            ),
        ],
    )


def test_a_drill_is_the_look_and_the_first_records_and_what_was_missing():
    assert drills([run(1, outcome="failed"), run(0)]) == [
        Drill(run="p-000001", started=START + timedelta(days=7), outcome="failed", ready=7, refused=1),
        Drill(
            run="p-000000",
            started=START,
            outcome="done",
            rto_seconds=3.0,
            missing_records=5,
            missing_seconds=3.0,
            ready=7,
            refused=1,
            compared=40,
        ),
    ]


def test_the_next_run_is_forecast_by_those_that_came_to_their_end():
    found = forecast(PLAYBOOK, [run(3, looked=8.0), run(2, outcome="undone", looked=99.0), run(1), run(0, looked=3.0)])
    assert found is not None
    assert (found.runs, found.failed, found.seconds, found.shortest, found.longest) == (3, 1, 7.0, 6.0, 12.0)
    assert found.steps == {"look": 3.0, "try": 4.0}
    assert forecast_text(found, width=200) == (
        "Takes about 7 s by 3 earlier runs (6 s to 12 s); longest step try, 4 s; 1 more run did not come to the end."
    )
    assert forecast(PLAYBOOK, [run(0, outcome="failed")]) is None
    assert forecast(PLAYBOOK, []) is None


@pytest.mark.parametrize(
    ("newest", "change"),
    [
        ({"missing_records": 50}, "worse"),
        ({"missing_records": 0}, "better"),
        ({"missing_records": 6}, "the same"),
    ],
)
def test_the_newest_drill_beside_those_before(newest, change):
    found = trend(drills([run(2, **newest), run(1), run(0)]))
    assert found == {
        "rto_seconds": "the same",
        "missing_records": change,
        "missing_seconds": "the same",
        "ready": "the same",
    }


def test_fewer_groups_that_are_ready_is_worse_and_a_first_drill_is_neither():
    fewer, before = (Drill(run="p-1", started=START, outcome="done", ready=ready) for ready in (3, 9))
    assert trend([fewer, before]) == {"ready": "worse"}
    assert trend([before, fewer]) == {"ready": "better"}
    assert trend([before]) == trend([]) == {}


def test_it_is_told_within_the_screen():
    history = history_of(PLAYBOOK, [run(2, missing_records=120_000, looked=90.0), run(1, outcome="failed"), run(0)])
    text = "\n\n".join(history_blocks(history))
    assert (
        "The newest beside those before: worse: time until groups stand, records missing; the same: "
        in text.replace("\n", " ")
    )
    assert "p-000002  2026-12-14 08:00" in text
    assert "1 min 31 s" in text
    assert "7 of 8" in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert history_blocks(history_of(PLAYBOOK, [])) == []


def test_runs_are_read_from_their_record_or_where_the_journal_went_on_from_that(tmp_path: Path):
    state = StateFolder(tmp_path)
    said: list[str] = []
    for number, stale in enumerate((False, True)):
        run_id, folder = new_playbook_run(state, BOOK)
        log = RunLog(folder)
        log.note(
            e.Started(
                at=START,
                run_id=run_id,
                playbook="weekly",
                digest="",
                variables={},
                operator="ann",
                host="h",
                tool_version="1",
            )
        )
        log.close()
        state.write(folder / RECORD, to_json(run(number)).encode())
        if stale:
            os.utime(folder / RECORD, (0, 0))
        else:
            os.utime(folder / "journal.ndjson", (1, 1))
    _, broken = new_playbook_run(state, "name: [")
    (broken / "journal.ndjson").touch()
    assert [each.outcome for each in earlier_runs(state, said.append, "weekly")] == ["running", "done"]
    assert len(said) == 1
    assert said[0].startswith(f"{broken.name} is passed over: ")
    assert earlier_runs(state, said.append, "other") == []
