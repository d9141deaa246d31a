"""The flow's connectors stopped, and resumed on the way back."""

from __future__ import annotations

from failover.runbook.steps.switching import SwitchKind


class StopReplicationKind(SwitchKind):
    """Stops the flow's connectors, those that write to groups first, and resumes those that ran when it turns back.

    Speaks Kafka Connect's REST interface, which the replicator has too. A replicator or MirrorMaker 2 without it is
    stopped by a step that uses command (systemctl, kubectl) or manual.
    """

    verb, done, noted = "stop", "stopped", "ran"
    results = {"stopped": "connectors that ran before and are stopped"}  # noqa: RUF012 - a class's constant


KIND = StopReplicationKind()
