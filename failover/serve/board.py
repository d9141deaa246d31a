"""What runs in this process, as those who ask over HTTP see it: flows and the three connectors of each."""

from __future__ import annotations

import enum
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from failover.config.flow import FlowConfig
from failover.config.mm2_keys import CHECKPOINT, CONNECTOR_CLASSES, CONNECTORS, HEARTBEAT, SOURCE
from failover.errors import FailoverError
from failover.model.names import TopicPartition
from failover.replication.snapshot import FlowNow
from failover.replication.switch import Switch, Target
from failover.serve.offsets import Stored


class State(enum.Enum):
    """Is what Kafka Connect calls a connector's or a task's state."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"


class Open(NamedTuple):
    """Is a flow whose clusters have answered.

    ``look`` gives its state at a time (epoch seconds). ``positions`` gives groups with the target partitions of which
    there are exact checkpoints. ``topics``: by connector, what it writes to on the target. ``works``: the connectors
    that are not switched off by a setting. ``cluster_id``: the target's. ``copied``: by source partition, the offset at
    which it goes on. ``choose`` has partitions go on at other ones, 0 being where a new one begins, None all of them
    there; it gives False, and does nothing, unless all of the copying has been let go. ``leads``: this process does
    what only one of several workers does.
    """

    look: Callable[[float], FlowNow]
    positions: Callable[[], Mapping[str, Iterable[TopicPartition]]]
    topics: Callable[[], Mapping[str, Sequence[str]]]
    works: frozenset[str]
    cluster_id: str | None
    copied: Callable[[], Mapping[TopicPartition, int]]
    choose: Callable[[Mapping[TopicPartition, int] | None], Awaitable[bool]]
    leads: Callable[[], bool] = lambda: True


class FlowEntry:
    """Is one flow. ``kinds``: its connectors. ``failure``: what it failed with last, "" while it works.

    ``ended``: it is not tried again by itself. ``heartbeat``: gives the last heartbeat's timestamp (epoch ms) of a flow
    that copies nothing.
    """

    def __init__(self, config: FlowConfig, kinds: Sequence[str] = CONNECTORS) -> None:
        self.config = config
        self.kinds = tuple(kinds)
        self.switches = {kind: Switch() for kind in kinds}
        self.stored = {kind: Stored() for kind in kinds}
        self.began = time.time()
        self.open: Open | None = None
        self.failure = ""
        self.ended = False
        self.heartbeat: Callable[[], int | None] | None = None

    @property
    def name(self) -> str:
        """Gives ``A->B``."""
        return self.config.name

    def opened(self, found: Open) -> None:
        """Notes that its clusters answer."""
        self.open, self.failure, self.ended = found, "", False

    def failed(self, error: BaseException, *, again: bool) -> None:
        """Notes why it has ended; ``again``: it is tried again."""
        self.open, self.ended = None, not again
        self.failure = f"{error}; {error.hint}" if isinstance(error, FailoverError) and error.hint else str(error)

    def look(self, now: float) -> FlowNow | None:
        """Gives its state, None while it is not at work."""
        return self.open.look(now) if self.open is not None else None


class Connector(NamedTuple):
    """Is one connector of a flow; ``kind``: source, checkpoint or heartbeat."""

    name: str
    kind: str
    flow: FlowEntry

    @property
    def switch(self) -> Switch:
        """Gives what is wanted of it."""
        return self.flow.switches[self.kind]

    @property
    def stored(self) -> Stored:
        """Gives what its offsets were altered to."""
        return self.flow.stored[self.kind]

    @property
    def class_name(self) -> str:
        """Gives MirrorMaker 2's Java class."""
        return CONNECTOR_CLASSES[self.kind]

    @property
    def state(self) -> State:
        """Gives its state."""
        if self.flow.failure:
            return State.FAILED if self.flow.ended else State.RESTARTING
        if self.flow.open is None and self.flow.heartbeat is None:
            return State.UNASSIGNED
        return State(self.switch.reached.value)

    @property
    def tasks(self) -> int:
        """Gives how many tasks it has here: one, unless it was stopped, is switched off or is another worker's."""
        flow = self.flow.open
        off = flow is not None and (self.kind not in flow.works or (self.kind != SOURCE and not flow.leads()))
        return 0 if off or self.switch.let_go else 1

    @property
    def stopped(self) -> bool:
        """Says whether it is stopped, and is to stay so."""
        return self.switch.target is Target.STOPPED and self.state is State.STOPPED


class Board:
    """Is all that runs. ``restart`` has a flow that has ended begin again."""

    def __init__(self, flows: Iterable[FlowEntry], restart: Callable[[str], None] = lambda _: None) -> None:
        self.flows = {flow.name: flow for flow in flows}
        self.restart = restart
        self.connectors = {
            each.name: each
            for flow in self.flows.values()
            for kind in flow.kinds
            for each in [Connector(f"{flow.name}.{CONNECTOR_CLASSES[kind].rpartition('.')[2]}", kind, flow)]
        }

    @property
    def health(self) -> str:
        """Says ``healthy``, ``starting`` or ``unhealthy``: some flow has failed, or waits to be tried again."""
        flows = self.flows.values()
        if any(flow.failure for flow in flows):
            return "unhealthy"
        copying = [flow for flow in flows if SOURCE in flow.kinds]
        return "healthy" if all(flow.open is not None for flow in copying) else "starting"

    @property
    def failed(self) -> list[str]:
        """Names the flows that have failed, or wait to be tried again."""
        return [name for name, flow in self.flows.items() if flow.failure]

    @property
    def cluster_id(self) -> str:
        """Gives the id of the first target that is known."""
        known = (flow.open.cluster_id for flow in self.flows.values() if flow.open is not None)
        return next((each for each in known if each), "")


__all__ = ["CHECKPOINT", "HEARTBEAT", "SOURCE", "Board", "Connector", "FlowEntry", "Open", "State"]
