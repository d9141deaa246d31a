"""Where the copying goes on after somebody chose another position: at that place, and exactly once from there on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from failover.replication.anchor import Anchor
from failover.replication.locate_answer import Located
from tests.unit.replication.log_pair import NO_TOPIC_ID, SOURCE_ID, TARGET_ID, Copying, Datum, MemoryLog, ask, ours


def logs(values: list[int]) -> Copying:
    source, target = MemoryLog(), MemoryLog()
    source.add(*(Datum(b"%d" % value) for value in values))
    return Copying(source, target)


def chosen(copying: Copying, at: int, *, start: str | int = "earliest") -> Located:
    """Chooses a position and asks for it behind a fence, as a start does."""
    copying.fence()
    answer = ask(copying.source, copying.target, [Anchor(at, chosen=True), *copying.syncs], start=start).answer
    assert isinstance(answer, Located)
    copying.position = answer.upstream
    return answer


def test_what_was_chosen_is_taken_whatever_the_target_holds():
    for at in (1, 30, 99, 100, 140):
        copying = logs(list(range(100)))
        copying.copy(70)
        found = chosen(copying, at)
        assert (found.upstream, found.downstream, found.since, found.how, found.lost) == (at, 71, 71, "chosen", 0)


def test_what_was_removed_begins_as_a_new_partition_does():
    copying = logs(list(range(100)))
    copying.source.start = 10
    copying.copy(70)
    found = chosen(copying, 0)
    assert (found.upstream, found.lost) == (10, 0)
    assert chosen(copying, 0, start="latest").upstream == 100
    assert chosen(copying, 0, start=44).upstream == 44


def test_a_chosen_position_below_the_log_says_what_is_gone():
    copying = logs(list(range(100)))
    copying.source.start = 10
    assert chosen(copying, 4).lost == 6


def test_what_was_copied_before_does_not_contradict():
    for at in (2, 95):
        copying = logs(list(range(100)))
        copying.copy(70)
        since = chosen(copying, at).since
        copying.copy(3)
        copying.fence()
        assert since is not None
        for copied in (0, 1):
            anchor = Anchor(at + copied, since + copied, SOURCE_ID, TARGET_ID, since=since)
            found = ask(copying.source, copying.target, [anchor, *copying.syncs]).answer
            assert isinstance(found, Located), found
            assert (found.upstream, found.since) == (at + 3, since)


def test_another_topic_of_the_name_has_no_such_place():
    copying = logs(list(range(100)))
    copying.copy(70)
    found = ask(copying.source, copying.target, [Anchor(20, 15, SOURCE_ID, b"x" * 16, since=15)]).answer
    assert isinstance(found, Located)
    assert (found.upstream, found.since) == (70, None)


@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=60),
    st.integers(0, 60),
    st.lists(st.tuples(st.integers(1, 60), st.lists(st.integers(0, 9), max_size=4)), min_size=1, max_size=3),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_after_any_choices_and_crashes_nothing_is_left_out_or_doubled(values, first, choices, known, chance):
    copying = logs(values)
    source, target = copying.source, copying.target
    copying.copy(first)
    ids = (SOURCE_ID, TARGET_ID) if known else (NO_TOPIC_ID, NO_TOPIC_ID)
    for wanted, runs in choices:
        at = min(wanted, source.end)
        found = chosen(copying, at)
        assert (found.upstream, found.downstream) == (at, target.end)
        since = found.since
        # Written down before anything is copied; any later record may be the last that was.
        records = [Anchor(at, since, *ids, since=since)]
        for count in runs:
            copying.copy(count)
            records.append(ours(copying.position, target.end))
            copying.fence()
            last = chance.choice(records)
            anchor = Anchor(last.upstream, last.downstream, last.source_topic_id, last.target_topic_id, since=since)
            located = ask(source, target, [anchor, *copying.syncs], source_id=ids[0], target_id=ids[1]).answer
            assert isinstance(located, Located), located
            assert copying.stands_at(located.upstream)
            assert located.since == since
            copying.position = located.upstream
