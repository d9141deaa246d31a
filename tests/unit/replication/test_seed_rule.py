from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from failover.replication.reading import Row, Stretch
from failover.replication.seed_rule import SURE_STRANGERS, CopiesEnd, NoEnd, copies_end
from tests.examples import EXAMPLES


def stretch(values, *, start=0, at=None, stop=None, appended=False, stamp=True):
    """Makes a log stretch of these values; ``at``: their offsets."""
    offsets = list(range(start, start + len(values))) if at is None else at
    found = Stretch(start, stop if stop is not None else (offsets[-1] + 1 if offsets else start))
    for offset, value in zip(offsets, values, strict=True):
        content = hash(value)
        found.rows.append(Row(offset, hash(("t", value)) % 10**9 if stamp else 5, content, content))
        found.note_run(offset, offset + 1)
    found.note_epoch(found.start, found.stop, 4)
    found.appended = appended
    return found


def names(stem, count, first=0):
    return [f"{stem}{number}" for number in range(first, first + count)]


def end(originals, copies, up, down, *, again=False, whole=True):
    return copies_end(up, down, originals, copies, again=again, whole=whole)


def test_an_anchor_at_the_end_of_the_copies():
    answer = end(stretch(names("a", 50)), stretch([*names("a", 50), *names("b", 7)]), 50, 50)
    assert answer == CopiesEnd(50, 50, 0, 7, 32, 4)


def test_copies_behind_the_anchor_count_and_markers_do_not():
    originals = stretch(names("a", 50))
    at = [*range(40), *range(41, 51), *range(52, 55)]
    copies = stretch([*names("a", 50), *names("b", 3)], at=at)
    answer = end(originals, copies, 20, 20)
    assert (answer.behind, answer.mirrored, answer.tail, answer.own) == (51, 50, 0, 3)


def test_originals_that_were_never_mirrored_are_the_tail():
    answer = end(stretch(names("a", 60)), stretch([*names("a", 50), *names("b", 3)]), 45, 45)
    assert (answer.behind, answer.mirrored, answer.tail) == (50, 50, 10)


def test_nothing_was_written_there():
    answer = end(stretch(names("a", 50)), stretch(names("a", 50)), 10, 10)
    assert (answer.behind, answer.own, answer.tail) == (50, 0, 0)


def test_what_came_back_already_does_not_come_again():
    originals = stretch([*names("a", 50), *names("b", 4)])
    copies = stretch([*names("a", 50), *names("b", 9)])
    answer = end(originals, copies, 50, 50)
    assert (answer.behind, answer.tail, answer.own) == (54, 0, 5)


def test_a_mirror_that_copied_again_is_followed():
    originals = stretch(names("a", 50))
    copies = stretch([*names("a", 40), *names("a", 25, 25), *names("b", 3)])
    answer = end(originals, copies, 30, 30, again=True)
    assert (answer.behind, answer.mirrored, answer.tail, answer.own) == (65, 50, 0, 3)


def test_records_written_among_the_copies_are_refused():
    copies = stretch([*names("a", 45), "b0", *names("a", 5, 45), "b1"])
    answer = end(stretch(names("a", 50)), copies, 40, 40)
    assert isinstance(answer, NoEnd)
    assert answer.code == "mixed"


def test_an_anchor_that_the_records_do_not_bear_out():
    answer = end(stretch(names("a", 50)), stretch(names("x", 60)), 50, 50)
    assert isinstance(answer, NoEnd)
    assert answer.code == "anchor-wrong"


def test_originals_that_are_gone_leave_it_open():
    originals = stretch(names("a", 48), stop=50)
    originals.note_hole(48, 50)
    answer = end(originals, stretch([*names("a", 50), "b0"]), 40, 40)
    assert isinstance(answer, NoEnd)
    assert answer.code == "originals-gone"


def test_alike_records_without_timestamps_of_their_own():
    originals = stretch(["tick"] * 52, stamp=False)
    copies = stretch(["tick"] * 60, stamp=False, appended=True)
    assert end(originals, copies, 50, 50).code == "alike"
    # drained, everything behind the anchor was written there
    answer = end(stretch(["tick"] * 50, stamp=False), copies, 50, 50)
    assert (answer.behind, answer.own) == (50, 10)


def test_a_log_too_long_to_be_read_whole():
    originals = stretch(names("a", 50))
    short = end(originals, stretch([*names("a", 50), *names("b", 9)]), 40, 40, whole=False)
    assert isinstance(short, NoEnd)
    assert short.code == "too-long"
    long = stretch([*names("a", 50), *names("b", SURE_STRANGERS)])
    assert end(originals, long, 40, 40, whole=False).behind == 50


@settings(max_examples=EXAMPLES)
@given(
    st.integers(0, 40),
    st.integers(0, 10),
    st.integers(0, 10),
    st.data(),
)
def test_whatever_the_anchor_the_end_is_where_the_copies_end(copied, tail, own, data):
    """Also where the mirror was killed and copied a stretch again, as long as an anchor before it is known."""
    originals = stretch(names("a", copied + tail))
    again = data.draw(st.booleans()) and copied > 0
    values = names("a", copied)
    up = data.draw(st.integers(0, copied))
    if again:
        back = data.draw(st.integers(0, copied - 1))
        reached = data.draw(st.integers(back + 1, copied))
        values = [*names("a", reached), *names("a", copied - back, back)]
        up = data.draw(st.integers(0, reached))
    answer = end(originals, stretch([*values, *names("b", own)]), up, up, again=again)
    assert isinstance(answer, CopiesEnd)
    assert (answer.behind, answer.mirrored, answer.tail, answer.own) == (len(values), copied, tail, own)
