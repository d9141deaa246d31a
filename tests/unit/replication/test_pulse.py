from __future__ import annotations

import time

from failover.replication.pulse import Pulse


def test_silence_is_told_once_and_nothing_is_sent_meanwhile():
    now = [50.0]
    pulse = Pulse(5.0, clock=lambda: now[0])
    assert (pulse.alive(), pulse.beat()) == (True, 0.0)
    now[0] += 5.0
    assert (pulse.alive(), pulse.beat()) == (True, 0.0)
    now[0] += 60.0
    assert not pulse.alive()
    assert pulse.beat() == 60.0
    assert (pulse.alive(), pulse.beat()) == (True, 0.0)


def test_time_in_suspend_counts(monkeypatch):
    """A monotonic clock stands still there."""
    asked = []

    def clock(which: int) -> float:
        asked.append(which)
        return 1.0

    monkeypatch.setattr(time, "clock_gettime", clock)
    Pulse(5.0)
    assert asked == [getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)]
