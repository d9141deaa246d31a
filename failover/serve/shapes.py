"""Connectors in the words of Kafka Connect's REST: what is answered, as plain values for JSON. Pure."""

from __future__ import annotations

from typing import Any, TypeAlias

from failover import __version__
from failover.replication.snapshot import FlowNow
from failover.serve.board import CHECKPOINT, HEARTBEAT, SOURCE, Connector, State

Json: TypeAlias = dict[str, Any]

TYPE = "source"  # all three of MirrorMaker 2's are source connectors


def config_of(connector: Connector) -> dict[str, str]:
    """Gives a connector's settings as far as they are given, secrets masked, under the name it has here."""
    settings = connector.flow.config.connectors[connector.kind]
    shown = {key: setting.shown for key, setting in settings.items() if settings.is_given(key)}
    return shown | {"name": connector.name}


def info(connector: Connector) -> Json:
    """Gives what ``GET /connectors/{c}`` answers."""
    tasks = [{"connector": connector.name, "task": number} for number in range(connector.tasks)]
    return {"name": connector.name, "config": config_of(connector), "tasks": tasks, "type": TYPE}


def status(connector: Connector, worker: str) -> Json:
    """Gives what ``GET /connectors/{c}/status`` answers; ``worker``: who runs it."""
    return {
        "name": connector.name,
        "connector": _state(connector, worker),
        "tasks": [task_status(connector, number, worker) for number in range(connector.tasks)],
        "type": TYPE,
    }


def task_status(connector: Connector, number: int, worker: str) -> Json:
    """Gives what ``GET /connectors/{c}/tasks/{n}/status`` answers."""
    return {"id": number, **_state(connector, worker)}


def tasks(connector: Connector, seen: FlowNow | None) -> list[Json]:
    """Gives what ``GET /connectors/{c}/tasks`` answers."""
    config = config_of(connector)
    if seen is not None and connector.kind == SOURCE:
        # MM2 (MirrorSourceTaskConfig, MirrorCheckpointTaskConfig): what a task has been given.
        config["task.assigned.partitions"] = ",".join(
            f"{part.source.topic}-{part.source.partition}" for part in seen.partitions
        )
        config["task.assigned.shards"] = ",".join(map(str, seen.share.shards))
    if seen is not None and connector.kind == CHECKPOINT and seen.checkpoints is not None:
        config["task.assigned.groups"] = ",".join(seen.checkpoints.exact_at)
    if connector.kind != HEARTBEAT:
        config["task.index"] = "0"
    return [
        {"id": {"connector": connector.name, "task": number}, "config": config} for number in range(connector.tasks)
    ]


def offsets(connector: Connector, seen: FlowNow | None) -> Json:
    """Gives what ``GET /connectors/{c}/offsets`` answers."""
    own = own_offsets(connector, seen)
    return {"offsets": connector.stored.shown(own, runs=connector.state is State.RUNNING)}


def own_offsets(connector: Connector, seen: FlowNow | None) -> list[Json]:
    """Gives a connector's offsets: in MM2's terms, of the source connector the last record copied of a partition."""
    flow = connector.flow
    found: list[Json] = []
    if connector.kind == SOURCE and flow.open is not None:
        found = [
            _offset({"cluster": flow.config.source.alias, "partition": tp.partition, "topic": tp.topic}, upstream - 1)
            for tp, upstream in flow.open.copied().items()
            if upstream > 0
        ]
    elif connector.kind == CHECKPOINT and flow.open is not None:
        # MM2 (MirrorUtils.wrapOffset) writes 0 for the other two connectors and reads none of it back.
        found = [
            _offset({"partition": place.partition, "topic": place.topic, "group": group}, 0)
            for group, places in flow.open.positions().items()
            for place in places
        ]
    elif connector.kind == HEARTBEAT:
        written = flow.heartbeat() if flow.heartbeat is not None else seen.heartbeat if seen is not None else None
        if written is not None:
            ends = {
                "sourceClusterAlias": flow.config.source.alias,
                "targetClusterAlias": flow.config.target.alias,
            }
            found = [_offset(ends, 0)]
    return found


def topics(connector: Connector) -> Json:
    """Gives what ``GET /connectors/{c}/topics`` answers: those it writes to."""
    written = connector.flow.open.topics().get(connector.kind, ()) if connector.flow.open is not None else ()
    return {connector.name: {"topics": sorted(written)}}


def _offset(partition: Json, offset: int) -> Json:
    return {"partition": partition, "offset": {"offset": offset}}


def _state(connector: Connector, worker: str) -> Json:
    state = connector.state
    found: Json = {"state": state.value, "worker_id": worker, "version": __version__}
    if state in (State.FAILED, State.RESTARTING):
        found["trace"] = connector.flow.failure
    return found
