"""Removes lingering members from a group on the target: static ones of processes that are gone, mostly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from failover.errors import ClusterError, GroupNotFound, Refused
from failover.kafka.port import Cluster
from failover.model.execution import Eviction, Outcome
from failover.model.groups import GroupInfo, GroupType, Member
from failover.planning.group_rules import denied, may
from failover.state.journal import Event, Evicted, Evicting, Finished, Notebook, Started


def candidates(cluster: Cluster, group: str, *, static_only: bool) -> tuple[GroupInfo, tuple[Member, ...]]:
    """Finds whom to remove. Raises ``GroupNotFound``, or ``Refused`` for a group this cannot be done with."""
    info = cluster.describe_groups([group])[group]
    alias = cluster.alias
    if denied(info.fault) or not may(info.operations, "READ"):
        raise Refused(
            f"this user may not remove members of {group} on {alias}", hint=f"grant READ on group {group} (LeaveGroup)"
        )
    if info.fault is not None:
        raise Refused(f"the state of {group} on {alias} cannot be read: {info.fault}", hint="try again shortly")
    if not info.exists:
        raise GroupNotFound(f"there is no group {group} on {alias}", hint="failover plan lists the groups")
    if info.type not in (GroupType.CLASSIC, GroupType.CONSUMER):
        raise Refused(f"{group} is a {info.type} group on {alias}: its members cannot be removed from outside")
    members = tuple(one for one in info.members if one.group_instance_id is not None or not static_only)
    return info, members


def evict(
    cluster: Cluster,
    group: str,
    members: Sequence[Member],
    notebook: Notebook,
    started: Started,
    *,
    clock: Callable[[], datetime],
) -> Eviction:
    """Notes whom it will remove, removes them, looks who is there afterwards, and gives the record."""
    events: list[Event] = []

    def note(event: Event) -> None:
        events.append(event)
        notebook.append(event)
        notebook.sync()

    note(started)
    note(Evicting(clock(), group, tuple(members)))
    try:
        answers = cluster.evict(group, members)
        info = cluster.describe_groups([group])[group]
        faults = tuple((name, str(fault)) for name, fault in answers.items() if fault is not None)
        note(Evicted(clock(), group, faults, info.members, info.state))
    except ClusterError:
        note(Finished(clock(), Outcome.UNKNOWN, groups=1))
        raise
    record = build_eviction(events)
    note(Finished(clock(), record.outcome, groups=1, committed=len(members) - len(faults), open=len(faults)))
    return build_eviction(events)


def build_eviction(events: Iterable[Event]) -> Eviction:
    """Derives the record from the journal's events."""
    started: Started | None = None
    members: tuple[Member, ...] = ()
    evicted: Evicted | None = None
    finished: datetime | None = None
    for event in events:
        if isinstance(event, Started):
            started = event
        elif isinstance(event, Evicting):
            members = event.members
        elif isinstance(event, Evicted):
            evicted = event
        elif isinstance(event, Finished):
            finished = event.at
    if started is None:
        raise ValueError("a journal begins with its started event")
    return Eviction(
        id=started.execution_id,
        group=started.selected[0],
        started=started.at,
        finished=finished,
        outcome=_outcome(members, evicted),
        operator=started.operator,
        reason=started.reason,
        source_alias=started.source_alias,
        target_alias=started.target_alias,
        members=members,
        faults=evicted.faults if evicted else (),
        left=evicted.left if evicted else None,
        state=evicted.state if evicted else "",
    )


def _outcome(members: tuple[Member, ...], evicted: Evicted | None) -> Outcome:
    """Judges it: who is there afterwards was not meant, could not be removed, or has joined again."""
    if evicted is None:
        return Outcome.UNKNOWN
    if members and len(evicted.faults) == len(members):
        return Outcome.REFUSED
    return Outcome.PARTIAL if evicted.faults or evicted.left else Outcome.DONE


def exit_code(eviction: Eviction) -> int:
    """Gives the exit status of an eviction."""
    return {Outcome.DONE: 0, Outcome.PARTIAL: 4, Outcome.REFUSED: 3}.get(eviction.outcome, 7)
