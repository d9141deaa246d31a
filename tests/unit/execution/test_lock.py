"""The claim log: pure replay, and the lock over the fake cluster."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.errors import Locked
from failover.execution.claims import TTL_SECONDS, Claim, replay
from failover.execution.lock import Lock, live_holder
from failover.execution.record import build, build_bare
from failover.execution.runlog import CHUNK_BYTES, RunLog, SharedJournal
from failover.model.execution import Status
from failover.model.names import Fault, TopicPartition
from failover.state.journal import Event, Journal, Warned, read_journal
from tests.fake_cluster import FakeCluster
from tests.unit.execution.plans import CREATED, group, plan
from tests.unit.execution.scene import T0, T1, run, started, target

TOPIC = "mm2-failover-runs.a.internal"
PLACE = TopicPartition(TOPIC, 0)
ANN = Claim("claim", "ann-1", "ann", "ops-1", "m1", 11, "execute plan 7f3a1c")
BOB = Claim("claim", "bob-1", "bob", "ops-2", "m2", 22, "rollback e-1")


def act(claim: Claim, do: str) -> Claim:
    return msgspec.structs.replace(claim, do=do)


@pytest.mark.parametrize(
    ("records", "holder"),
    [
        ([], None),
        ([(0, ANN)], "ann-1"),
        ([(0, ANN), (1, BOB)], "ann-1"),
        ([(0, ANN), (1, act(ANN, "release")), (2, BOB)], "bob-1"),
        ([(0, ANN), (1, BOB), (2, act(ANN, "release"))], None),  # a refused claim does not wait in line
        ([(0, ANN), (60_000, BOB)], "ann-1"),
        ([(0, ANN), (60_001, BOB)], "bob-1"),  # it died
        ([(0, ANN), (50_000, act(ANN, "renew")), (60_001, BOB)], "ann-1"),
        ([(0, ANN), (60_001, BOB), (60_002, act(ANN, "renew"))], "bob-1"),  # late, and somebody else has it
        ([(0, ANN), (90_000, act(ANN, "renew")), (90_001, BOB)], "ann-1"),  # late, and nobody has it
        ([(0, ANN), (1, act(BOB, "release"))], "ann-1"),
        ([(0, act(ANN, "release"))], None),
    ],
)
def test_who_holds_the_lock(records: list[tuple[int, Claim]], holder: str | None) -> None:
    found = replay(records)
    assert (found.claim.id if found else None) == holder


events = st.lists(
    st.tuples(st.integers(0, 40_000), st.sampled_from(["claim", "renew", "release"]), st.sampled_from("abc")),
    max_size=30,
)


@given(events)
def test_nobody_takes_over_from_a_live_holder(steps: list[tuple[int, str, str]]) -> None:
    log: list[tuple[int, Claim]] = []
    at = 0
    for gap, do, name in steps:
        before = replay(log)
        at += gap
        log.append((at, msgspec.structs.replace(ANN, do=do, id=name)))
        after = replay(log)
        if before is not None and after is not None and after.claim.id != before.claim.id:
            assert at - before.last > TTL_SECONDS * 1000
        if before is not None and after is None:
            assert (do == "release" and name == before.claim.id) or at - before.last > TTL_SECONDS * 1000


def lock(cluster: FakeCluster, me: Claim, *, dead: bool = False, renew: float = 60) -> Lock:
    return Lock(RunLog(cluster, TOPIC), me, dead=lambda _: dead, renew=renew)


def test_the_second_operator_is_told_who_holds_it_since_when_and_for_what() -> None:
    cluster = target()
    cluster.append_time = lambda: 1_700_000_000_000
    first = lock(cluster, ANN)
    assert first.acquire()[1] == ""
    with pytest.raises(Locked, match=r"ann on ops-1 \(process 11\) is at it since 22:13:20 UTC: execute plan 7f3a1c"):
        lock(cluster, BOB).acquire()
    shared, warning = lock(cluster, BOB).acquire(force=True)
    assert "ann on ops-1" in warning
    assert len(shared.claims) == 3
    first.release()
    second = lock(cluster, BOB)
    assert second.acquire()[1] == ""
    second.release()


def test_a_dead_holder_frees_it_within_its_time() -> None:
    cluster = target()
    cluster.append_time = lambda: 0
    lock(cluster, ANN).acquire()
    cluster.append_time = lambda: 60_001
    second = lock(cluster, BOB)
    assert second.acquire()[1] == ""
    second.release()


def test_a_holder_known_to_be_dead_is_released_in_its_name() -> None:
    cluster = target()
    lock(cluster, ANN).acquire()
    second = lock(cluster, BOB, dead=True)
    shared, warning = second.acquire()
    assert warning == ""
    assert [claim.do for _, claim in shared.claims] == ["claim", "claim", "release", "claim"]
    second.release()


def test_a_holder_renews_while_it_works() -> None:
    cluster, renewed = target(), threading.Event()
    holder = lock(cluster, ANN, renew=0.001)
    holder.acquire()
    cluster.before["append"] = lambda _: renewed.set()
    assert renewed.wait(10)
    holder.release()
    assert RunLog(cluster, TOPIC).read().claims[-1][1].do == "release"


@pytest.mark.parametrize("how", ["no topic may be created", "no right to write", "no right to read", "silence", "down"])
def test_without_the_topic_it_goes_on_and_says_why(how: str) -> None:
    cluster, silence = target(), threading.Event()
    if how == "no topic may be created":
        cluster.faults["create_topic", TOPIC] = Fault(29, "TOPIC_AUTHORIZATION_FAILED")
    elif how == "no right to write":
        cluster.no_write.add(TOPIC)
    elif how == "no right to read":
        cluster.no_read.add(TOPIC)
    elif how == "silence":
        cluster.before["append"] = lambda _: [silence.wait(20)].clear()
    else:
        cluster.down = "no answer from b"
    taken = lock(cluster, ANN)
    shared, warning = taken.acquire(patience=0.05 if how == "silence" else 3)
    assert warning
    assert shared.claims == ()
    silence.set()
    taken.release()


def test_a_plan_is_told_of_a_live_holder_and_makes_no_topic() -> None:
    cluster = target()
    log = RunLog(cluster, TOPIC)
    later = CREATED + timedelta(seconds=61)

    def told(now: datetime = CREATED, *, dead: bool = False) -> str:
        return live_holder(log, now=now, dead=lambda _: dead)

    assert told() == ""
    assert TOPIC not in cluster.infos
    cluster.append_time = lambda: int(CREATED.timestamp() * 1000)
    first = lock(cluster, ANN)
    first.acquire()
    assert "ann on ops-1" in told()
    assert told(dead=True) == told(later) == ""
    cluster.faults["offsets_at", PLACE] = Fault(29, "TOPIC_AUTHORIZATION_FAILED")
    assert told() == ""
    cluster.faults.clear()
    first.release()
    assert told() == ""


def test_what_one_machine_wrote_another_one_continues(tmp_path: Path) -> None:
    cluster, made = target().group("g", {T0: 3}), plan(group("g", {T0: 5, T1: 6}, {T0: 3}))
    done = run(made, cluster, tmp_path)
    log = RunLog(cluster, TOPIC)
    assert log.prepare() == ""
    log.append_events("e-1", read_journal(tmp_path / "e-1"))
    shared = log.read().runs["e-1"]
    found = shared.events()
    assert build(made, found) == done
    assert (shared.started, shared.closed()) == (found[0], found[-1])
    bare = build_bare(found)
    assert [(p.topic, p.partition, p.before, p.written, p.status) for g in bare.groups for p in g.partitions] == [
        (p.topic, p.partition, p.before, p.written, p.status) for g in done.groups for p in g.partitions
    ]
    again = run(made, cluster, tmp_path, run_id="e-2", before=[build(made, found)])
    assert [p.status for p in again.groups[0].partitions] == [Status.UNCHANGED] * 2


def test_long_journals_go_in_pieces_and_foreign_records_are_passed_over(tmp_path: Path) -> None:
    cluster = target()
    log = RunLog(cluster, TOPIC)
    log.prepare()
    written: list[Event] = [started(plan()), *(Warned(CREATED, "x" * 1000) for _ in range(1000))]
    log.append_events("e-1", written)
    sizes = [len(record.value or b"") for record in cluster.log[PLACE]]
    assert len(sizes) > 1
    assert max(sizes) <= CHUNK_BYTES
    assert log.read().runs["e-1"].events() == written
    assert log.read().runs["e-1"].closed() is None
    cluster.append(TOPIC, b"run:e-1", b"{not json")
    cluster.append(TOPIC, b"run:e-9", msgspec.json.encode({"event": "of a newer version"}))
    cluster.append(TOPIC, b"claim", b"\xff")
    cluster.append(TOPIC, None, b"x")
    found = log.read()
    assert (found.claims, list(found.runs)) == ((), ["e-1"])
    assert found.runs["e-1"].closed() is None
    with pytest.raises(msgspec.DecodeError):
        found.runs["e-1"].events()


def test_a_topic_that_fails_is_told_once_and_the_journal_goes_on(tmp_path: Path) -> None:
    cluster, told = target(), list[str]()
    cluster.no_write.add(TOPIC)
    journal = Journal(tmp_path / "j")
    shared = SharedJournal(journal, RunLog(cluster, TOPIC), "e-1", told.append)
    for number in range(3):
        shared.append(Warned(CREATED, str(number)))
        shared.sync()
    journal.close()
    assert len(told) == 1
    assert "no WRITE on topic" in told[0]
    assert len(read_journal(tmp_path / "j")) == 3
