"""MirrorMaker 2's own translation: known vectors, and the shortcuts against the rule written out plainly."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from failover.translate.mm2_rule import LatestSyncStore, OffsetSyncStore, Untranslatable, offset_sync_store
from tests.examples import EXAMPLES


def loaded(syncs, *, must_read_to_end=False, live=()) -> OffsetSyncStore:
    store = OffsetSyncStore(must_read_to_end)
    store.sync_all(syncs)
    store.finish_initial_read()
    store.sync_all(live)
    return store


def same(offsets):
    return [(u, u) for u in offsets]


def upstreams(store):
    return [u for u, _ in store.kept()]


# -- vectors that MM2's own tests assert -----------------------------------------------------------


def test_a_start_that_must_read_to_the_end_keeps_the_last_sync_only():
    store = loaded(same(range(0, 1001, 10)), must_read_to_end=True, live=same(range(1010, 10001, 10)))
    assert upstreams(store) == [10000, 9990, 9970, 9940, 9880, 9640, 9160, 8680, 6760, 4840, 1000]
    assert store.translate(999) is Untranslatable.TOO_FAR_IN_THE_PAST
    assert store.translate(1000) == 1000


def test_a_full_load_keeps_history_and_goes_on_from_there():
    store = loaded(same(range(0, 1001, 10)))
    assert upstreams(store) == [1000, 990, 960, 900, 840, 720, 480, 0]
    store.sync_all(same(range(1000, 10001, 10)))
    assert upstreams(store) == [10000, 9990, 9960, 9900, 9840, 9600, 9120, 8640, 7680, 3840, 0]


def test_a_million_records_at_the_default_spacing():
    store = loaded(same(range(0, 1_000_001, 101)))
    assert upstreams(store) == [
        999900, 999799, 999698, 999496, 998688, 997072, 995456, 988992,
        982528, 956672, 930816, 827392, 620544, 413696, 0,
    ]  # fmt: skip


def test_answers_follow_the_newest_sync_at_or_below():
    store = loaded([(100, 200)])
    assert store.translate(100) == 200
    assert store.translate(150) == 201
    store.sync(150, 251)
    assert store.translate(150) == 251
    assert store.translate(5) is Untranslatable.TOO_FAR_IN_THE_PAST
    # The target went back: older syncs stay as they are.
    store.sync(200, 10)
    assert store.translate(200) == 10
    assert store.translate(160) == 252
    # The source went back: nothing older counts.
    store.sync(20, 20)
    assert store.kept() == [(20, 20)]
    assert store.translate(10**9) == 21


def test_nothing_is_translated_before_the_first_read_to_the_end():
    store = OffsetSyncStore(must_read_to_end=False)
    store.sync(1, 1)
    assert store.translate(1) is Untranslatable.NOT_READ_TO_END
    store.finish_initial_read()
    assert store.translate(1) == 1


def test_no_sync_is_not_too_far_in_the_past():
    assert loaded([]).translate(0) is Untranslatable.NO_SYNC


# -- releases --------------------------------------------------------------------------------------


def test_up_to_3_2_offsets_without_a_sync_are_copied_and_others_keep_their_distance():
    store = offset_sync_store((3, 2))
    assert isinstance(store, LatestSyncStore)
    assert store.translate(77) == 77
    store.sync(100, 200)
    assert store.translate(150) == 250
    assert store.translate(99) is Untranslatable.TOO_FAR_IN_THE_PAST


def test_3_3_and_3_4_0_answer_nothing_without_a_sync():
    for version in ((3, 3), (3, 4, 0)):
        store = offset_sync_store(version)
        assert store.translate(77) is Untranslatable.NO_SYNC
        store.sync(100, 200)
        store.sync(300, 350)
        assert store.translate(310) == 360
        assert store.kept() == [(300, 350)]


def test_before_3_7_1_a_restart_loses_the_history():
    for version, kept in (((3, 4), [1000]), ((3, 6), [1000]), ((3, 7, 0), [1000])):
        store = offset_sync_store(version)
        store.sync_all(same(range(0, 1001, 10)))
        store.finish_initial_read()
        assert upstreams(store) == kept
    newest = offset_sync_store()
    newest.sync_all(same(range(0, 1001, 10)))
    assert len(newest.kept()) == 8


def test_the_first_slot_rule_keeps_less_of_unevenly_spaced_syncs():
    uneven = same([1, 1001, 2001, 2002, 2004, 3004, 4004, 4104, 4106, 4107, 5107, 5207])
    first, later = offset_sync_store((3, 5, 1)), offset_sync_store((3, 5, 2))
    for store in (first, later):
        store.sync(0, 0)
        store.finish_initial_read()
        store.sync_all(uneven)
    assert upstreams(first) == [5207, 5107, 0]
    assert upstreams(later) == [5207, 5107, 4107, 3004, 0]


# -- the rule written out, as the judge of the shortcuts -------------------------------------------


def b(x, y, i, j):
    return x is y or x[0] <= y[0] + 2**j - 2**i


def c_(x, y, i):
    return x is y or x[0] >= y[0] + 2 ** max(i - 2, 0)


def plain_slots(syncs, replace):
    slots: list[tuple[int, int]] = []
    for u, d in syncs:
        new = (u, d)
        slots = [new] * 64 if not slots or u < slots[0][0] else replace(slots, new)
    return slots


def replace_plainly(old, new):
    s = list(old)
    s[0] = new
    r, k = new, 0
    for c in range(1, 64):
        p = c - 1
        while True:
            o = old[k]
            recent, apart = b(s[p], o, p, c), c_(s[p], o, p)
            promoted = recent and apart and (c == 63 or c_(o, s[c + 1], c))
            if promoted:
                r = o
            skip = (k < 63 and o is old[k + 1]) or not apart
            if promoted or skip:
                k += 1
            if not (k < c and skip):
                break
        if b(s[p], s[c], p, c):
            break
        s[c] = r
    return s


def replace_by_the_first_rule(old, new):
    s = list(old)
    r, gone, s[0] = new, s[0], new
    for c in range(1, 64):
        p = c - 1
        if b(s[p], gone, p, c) and c_(s[p], gone, p) and (c == 63 or c_(gone, s[c + 1], c)):
            r = gone
        if b(s[p], s[c], p, c):
            break
        gone, s[c] = s[c], r
    return s


def distinct(slots):
    return [s for i, s in enumerate(slots) if i == 0 or s is not slots[i - 1]]


steps = st.one_of(
    st.integers(0, 3),
    st.integers(0, 300),
    st.integers(0, 2**40),
    st.integers(-50, -1),
    st.sampled_from([2**i + e for i in range(62) for e in (-1, 0, 1)]),
)


@st.composite
def histories(draw):
    spacing = draw(st.sampled_from([None, 1, 2, 7, 10, 101]))
    taken = draw(st.lists(steps, max_size=200))
    at, syncs = 0, []
    for i, step in enumerate(taken):
        at = min(max(at + (step if spacing is None or step > 300 or i % 17 == 0 else spacing), 0), 2**63 - 1)
        syncs.append((at, i))
    return syncs


@settings(max_examples=EXAMPLES)
@given(histories())
def test_shortcuts_change_no_slot(syncs):
    store = loaded(syncs)
    assert store.kept() == distinct(plain_slots(syncs, replace_plainly))
    older = OffsetSyncStore(must_read_to_end=False, first_rule=True)
    older.sync_all(syncs)
    assert older.kept() == distinct(plain_slots(syncs, replace_by_the_first_rule))


@settings(max_examples=EXAMPLES)
@given(histories(), st.lists(st.integers(0, 2**41), min_size=1, max_size=20))
def test_an_answer_is_a_sync_or_one_behind_the_copy_of_one_below(syncs, asked):
    store = loaded(syncs)
    slots = plain_slots(syncs, replace_plainly)
    for x in asked:
        best = next((s for s in slots if s[0] <= x), None)
        if best is None:
            wanted = Untranslatable.TOO_FAR_IN_THE_PAST if slots else Untranslatable.NO_SYNC
        else:
            wanted = best[1] + (best[0] != x)
        assert store.translate(x) == wanted
