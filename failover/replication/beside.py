"""Looks whether MirrorMaker 2 itself runs the flow: both at once would copy every record twice.

The workers of a dedicated MirrorMaker 2 are members of a group on the target, of protocol type ``connect``; its plain
producer cannot be fenced. One on plain Connect has a group of another name: it is noticed by where the target puts the
next batch.
"""

from __future__ import annotations

import logging

from failover.errors import BrokerError, MirrorMakerRuns
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.groups import describe_groups
from failover.model.groups import GroupType, Member

_LOG = logging.getLogger(__name__)
_GROUP_DENIED = 30
_NAMED = 5


async def look_beside(
    target: WireCluster, group: str, *, flow: str, alongside: bool | None = False
) -> tuple[Member, ...]:
    """Gives the members of MirrorMaker 2's group for a flow (``A->B``): () when none runs.

    ``group``: ``InternalTopics.connect_group``. Raises ``MirrorMakerRuns`` when there are some, unless ``alongside``
    (None: the command has no such option); ``ClusterUnreachable``; ``BrokerError`` where the group's coordinator gives
    no answer that passes. Without DESCRIBE on the group nothing can be said, which is logged.
    """
    info = (await describe_groups(target, [group], {group: GroupType.CLASSIC}))[group]
    if info.fault is not None:
        if info.fault.number != _GROUP_DENIED:
            raise BrokerError(
                f"cluster {target.alias}: group {group} cannot be looked at: {info.fault}",
                number=info.fault.number,
                name=info.fault.name,
                hint="it tells whether MirrorMaker 2 runs; try again shortly",
            )
        _LOG.warning(
            "cluster %s: no right to describe group %s, so a running MirrorMaker 2 of %s would go unnoticed until it"
            " writes: grant DESCRIBE on it",
            target.alias,
            group,
            flow,
        )
        return ()
    if not info.members:
        return ()
    said = f"MirrorMaker 2 runs {flow}: group {group} on cluster {target.alias} has {_named(info.members)}"
    if not alongside:
        raise MirrorMakerRuns(
            said,
            hint="stop it (one that has just been killed is forgotten after its session timeout, 10 s by default)"
            + (", or give --alongside if it mirrors other topics" if alongside is not None else ""),
        )
    _LOG.warning("%s; both copy what both select", said)
    return info.members


def _named(members: tuple[Member, ...]) -> str:
    shown = ", ".join(f"{member.client_id} on {member.host.lstrip('/')}" for member in members[:_NAMED])
    more = len(members) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown
