"""The topic on the target that executions share: the lock, and what other machines did."""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from failover.cli.wiring import operator, utc_now
from failover.execution.claims import Claim
from failover.execution.lock import Lock, live_holder
from failover.execution.runlog import RunLog, Shared
from failover.mm2 import internal_topics

if TYPE_CHECKING:
    from failover.cli.frame import Settings
    from failover.config.flow import Config
    from failover.kafka.port import Cluster


class Common(NamedTuple):
    """Is what an execution has of the shared topic: ``log`` None where it cannot be used."""

    log: RunLog | None
    shared: Shared
    warnings: tuple[str, ...] = ()


def runs_topic(config: Config, source: str) -> str | None:
    """Names the topic of a flow's executions: ``failover.runs.topic``, which may be ``off``; None then."""
    setting = config.failover.get("runs.topic")
    return internal_topics.runs_topic(None if setting is None else setting.trimmed, source)


@contextlib.contextmanager
def locked(
    settings: Settings, cluster: Cluster, topic: str | None, what: str, *, ignore: bool = False
) -> Iterator[Common]:
    """Holds the flow's lock while the block runs; without it, because of silence or rights, says so and goes on.

    ``ignore``: a live holder is named and not obeyed. Raises ``Locked``.
    """
    if topic is None:
        yield Common(None, Shared())
        return
    log = RunLog(cluster, topic)
    me = Claim("claim", uuid.uuid4().hex, operator(), socket.gethostname(), machine(), os.getpid(), what)
    lock = Lock(log, me, dead=_dead)
    shared, missing = lock.acquire(force=ignore)
    warnings = (f"lock-unavailable: {missing}",) if missing else ()
    for warning in warnings:
        settings.say(f"warning: {warning}")
    try:
        yield Common(log if not missing or shared.claims else None, shared, warnings)
    finally:
        lock.release()


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
    return live_holder(RunLog(cluster, topic), now=utc_now(), dead=_dead)


def machine() -> str:
    """Tells machines apart, and containers on one machine: only within one does a process id say anything."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return "/".join(parts)


def _dead(claim: Claim) -> bool:
    """Says whether a holder's process on this very machine is gone."""
    if claim.machine != machine():
        return False
    try:
        os.kill(claim.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
