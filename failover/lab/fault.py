"""Names for the faults of the wire, and a lab's condition told to a person."""

from __future__ import annotations

from typing import Literal

import msgspec

from failover.errors import LabUsageError
from failover.lab import process as processes
from failover.lab.lab import Lab

# Kafka: the api keys of its protocol, under the names its documentation gives them
APIS = {
    "produce": 0,
    "fetch": 1,
    "list-offsets": 2,
    "metadata": 3,
    "offset-commit": 8,
    "offset-fetch": 9,
    "find-coordinator": 10,
    "join-group": 11,
    "heartbeat": 12,
    "leave-group": 13,
    "sync-group": 14,
    "describe-groups": 15,
    "list-groups": 16,
    "api-versions": 18,
    "create-topics": 19,
    "init-producer-id": 22,
    "end-txn": 26,
    "delete-groups": 42,
    "offset-delete": 47,
    "describe-cluster": 60,
    "describe-producers": 61,
    "consumer-group-heartbeat": 68,
    "consumer-group-describe": 69,
    "describe-topic-partitions": 75,
}


def api_key(name: str | None) -> int | None:
    """Returns the api key of a request's name; None for any request. Raises LabUsageError for an unknown name."""
    if name is None:
        return None
    if name not in APIS:
        raise LabUsageError(f"no request named {name}", hint=f"known: {', '.join(APIS)}")
    return APIS[name]


class ProcessState(msgspec.Struct, frozen=True):
    """Is one process of the lab; ``state`` stopped means: on purpose, by a fault or ``down``."""

    name: str
    pid: int | None
    state: Literal["running", "frozen", "stopped", "gone"]
    log: str


class LabStatus(msgspec.Struct, frozen=True):
    """Is a lab's condition; ``bootstrap`` by alias, ``config`` the mm2.properties every command accepts.

    ``connect``: where its Connect worker answers, "" without one.
    """

    phase: str
    created: str
    kafka_version: str
    folder: str
    config: str
    bootstrap: dict[str, str]
    processes: tuple[ProcessState, ...]
    connect: str = ""


def look(lab: Lab) -> LabStatus:
    """Returns a lab's condition as the system tells it now."""
    state = lab.state
    logs = {broker.name: str(broker.log) for cluster in state.clusters for broker in cluster.brokers}
    rows = []
    for process in state.processes:
        condition = processes.condition(process)
        if condition == "gone" and process.name in state.stopped:
            condition = "stopped"
        log = logs.get(process.name, str(lab.folder / f"{process.name}.log"))
        rows.append(
            ProcessState(process.name, None if condition in ("gone", "stopped") else process.pid, condition, log)
        )
    return LabStatus(
        phase=state.phase,
        created=state.created,
        kafka_version=state.options.kafka_version,
        folder=str(lab.folder),
        config=str(lab.config),
        connect=state.connect.url if state.connect is not None else "",
        bootstrap={cluster.alias: cluster.bootstrap() for cluster in state.clusters},
        processes=tuple(rows),
    )
