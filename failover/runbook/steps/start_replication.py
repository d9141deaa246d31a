"""The flow's connectors resumed, and stopped on the way back."""

from __future__ import annotations

from failover.runbook.steps.switching import SwitchKind


class StartReplicationKind(SwitchKind):
    """Resumes the flow's connectors and waits until they run; those that were stopped are stopped on the way back."""

    verb, done, noted = "resume", "started", "stood"
    results = {"started": "connectors that were stopped before and run"}  # noqa: RUF012 - a class's constant


KIND = StartReplicationKind()
