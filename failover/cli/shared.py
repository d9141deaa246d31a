"""The topic on the target that executions share: the lock, and what other machines did."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from failover.cli.wiring import operator, utc_now
from failover.execution.holding import Common, dead, holding
from failover.execution.lock import live_holder
from failover.execution.runlog import RunLog, Shared

if TYPE_CHECKING:
    from failover.cli.frame import Settings
    from failover.kafka.port import Cluster


@contextlib.contextmanager
def locked(
    settings: Settings, cluster: Cluster, topic: str | None, what: str, *, ignore: bool = False
) -> Iterator[Common]:
    """Holds the flow's lock while the block runs; without it, because of silence or rights, says so and goes on.

    ``ignore``: a live holder is named and not obeyed. Raises ``Locked``.
    """
    with holding(
        cluster, topic, what, operator=operator(), ignore=ignore, warn=lambda text: settings.say(f"warning: {text}")
    ) as common:
        yield common


def look(cluster: Cluster, topic: str | None) -> Shared:
    """Reads the topic without claiming anything or creating it; nothing where it is not there."""
    if topic is None:
        return Shared()
    log = RunLog(cluster, topic)
    return log.read() if log.exists() else Shared()


def holder(cluster: Cluster, topic: str | None) -> str:
    """Says who executes on the flow now, "" when nobody does; for ``plan``, which writes nothing."""
    if topic is None:
        return ""
    return live_holder(RunLog(cluster, topic), now=utc_now(), dead=dead)
