"""Records around two positions laid beside each other: what at-least-once copying allows, and what it does not."""

from __future__ import annotations

import pytest

from failover.translate.follow import Followed, Side, follow


def side(text: str, first: int = 0) -> Side:
    """Makes records of letters; a dot is an offset without a record."""
    found = [(first + offset, ord(letter)) for offset, letter in enumerate(text) if letter != "."]
    return Side([offset for offset, _ in found], [token for _, token in found])


def followed(source: str, target: str, *, committed: int, position: int, **more: object) -> Followed:
    return follow(side(source), side(target), committed=committed, position=position, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "target", "positions", "compared", "reread"),
    [
        ("abcdef", "abcdef", (3, 3), 6, 0),
        ("abcdef", "cdef", (3, 1), 4, 0),  # the target's log begins later
        ("ab..cdef", "abcdef", (4, 2), 6, 0),  # markers take offsets
        ("abcdef", "abcdef", (3, 1), 6, 2),  # two are read again
        ("abcdef", "abcd", (3, 3), 4, 0),  # two are not copied yet
        ("abcdef", "abcdef", (6, 6), 6, 0),  # nothing is unread
        ("abcdef", "abcd", (6, 4), 4, 0),  # consumed, not copied, so behind the target's end
        ("abcdef", "abcdcdef", (3, 3), 8, 1),  # the mirror was restarted and copied a stretch once more
        ("aaaaaa", "aaaaaa", (3, 3), 6, 0),  # all alike
        ("", "", (0, 0), 0, 0),
        ("abc", "", (0, 0), 0, 0),
    ],
)
def test_what_is_right(source, target, positions, compared, reread):
    assert followed(source, target, committed=positions[0], position=positions[1]) == Followed(compared, reread)


@pytest.mark.parametrize(
    ("source", "target", "positions", "fault", "at"),
    [
        ("abcdef", "abcdef", (3, 4), "an unread record lies before the position", 3),
        ("abcdef", "abcef", (3, 3), "1 unread records are passed over", 3),
        ("abcdef", "abcdf", (3, 3), "1 records before it are missing", 4),
        ("abcdef", "abcdxf", (3, 3), "the record there is none of the source's", 4),
        ("abcdef", "abcxyz", (3, 3), "the record there is none of the source's", 3),
        ("abcdef", "xyz", (6, 3), "the record before the position is none of those that were consumed", 2),
        ("abcdef", "abcdef", (3, 6), "an unread record lies before the position", 3),
    ],
)
def test_what_is_wrong(source, target, positions, fault, at):
    found = followed(source, target, committed=positions[0], position=positions[1])
    assert (found.fault, found.at) == (fault, at)


def test_what_aborted_transactions_wrote_may_be_missing():
    given = {"committed": 2, "position": 2}
    assert followed("abXcdYef", "abcdef", **given).fault
    assert followed("abXcdYef", "abcdef", **given, optional={2, 5}) == Followed(6)
    assert followed("abXcdYef", "abXcdYef", **given, optional={2, 5}) == Followed(8)


def test_where_a_cleaner_removes_records_single_ones_may_be_missing_on_either_side():
    given = {"committed": 3, "position": 3}
    assert followed("abcdefg", "abcdgh", **given).fault
    assert followed("abcdefg", "abcdgh", **given, holes=True) == Followed(5)
    assert followed("abc.ef", "abcde", **given, holes=True) == Followed(1)
    passed = followed("abcdef", "abcdef", committed=3, position=4, holes=True)
    assert passed.fault == "an unread record lies before the position"
