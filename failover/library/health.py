"""Checklists gone through, as `failover health` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from failover.checks.status_checks import Limits
    from failover.library.connectors import OnConnect
    from failover.library.open_flow import OpenFlow
    from failover.model.health import Health, Period, Sides
    from failover.model.status import Status

HEARTBEAT_INTERVALS = 10
"""How many heartbeats may be missing: at MM2's one a second that is the 10 s of the usual checklists."""


class Checkup:
    """Is one look at both clusters, from which any checklist is answered; what a week's list asks is read once.

    ``on_connect``: what a Kafka Connect cluster told. Raises what ``take_snapshot`` raises.
    """

    def __init__(self, look: OpenFlow, on_connect: OnConnect) -> None:
        from failover.library.status import take_looks

        self._look = look
        self._looks = take_looks(look, on_connect)
        self._sides: tuple[Sides, Sides] | None = None

    def health(self, period: Period, limits: Limits | None = None) -> Health:
        """Answers the list of a day or of a week. ``limits``: None: the usual ones of ``usual_limits``."""
        from failover.inventory.health import internal_topics
        from failover.model.health import HealthFacts, Sides
        from failover.planning.health import make_health
        from failover.planning.status import make_status

        flow = self._look.mirror.selected.flow
        connector, key = flow.connectors["source"], "sync.topic.configs.enabled"
        source, target = self._read_sides() if period == "weekly" else (Sides(), Sides())
        return make_health(
            HealthFacts(
                period=period,
                status=make_status(self._looks, limits or usual_limits(self._look)),
                snapshot=self._looks.both,
                source=source,
                target=target,
                internal=internal_topics(self._look.flow),
                refresh_seconds=flow.refresh_topics_interval_seconds,
                configs_synced=key not in connector or connector.boolean(key),
                last_records=self._looks.beside.source_times,
            )
        )

    def status(self, limits: Limits) -> Status:
        """Weighs the look as `failover status` does."""
        from failover.planning.status import make_status

        return make_status(self._looks, limits)

    def _read_sides(self) -> tuple[Sides, Sides]:
        if self._sides is None:
            from failover.inventory.health import read_sides

            self._sides = read_sides(self._look.flow, self._looks.both, self._look.open)
        return self._sides


def usual_limits(look: OpenFlow) -> Limits:
    """Gives those of a status, with less patience for heartbeats: they come every second or so."""
    from failover.library import status

    patience = max(10.0, HEARTBEAT_INTERVALS * look.mirror.selected.flow.emit_heartbeats_interval_seconds)
    return msgspec.structs.replace(status.usual_limits(look), heartbeat_seconds=patience)
