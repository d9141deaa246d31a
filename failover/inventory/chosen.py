"""Of the groups chosen by name: which have to do with the flow, and what must be known before they are planned."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from failover.errors import BrokerError, NotAuthorized
from failover.inventory.flow import Flow
from failover.inventory.internal_topics import CheckpointsByGroup
from failover.inventory.look import FirstLook, Offsets
from failover.inventory.selection import Candidates, Known, not_found
from failover.mm2.exact_checkpoint import Exact
from failover.model.snapshot import ClusterView, NotPlanned

RETENTION_SECONDS = 7 * 86_400.0


def had_commits(
    checkpoints: CheckpointsByGroup,
    listed: Collection[str],
    *,
    taken: datetime,
    deleted: Collection[str],
    looked: datetime | None,
) -> set[str]:
    """Names the groups whose commits the source must still have unless somebody deleted them.

    MM2 checkpoints what it reads as committed there, and Kafka keeps that for a week by default. A group that an
    earlier look (``looked``) found ``deleted``, that is not ``listed`` and has no checkpoint since, is believed to be.
    """
    since = (taken.timestamp() - RETENTION_SECONDS) * 1000
    before = since if looked is None else looked.timestamp() * 1000
    newest = {group: max(seen.timestamp for seen in places.values()) for group, places in checkpoints.items() if places}
    return {
        group
        for group, at in newest.items()
        if at >= since and (group not in deleted or group in listed or at > before)
    }


def require_evidence(flow: Flow, target: FirstLook, source: FirstLook | None, exact: Exact) -> None:
    """Refuses to plan blindly: "no checkpoints" and "checkpoints that may not be read" differ.

    Raises ``NotAuthorized`` and ``BrokerError``.
    """
    readings = {reading.topic: reading for reading in target.readings}
    if flow.info.reversed:
        return  # this flow never ran; the opposite one's syncs are asked
    checkpoints = readings[flow.internal.checkpoints]
    syncs = bool(target.syncs) or (source is not None and bool(source.syncs))
    fault = checkpoints.fault
    if fault is None or syncs or exact.positions:
        return
    where = f"topic {checkpoints.topic} of {checkpoints.cluster}"
    if fault.name == "TOPIC_AUTHORIZATION_FAILED":
        raise NotAuthorized(
            f"no READ on {where}, and no offset syncs to go by",
            alias=checkpoints.cluster,
            hint=f"grant READ on topic {checkpoints.topic} to this tool's user",
        )
    raise BrokerError(
        f"{where} cannot be read ({fault}), and there are no offset syncs to go by",
        number=fault.number,
        name=fault.name,
        hint="look at the brokers' logs for this topic",
    )


def on_mirrored_topics(
    candidates: Candidates,
    mirrored: Mapping[str, str],
    target: Offsets,
    source: Offsets | None,
    checkpoints: Collection[str],
) -> tuple[tuple[str, ...], list[NotPlanned]]:
    """Keeps the groups that have to do with a mirrored topic, those named by hand, and those nobody could ask about."""
    source_topics = frozenset(mirrored.values())
    kept, left = [], []
    for group in candidates.groups:
        here = {tp.topic for tp in target.commits.get(group, ())}
        there = {tp.topic for tp in source.commits.get(group, ())} if source is not None else set()
        unknown = group in target.faults or (source is not None and group in source.faults)
        known = group in checkpoints or group in candidates.by_hand or unknown
        if known or not source_topics.isdisjoint(there) or not here.isdisjoint(mirrored):
            kept.append(group)
        else:
            left.append(NotPlanned(group, "no-mirrored-topic", tuple(sorted(here | there))))
    return tuple(kept), left


def require_found(groups: Iterable[str], candidates: Candidates, known: Known, views: tuple[ClusterView, ...]) -> None:
    """Finds a mistyped name also where a listing was incomplete: the coordinators know better.

    Raises ``GroupNotFound``.
    """
    for group in groups:
        if group in known or group not in candidates.by_hand:
            continue
        infos = [view.groups[group] for view in views if group in view.groups]
        if not any(info.exists or info.fault is not None for info in infos):
            raise not_found(group, known)
