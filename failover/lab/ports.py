"""Free ports on loopback."""

from __future__ import annotations

import random
import socket

from failover.errors import LabError

LOOPBACK = "127.0.0.1"
RANGE = range(20_000, 32_700)
"""Lies below the range Linux and macOS take for outgoing connections: a port found free here is not taken by somebody's
client before the broker listens on it."""


def free_ports(count: int) -> list[int]:
    """Returns distinct ports nobody listens on at this moment; raises LabError when there are too few."""
    held: list[socket.socket] = []
    try:
        for port in random.sample(RANGE, len(RANGE)):
            if len(held) == count:
                break
            probe = socket.socket()
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                probe.close()
                continue
            held.append(probe)
        if len(held) < count:
            raise LabError(
                f"only {len(held)} of {count} ports are free on {LOOPBACK}", hint="end other programs and try again"
            )
        return [int(probe.getsockname()[1]) for probe in held]
    finally:
        for probe in held:
            probe.close()
