"""Points in time as people write them."""

from __future__ import annotations

from datetime import UTC, datetime


def parse_moment(text: str) -> datetime | None:
    """Reads ``2026-11-30T02:00:00Z``, also with an offset such as ``+01:00``; UTC where none is given.

    None for anything else, a bare date included: midnight is hardly ever meant.
    """
    text = text.strip()
    if len(text) < len("2026-11-30T02:00"):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
