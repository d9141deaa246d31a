"""Which positions are asked about when, and what of the answers goes on record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.mm2.exact_checkpoint import Known, Position
from failover.model.cluster import LogRange
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.model.translation import Precision, Proof, Translation
from failover.replication.tracked import LONGEST_PAUSE, Agenda, Seen, Wanted, differs, settled

SOURCE, PLACE = TopicPartition("orders", 0), TopicPartition("a.orders", 0)
OTHER = TopicPartition("a.orders", 1)


def position(upstream: int, downstream: int, precision: str = "exact", *, target_id: str = "id") -> Position:
    return Position(upstream, downstream, b"", Known(proof="content", precision=precision, target_id=target_id))


def wanted(upstream: int, *, group: str = "g") -> Wanted:
    return Wanted(group, SOURCE, PLACE, Commit(upstream), 7)


def seen(end: int = 1000, target_id: str = "id") -> Seen:
    return Seen(LogRange(0, end), target_id, 500, 9)


def found(upstream: int, offset: int | None, most: int = 0) -> Translation:
    precision = Precision.EXACT if most == 0 else Precision.BOUNDED
    return Translation(upstream, offset, precision, Proof.CONTENT, most, most)


def look(agenda: Agenda, upstream: int, recorded: dict[TopicPartition, Position], at: int = 1) -> None:
    agenda.look("g", {PLACE: (SOURCE, Commit(upstream))}, recorded, at)


# -- the agenda --------------------------------------------------------------------------------------


def test_what_is_on_record_exactly_is_not_asked_about() -> None:
    agenda = Agenda(5)
    look(agenda, 10, {PLACE: position(10, 8)})
    assert agenda.due(0, 10) == []
    assert agenda.open == 0


@pytest.mark.parametrize(
    "recorded", [{}, {PLACE: position(9, 8)}, {PLACE: position(11, 8)}, {PLACE: position(10, 8, "bounded")}]
)
def test_what_moved_or_is_not_exact_is_due_at_once(recorded: dict[TopicPartition, Position]) -> None:
    agenda = Agenda(5)
    look(agenda, 10, recorded)
    assert agenda.due(0, 10) == [Wanted("g", SOURCE, PLACE, Commit(10), 1)]


def test_new_metadata_is_news() -> None:
    agenda = Agenda(5)
    agenda.look("g", {PLACE: (SOURCE, Commit(10, b"new"))}, {PLACE: position(10, 8)}, 1)
    assert len(agenda.due(0, 10)) == 1


def test_what_stays_inexact_is_asked_about_less_and_less_often() -> None:
    agenda, at, pauses = Agenda(5), 0.0, []
    look(agenda, 10, {})
    for _ in range(12):
        [one] = agenda.due(at, 10)
        agenda.asked(one, at, exact=False)
        start = at
        while not agenda.due(at, 10):
            at += 0.5
            look(agenda, 10, {})
        pauses.append(at - start)
    assert pauses[0] <= 5
    assert pauses == sorted(pauses)
    assert pauses[-1] <= LONGEST_PAUSE
    # the commit moves: due at once
    agenda.asked(agenda.due(at, 10)[0], at, exact=False)
    look(agenda, 11, {})
    assert [one.commit.offset for one in agenda.due(at, 10)] == [11]


def test_the_time_a_commit_was_first_seen_stays() -> None:
    agenda = Agenda(5)
    look(agenda, 10, {}, at=100)
    look(agenda, 10, {}, at=200)
    assert agenda.due(0, 10)[0].commit_at == 100


def test_an_answer_for_a_commit_that_moved_meanwhile_settles_nothing() -> None:
    agenda = Agenda(5)
    look(agenda, 10, {})
    [old] = agenda.due(0, 10)
    look(agenda, 11, {})
    agenda.asked(old, 0, exact=True)
    assert [one.commit.offset for one in agenda.due(0, 10)] == [11]


def test_partitions_and_groups_that_are_gone_are_dropped() -> None:
    agenda = Agenda(5)
    agenda.look("g", {PLACE: (SOURCE, Commit(1)), OTHER: (SOURCE, Commit(2))}, {}, 1)
    agenda.look("g", {PLACE: (SOURCE, Commit(1))}, {}, 1)
    assert [one.place for one in agenda.due(0, 10)] == [PLACE]
    agenda.drop("g")
    assert agenda.due(0, 10) == []


def test_of_too_many_those_asked_least_often_come_first() -> None:
    agenda = Agenda(5)
    for number in range(10):
        agenda.look(f"g{number}", {PLACE: (SOURCE, Commit(1))}, {}, 1)
    first = agenda.due(0, 4)
    for one in first:
        agenda.asked(one, 0, exact=False)
    second = agenda.due(1000, 6)
    assert {one.group for one in first}.isdisjoint({one.group for one in second})


def test_groups_of_which_an_older_commit_is_on_record_are_named() -> None:
    agenda = Agenda(5)
    recorded = {"g": {PLACE: position(10, 8, "bounded")}, "h": {PLACE: position(9, 8)}}
    for group in ("g", "h", "new"):
        agenda.look(group, {PLACE: (SOURCE, Commit(10))}, recorded.get(group, {}), 1)
    assert agenda.behind(recorded) == ["h", "new"]


# -- what goes on record -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("upstream", "answer", "before", "offset", "most"),
    [
        (100, (90, 0), None, 90, 0),
        (100, (90, 5), None, 90, 5),
        # never back while the group did not go back, and the bound shrinks by what was gained
        (100, (90, 20), position(100, 95), 95, 15),
        (110, (90, 20), position(100, 95), 95, 15),
        (110, (90, 2), position(100, 95), 95, 0),
        (110, (97, 2), position(100, 95), 97, 2),
        # an exact answer below shows that the other is not true any more
        (110, (90, 0), position(100, 95), 90, 0),
        # the group was set back
        (99, (90, 20), position(100, 95), 90, 20),
        # another topic of the same name, and one that lost its end
        (110, (90, 20), position(100, 95, target_id="before"), 90, 20),
        (110, (90, 20), position(100, 1001), 90, 20),
        # brokers that know no topic ids
        (110, (90, 20), position(100, 95, target_id=""), 95, 15),
    ],
)
def test_positions_go_back_only_with_their_group(
    upstream: int, answer: tuple[int, int], before: Position | None, offset: int, most: int
) -> None:
    new = settled(wanted(upstream), found(upstream, *answer), seen(), before)
    assert new is not None
    assert (new.upstream, new.downstream, new.known.most) == (upstream, offset, most)
    assert (new.known.end, new.known.end_at, new.known.commit_at, new.known.target_id) == (500, 9, 7, "id")


@pytest.mark.parametrize("answer", [None, Translation(1, None, Precision.NONE, Proof.NONE, failure="no-checkpoint")])
def test_what_is_not_known_is_not_put_on_record(answer: Translation | None) -> None:
    assert settled(wanted(1), answer, seen(), position(1, 1)) is None


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 5)), min_size=1),
)
def test_however_answers_come_the_offset_falls_only_when_the_commit_does(steps: list[tuple[int, int, int]]) -> None:
    before: Position | None = None
    for upstream, offset, most in steps:
        new = settled(wanted(upstream), found(upstream, offset, most), seen(), before)
        assert new is not None
        if before is not None and upstream >= before.upstream:
            assert new.downstream >= before.downstream
        assert new.downstream >= offset
        before = new


def test_times_and_bounds_alone_are_not_written() -> None:
    old = position(10, 8)
    later = Position(10, 8, b"", Known(proof="sync-match", precision="exact", end=9, end_at=8, target_id="id"))
    assert not differs(later, old)
    assert differs(old, None)
    for new in (position(11, 8), position(10, 9), position(10, 8, "bounded"), position(10, 8, target_id="other")):
        assert differs(new, old)
    assert differs(Position(10, 8, b"x", old.known), old)
