"""The question before members are removed from a group, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence

from failover.model.execution import Eviction
from failover.model.groups import Member
from failover.report.inert import inert_line
from failover.report.table import table
from failover.report.values import moment, things

SHOWN = 30


def evict_question(group: str, alias: str, state: str, members: Sequence[Member], *, width: int = 100) -> str:
    """Writes whom it would remove and what that means."""
    who = things(len(members), "member")
    return "\n".join(
        [
            f"{inert_line(group)} is {inert_line(state)} on {inert_line(alias)}",
            "",
            _members(members, width),
            "",
            f"This removes {who} from {inert_line(group)} on {inert_line(alias)}. A client that still runs joins",
            "again: stop the applications first; this is for members whose process is gone.",
        ]
    )


def eviction_text(eviction: Eviction, *, width: int = 100) -> str:
    """Writes what became of it."""
    group, alias = inert_line(eviction.group), inert_line(eviction.target_alias)
    failed = dict(eviction.faults)
    removed = [one for one in eviction.members if one.member_id not in failed]
    lines = [f"{alias}   run {inert_line(eviction.id)} evicts from {group}   {moment(eviction.started)}"]
    if eviction.left is None:
        lines += ["", "It is not known whether the members are gone: failover evict again looks and goes on."]
        return "\n".join(lines) + "\n"
    lines.append(f"{things(len(removed), 'member')} removed; {group} is {inert_line(eviction.state)} now")
    if failed:
        rows = [(one.client_id, one.host, failed[one.member_id]) for one in eviction.members if one.member_id in failed]
        lines += ["", table(("NOT REMOVED", "HOST", "WHY"), rows[:SHOWN], width=width)]
    if eviction.left:
        lines += ["", f"There now ({things(len(eviction.left), 'member')}), so these clients run: stop them.", ""]
        lines.append(_members(eviction.left, width))
    else:
        lines.append("next: failover execute")
    return "\n".join(lines) + "\n"


def nobody_text(eviction: Eviction, *, static_only: bool) -> str:
    """Writes that there was nobody to remove."""
    kind = "static member" if static_only and eviction.left else "member"
    return inert_line(
        f"{eviction.group} is {eviction.state} on {eviction.target_alias} and has no {kind}: nothing to remove"
    )


def _members(members: Sequence[Member], width: int) -> str:
    rows = [(one.client_id, one.host.removeprefix("/"), one.group_instance_id or "-", one.member_id) for one in members]
    text = table(("CLIENT", "HOST", "STATIC", "MEMBER"), rows[:SHOWN], width=width)
    return text if len(rows) <= SHOWN else f"{text}\n{things(len(rows) - SHOWN, 'more member')}"
