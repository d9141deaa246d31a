"""The groups of the source whose commits are worth asking for."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from failover.errors import ClusterUnreachable
from failover.inventory.selection import foreign_protocol
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.groups import groups_of_brokers
from failover.mm2.internal_topics import is_own_group
from failover.model.groups import GroupType, ListedGroup
from failover.model.names import Fault
from failover.replication.aside import Aside

_IDLE_SECONDS = 30.0


class SourceGroups:
    """Lists groups again and again. ``listed``: those that are there and that the flow takes.

    ``takes``: the flow's filter. ``new`` False: only groups of the first listing count.
    """

    def __init__(self, source: WireCluster, *, takes: Callable[[str], bool], new: bool) -> None:
        self.listed: frozenset[str] = frozenset()
        self._source = source
        self._takes, self._new = takes, new
        self._of_brokers: Aside[int, dict[str, ListedGroup]] = Aside(partial(groups_of_brokers, source))
        self._rows: dict[int, dict[str, ListedGroup]] = {}
        self._states: dict[str, str] = {}
        self._first: frozenset[str] | None = None
        self._idle: dict[str, tuple[str, float]] = {}

    async def names(self) -> list[str]:
        """Names the groups to ask, those without commits on mirrored topics less often.

        Groups of a broker that gives no answer are those it had. Raises ``ClusterUnreachable`` when none answers.
        """
        answers = await self._of_brokers(self._source.brokers)
        faults = [found for found in answers.values() if isinstance(found, Fault)]
        if faults and len(faults) == len(answers):
            await self._source.metadata(())  # other brokers may have taken over
            raise ClusterUnreachable(
                f"no broker of cluster {self._source.alias} lists its groups: {faults[0].message}",
                alias=self._source.alias,
            )
        for node, found in answers.items():
            if not isinstance(found, Fault):
                self._rows[node] = found
        if not faults:
            self._rows = {node: self._rows[node] for node in answers}
        states = {name: row.state for found in self._rows.values() for name, row in found.items() if self._wanted(row)}
        if self._first is None:
            self._first = frozenset(states)
        elif not self._new:
            states = {name: state for name, state in states.items() if name in self._first}
        self.listed, self._states = frozenset(states), states
        now = time.monotonic()
        self._idle = {
            name: (state, until)
            for name, (state, until) in self._idle.items()
            if states.get(name) == state and now < until
        }
        return [name for name in states if name not in self._idle]

    def idle(self, group: str) -> None:
        """Notes that a group has nothing of interest: it is asked again after a while, or once its state changes."""
        self._idle[group] = (self._states.get(group, ""), time.monotonic() + _IDLE_SECONDS)

    async def close(self) -> None:
        """Gives up what is asked beside."""
        await self._of_brokers.close()

    def _wanted(self, row: ListedGroup) -> bool:
        return (
            row.type not in (GroupType.SHARE, GroupType.STREAMS)
            and not foreign_protocol((row,))
            and not is_own_group(row.name)
            and self._takes(row.name)
        )
