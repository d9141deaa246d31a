from __future__ import annotations

from datetime import UTC, datetime

import pytest

from failover.config.moment import parse_moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-30T02:00:00Z", datetime(2026, 11, 30, 2, tzinfo=UTC)),
        (" 2026-11-30 02:00 ", datetime(2026, 11, 30, 2, tzinfo=UTC)),
        ("2026-11-30T02:00:00.250+01:00", datetime(2026, 11, 30, 1, 0, 0, 250_000, tzinfo=UTC)),
    ],
)
def test_times_are_utc_unless_they_say_otherwise(text: str, moment: datetime) -> None:
    assert parse_moment(text) == moment


@pytest.mark.parametrize("text", ["", "2026-11-30", "02:00", "yesterday", "1764468000", "2026-13-30T02:00:00Z"])
def test_what_is_no_time(text: str) -> None:
    assert parse_moment(text) is None
