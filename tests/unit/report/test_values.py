from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from failover.model.groups import Member
from failover.report.table import screen_width, shorten, table
from failover.report.values import age, at_most, clock, count, duration, members, moment, offset, things, unknown

NOW = datetime(2026, 11, 5, 3, 14, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.34, "0.3 s"),
        (8, "8 s"),
        (59.6, "1 min"),
        (138, "2 min 18 s"),
        (3600, "1 h"),
        (11100, "3 h 5 min"),
        (187200, "2 d 4 h"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_numbers():
    assert [count(1234567), count(0), count(None)] == ["1,234,567", "0", "-"]
    assert [unknown(None), unknown(5)] == ["unknown", "5"]
    assert [offset(1234567), offset(0), offset(None)] == ["1234567", "0", "-"]
    assert [things(1, "group"), things(2000, "group")] == ["1 group", "2,000 groups"]


def test_bounds():
    assert at_most(0, 0) == "0"
    assert at_most(97, 97) == "97"
    assert at_most(49, 1200) == "<= 1,200"
    assert at_most(None, 97) == "<= 97"
    assert at_most(None, 0) == "0"
    assert at_most(49, None) == "~49"
    assert at_most(None, None) == "-"


def test_times_are_utc_with_their_age():
    assert moment(NOW) == "2026-11-05 03:14:07 UTC"
    assert clock(NOW - timedelta(seconds=138), NOW) == "03:11:49 UTC"
    assert clock(NOW - timedelta(days=1), NOW, seconds=False) == "2026-11-04 03:14 UTC"
    assert age(NOW - timedelta(seconds=138), NOW) == "2 min 18 s ago"
    assert age(NOW + timedelta(seconds=60), NOW) == "in 1 min"


def test_members_are_named_by_client_and_host():
    found = (Member("app-1", "/10.0.3.7", "m"), Member("app-2", "", "m", "static-1"))
    assert members(found) == "2 members: app-1 10.0.3.7, app-2 (static static-1)"
    assert members(found * 3) == ("6 members: app-1 10.0.3.7, app-2 (static static-1), app-1 10.0.3.7 and 3 more")


def test_table_fits_and_has_no_trailing_spaces():
    rows = [("payments", "1,204", "a long reason " * 20), ("日本のグループ", "7", "")]
    screen = table(("GROUP", "RECORDS", "WHY"), rows, width=60)
    lines = screen.splitlines()
    assert all(line == line.rstrip() and screen_width(line) <= 60 for line in lines)
    assert lines[1].endswith("…")
    # Wide characters take two columns; the numbers still end in one column.
    ends = [
        screen_width(line[: line.index(number) + len(number)])
        for line, number in zip(lines, ("RECORDS", "1,204", "7"), strict=True)
    ]
    assert len(set(ends)) == 1


def test_empty_table_is_its_headers():
    assert table(("GROUP", "WHY"), []) == "GROUP  WHY"


def test_many_long_columns_still_fit():
    rows = [tuple("x" * 90 for _ in range(5))] * 2
    assert max(map(len, table(("A", "B", "C", "D", "E"), rows, width=100).splitlines())) <= 100


def test_shorten():
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdef", 4) == "abc…"
    assert screen_width(shorten("日本のグループ", 6)) <= 6


def test_prose_in_the_last_column_goes_on_below_instead_of_being_cut():
    words = "consumer groups that move; none named are all that the flow's filters pick, however long that list may be"
    text = table(("NAME", "N", "MEANING"), [("groups", "1", words), ("b", "2", "")], width=60, wrap=True)
    lines = text.splitlines()
    assert all(screen_width(line) <= 60 for line in lines)
    assert "…" not in text
    assert " ".join(line[len("groups  N  ") :] for line in lines[1:-1]).split() == words.split()
    assert lines[-1] == "b       2"
