"""Holds a flow's lock while something is executed, and has what other machines did."""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from failover.execution.claims import Claim
from failover.execution.lock import Lock
from failover.execution.runlog import RunLog, Shared
from failover.kafka.port import Cluster


class Common(NamedTuple):
    """Is what an execution has of the shared topic: ``log`` None where it cannot be used."""

    log: RunLog | None
    shared: Shared
    warnings: tuple[str, ...] = ()


@contextlib.contextmanager
def holding(
    cluster: Cluster,
    topic: str | None,
    what: str,
    *,
    operator: str,
    ignore: bool = False,
    warn: Callable[[str], None],
) -> Iterator[Common]:
    """Holds the flow's lock while the block runs; without it, because of silence or rights, warns and goes on.

    ``topic``: None: there is no lock. ``ignore``: a live holder is named and not obeyed. Raises ``Locked``.
    """
    if topic is None:
        yield Common(None, Shared())
        return
    log = RunLog(cluster, topic)
    me = Claim("claim", uuid.uuid4().hex, operator, socket.gethostname(), machine(), os.getpid(), what)
    lock = Lock(log, me, dead=dead)
    shared, missing = lock.acquire(force=ignore)
    warnings = (f"lock-unavailable: {missing}",) if missing else ()
    for warning in warnings:
        warn(warning)
    try:
        yield Common(log if not missing or shared.claims else None, shared, warnings)
    finally:
        lock.release()


def machine() -> str:
    """Tells machines apart, and containers on one machine: only within one does a process id say anything."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return "/".join(parts)


def dead(claim: Claim) -> bool:
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
