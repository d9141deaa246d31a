from __future__ import annotations

from failover.model import Record
from failover.translate.align import Pair, Strip, matches, runs, settle, straddle
from failover.translate.digest import LogView, fingerprint_encoded


def strip(text: str, start: int = 0) -> Strip:
    """One record per letter, a dot for an offset without a record."""
    places = [(start + at, ord(letter)) for at, letter in enumerate(text) if letter != "."]
    return Strip([offset for offset, _ in places], [token for _, token in places])


def test_records_that_occur_once_pair_and_copies_made_twice_pair_twice() -> None:
    pairs = matches(strip("abcxx"), strip("abcbcxx", 10))
    assert pairs == [Pair(10, 0), Pair(11, 1), Pair(12, 2), Pair(13, 1), Pair(14, 2)]
    first, second = runs(pairs)
    assert (len(first), len(second)) == (3, 2)
    assert straddle(first, 1) == (Pair(10, 0), Pair(11, 1))
    assert straddle(second, 1) is None


def test_equal_strips_are_one_to_one_even_if_all_records_are_alike() -> None:
    settled = settle(4, Pair(10, 0), Pair(16, 6), strip("aaaaa", 1), strip("aaaaa", 11), twin=ord("z"))
    assert settled == (14, 0)


def test_records_not_mirrored_do_not_matter_when_the_others_tell() -> None:
    settled = settle(4, Pair(10, 0), Pair(13, 6), strip("abcde", 1), strip("be", 11), twin=ord("z"))
    assert settled == (12, 0)


def test_offsets_count_where_the_source_has_lost_its_records() -> None:
    settled = settle(4, Pair(10, 0), Pair(16, 6), Strip((), ()), strip("abcde", 11), twin=ord("z"))
    assert settled == (14, 0)


def test_offsets_do_not_count_where_a_record_was_copied_twice() -> None:
    for text in ("ababe", "abczb"):
        settled = settle(4, Pair(10, 0), Pair(16, 6), Strip((), ()), strip(text, 11), twin=ord("z"))
        assert settled == (11, 5)


def test_alike_records_with_one_missing_are_settled_from_above() -> None:
    settled = settle(4, Pair(10, 0), Pair(15, 6), strip("aaaaa", 1), strip("aaaa", 11), twin=ord("z"))
    assert settled == (13, 1)


def test_a_view_knows_what_was_read() -> None:
    view = LogView(encode=True)
    record = Record(25, 7, b"k", b"v", (("h", b"x"),))
    view.add(20, 30, [record])
    view.add(40, 50, [])
    assert view.missing(10, 60) == [(10, 20), (30, 40), (50, 60)]
    view.add(30, 40, [record._replace(offset=35, timestamp=8)])
    assert view.covers(20, 50)
    assert not view.covers(19, 50)
    one, other = view.tokens(view.between(20, 50))
    assert one != other
    assert len(set(view.tokens(view.between(20, 50), stamped=False))) == 1
    assert view.tokens(range(1), encoded=True, stamped=False) == [fingerprint_encoded(record)]
    mirrored = LogView()
    mirrored.add(0, 9, [record._replace(offset=3, headers=(("h", b"eA=="),))])
    assert mirrored.tokens(range(1), stamped=False) == view.tokens(range(1), encoded=True, stamped=False)
