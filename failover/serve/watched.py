"""Keeps a board true to what runs: flows open, fail and begin again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from failover.config.flow import FlowConfig
from failover.config.mm2_keys import CHECKPOINT, HEARTBEAT, SOURCE
from failover.errors import ClusterUnreachable, Refused
from failover.model.names import TopicPartition
from failover.replication.heartbeats import Heartbeats
from failover.replication.parts import Parts
from failover.replication.snapshot import flow_now
from failover.serve.board import Board, FlowEntry, Open


class Watched:
    """Keeps the board of a process's flows up to date.

    ``flows`` are copied, of ``alone`` only the heartbeats are written. ``restart`` has a flow that ended begin again;
    ``again``: one whose cluster does not answer is tried again by itself.
    """

    def __init__(
        self,
        flows: Iterable[FlowConfig],
        alone: Iterable[FlowConfig],
        restart: Callable[[str], None],
        *,
        again: bool,
    ) -> None:
        entries = [FlowEntry(flow) for flow in flows]
        entries += [FlowEntry(flow, (HEARTBEAT,)) for flow in alone]
        self.board = Board(entries, restart)
        self._again = again

    def __getitem__(self, flow: str) -> FlowEntry:
        return self.board.flows[flow]

    def opened(self, flow: str) -> Callable[[Parts], None]:
        """Gives what is to be called with a flow's parts."""
        return lambda parts: self[flow].opened(_open(parts))

    def beats(self, flow: str) -> Callable[[Heartbeats], None]:
        """Gives what is to be called with what writes a flow's heartbeats."""

        def note(beats: Heartbeats) -> None:
            self[flow].heartbeat = lambda: beats.written

        return note

    async def run(self, flow: str, work: Awaitable[None]) -> None:
        """Awaits a flow's end and notes how it failed. Raises what it raises."""
        try:
            await work
        except ClusterUnreachable as error:
            self[flow].failed(error, again=self._again)
            raise
        except Exception as error:
            self[flow].failed(error, again=False)
            raise


def _open(parts: Parts) -> Open:
    tracker = parts.checkpointing.tracker
    works = {SOURCE}
    if parts.heartbeats is not None:
        works.add(HEARTBEAT)
    if tracker is not None:
        works.add(CHECKPOINT)

    def positions() -> Mapping[str, Iterable[TopicPartition]]:
        return {} if tracker is None else {group: tracker.positions.get(group, {}) for group in sorted(tracker.tracked)}

    def topics() -> Mapping[str, Sequence[str]]:
        kept = parts.options.exact
        return {
            SOURCE: list(parts.topics.targets().values()),
            CHECKPOINT: [
                topic.name for topic in (kept, parts.options.checkpoints) if kept is not None and topic is not None
            ],
            HEARTBEAT: [parts.flow.internal.heartbeats],
        }

    async def choose(wanted: Mapping[TopicPartition, int] | None) -> bool:
        engine = parts.engine
        if engine.share.shared:
            raise Refused(
                f"flow {parts.flow.source}->{parts.flow.target} is shared by several workers ({engine.share}), and the"
                " others would not know",
                hint="stop them all, run one by itself, and choose there",
            )
        if not engine.hold.halted:
            return False
        await engine.starter.choose(dict.fromkeys(engine.starter.known(), 0) if wanted is None else wanted)
        return True

    look, copied = partial(flow_now, parts), parts.engine.starter.positions
    return Open(look, positions, topics, frozenset(works), parts.cluster_id, copied, choose, parts.engine.share.leads)
