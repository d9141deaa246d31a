from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pytest

from failover.model.seed import Seed, SeedPartition
from failover.report.seed_text import seed_question, seed_text
from failover.state.folder import StateFolder
from failover.state.seeds import FILE, note_seed

WRITE = SeedPartition(
    topic="orders",
    partition=0,
    action="write",
    reason="behind-copies",
    offset=1200,
    end=1500,
    target_end=1190,
    compared=32,
)
TAIL = SeedPartition(
    topic="orders",
    partition=1,
    action="refuse",
    reason="unreplicated-tail",
    detail="7 records from offset 90 on, which primary alone has, were never mirrored",
    offset=100,
    end=140,
    target_end=97,
    tail=7,
)
THERE = SeedPartition(topic="bills\x1b[2J", partition=0, action="none", reason="already-there", status="unchanged")


def seed(*partitions, dry_run=False):
    return Seed(
        created=datetime(2026, 1, 2, tzinfo=UTC),
        operator="me",
        reason="",
        source="standby",
        target="primary",
        topic="mm2-offsets.standby.internal",
        dry_run=dry_run,
        partitions=partitions,
        not_seeded={"x": "it is called standby.x on primary, so nothing comes back"},
    )


def done(one, status="written"):
    return msgspec.structs.replace(one, status=status)


@pytest.mark.parametrize(
    ("partitions", "code"),
    [
        ((), 0),
        ((THERE,), 0),
        ((WRITE, THERE), 0),
        ((TAIL,), 3),
        ((WRITE, TAIL), 4),
        ((done(WRITE), TAIL), 4),
        ((done(WRITE, "failed"), TAIL), 6),
    ],
)
def test_the_exit_code(partitions, code):
    assert seed(*partitions).exit_code == code


def test_what_is_refused_stands_first_with_its_reason_and_what_follows():
    text = seed_text(seed(WRITE, THERE, TAIL, dry_run=True))
    lines = text.splitlines()
    assert lines[0] == (
        "standby->primary   start positions in mm2-offsets.standby.internal of primary   "
        "1 position to write, 1 refused, 1 there already"
    )
    assert lines[3].split()[:3] == ["orders", "1", "100"]
    assert "unreplicated-tail: 7 records from offset 90 on" in text
    assert "--keep-tail" in text
    assert "MirrorMaker 2 copies a refused partition from its start" in text
    assert "x: nothing to do: it is called standby.x" in text
    assert lines[-1] == "next: the same command without --dry-run"
    assert "\x1b" not in text


def test_what_was_written_leads_to_the_mirror():
    text = seed_text(seed(done(WRITE)))
    assert "1 position written" in text
    assert text.splitlines()[-1].startswith("next: failover replicate --source standby --target primary")
    assert seed_text(seed(done(WRITE, "failed"))).splitlines()[-1] == "next: the same command again"


def test_the_question_says_what_is_replaced():
    assert seed_question(seed(WRITE)).endswith(
        "This writes 1 position to mm2-offsets.standby.internal on primary, whatever stood there before."
    )


def test_each_seeding_is_noted_before_and_after(tmp_path):
    state = StateFolder(tmp_path / "state")
    note_seed(state, seed(WRITE), "intent")
    note_seed(state, seed(done(WRITE)), "done")
    events = [json.loads(line) for line in (tmp_path / "state" / FILE).read_text().splitlines()]
    assert [(each["event"], each["seed"]["partitions"][0]["status"]) for each in events] == [
        ("intent", ""),
        ("done", "written"),
    ]
    assert (tmp_path / "state" / FILE).stat().st_mode & 0o777 == 0o600
