"""How each kind of value is written: numbers, bounds, offsets, durations, times. One place for all formats of people.

Unknown and absent values are "-"; ``unknown()`` writes the word where a dash could be read as none.
"""

from __future__ import annotations

from datetime import UTC, datetime

from failover.model.groups import Member
from failover.report.inert import inert_line


def count(number: int | None) -> str:
    """Writes a number of records, groups or offsets with thousands separators."""
    return "-" if number is None else f"{number:,}"


def unknown(number: int | None) -> str:
    """Writes a number, or the word unknown."""
    return "unknown" if number is None else f"{number:,}"


def things(number: int, noun: str) -> str:
    """Writes a number with its noun: ``1 group``, ``2 groups``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def at_most(estimate: int | None, bound: int | None) -> str:
    """Writes an estimate with its bound: the number itself where both agree, else ``<= bound``."""
    if bound is None:
        return "-" if estimate is None else f"~{estimate:,}"
    return f"{bound:,}" if bound in (estimate, 0) else f"<= {bound:,}"


def offset(number: int | None) -> str:
    """Writes an offset plainly, as Kafka's own tools do, so that it can be copied."""
    return "-" if number is None else str(number)


def duration(seconds: float) -> str:
    """Writes a length of time in its two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if 0 < seconds < 10 and seconds != whole else f"{whole} s"
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size:,} {unit}" + (f" {rest} {smaller}" if rest else "")
    raise AssertionError("a minute or more has a unit")


def age(then: datetime, now: datetime) -> str:
    """Writes how long ago something was."""
    seconds = (now - then).total_seconds()
    return f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"


def moment(when: datetime) -> str:
    """Writes a time in UTC, to the second, with its date."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def clock(when: datetime, now: datetime, *, seconds: bool = True) -> str:
    """Writes a time in UTC; the date only where it is another one than today's."""
    local = when.astimezone(UTC)
    text = f"{local:%H:%M:%S}" if seconds else f"{local:%H:%M}"
    return f"{text} UTC" if local.date() == now.astimezone(UTC).date() else f"{local:%Y-%m-%d} {text} UTC"


def member(one: Member) -> str:
    """Names a member by client id and host, a static one by its instance id too."""
    host = one.host.removeprefix("/")
    static = f" (static {inert_line(one.group_instance_id)})" if one.group_instance_id else ""
    return f"{inert_line(one.client_id)}{' ' if host else ''}{inert_line(host)}{static}"


def members(found: tuple[Member, ...], limit: int = 3) -> str:
    """Names the first few members and counts them."""
    shown = ", ".join(member(one) for one in found[:limit])
    more = f" and {len(found) - limit} more" if len(found) > limit else ""
    return f"{things(len(found), 'member')}: {shown}{more}"
