"""Says now and then, in one line, how far the copying is."""

from __future__ import annotations

from collections.abc import Collection

from failover.replication.lane import State
from failover.replication.route import Route
from failover.replication.traffic import Traffic
from failover.report.values import things


class Progress:
    """Makes the line, from what was counted since the last one; "" while there is nothing new to say."""

    def __init__(self, flow: str) -> None:
        self._flow = flow
        self._records = self._bytes = 0
        self._said = ""

    def line(self, routes: Collection[Route], traffic: Traffic, seconds: float) -> str:
        """Gives the line for the last ``seconds``."""
        records, size = traffic.records - self._records, traffic.bytes - self._bytes
        self._records, self._bytes = traffic.records, traffic.bytes
        behind = [lag for route in routes if (lag := lag_of(route)) > 0]
        still = sum(1 for route in routes if route.reason)
        waiting = sum(1 for route in routes if route.lane.state is not State.OPEN and not route.reason)
        state = things(len(routes), "partition")
        if behind:
            state += f", {len(behind)} behind by {sum(behind):,} records"
        if waiting:
            state += f", {waiting} being started"
        if still:
            state += f", {still} STANDING STILL"
        if not records and state == self._said:
            return ""
        self._said = state
        rate = f"{records / seconds:,.0f} records/s, {size / seconds / 1e6:,.1f} MB/s"
        return f"{self._flow}: {things(records, 'record')} copied in {seconds:.0f} s ({rate}); {state}"


def lag_of(route: Route) -> int:
    """Gives how many source offsets are not copied yet, 0 where the source's end is not known."""
    return max(route.source_end - route.lane.upstream, 0)
