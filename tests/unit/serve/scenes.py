"""Flows that are not there: their states as plain values, and a server that answers for them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from failover.config.load import load_config
from failover.config.mm2_keys import CHECKPOINT, HEARTBEAT, SOURCE
from failover.model.names import TopicPartition
from failover.replication.snapshot import CheckpointsNow, FlowNow, PartitionNow, ShareNow
from failover.replication.tally import Spread
from failover.serve.board import Board, FlowEntry, Open
from failover.serve.connect_api import ConnectApi
from failover.serve.metrics import Metrics
from failover.serve.server import application
from failover.serve.settings import RestSettings

R = TypeVar("R")

NOW = 1_700_000_000.0
SECRET = "hunter2-never-shown"
CONFIG = f"""
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
A->B.topics = orders
tasks.max = 4
A.security.protocol = SASL_SSL
A.sasl.mechanism = PLAIN
A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{SECRET}";
B.ssl.truststore.password = {SECRET}
failover.rest.token = {SECRET}
"""
LOCAL = RestSettings("127.0.0.1", 8083)


def partition(
    topic: str = "orders", number: int = 0, *, upstream: int = 42, lag: float = 0.0, **changes: Any
) -> PartitionNow:
    """Is a partition of which 40 records were copied."""
    found = PartitionNow(
        TopicPartition(topic, number),
        TopicPartition(f"A.{topic}", number),
        upstream,
        lag,
        3.5 if lag else 0.0,
        open=True,
        reason="",
        polled=41,
        copied=40,
        copied_bytes=4000,
        age=Spread(5.0, 1.0, 9.0, 4.0),
        latency=Spread(7.0, 2.0, 11.0, 6.0),
    )
    return found._replace(**changes)


def checkpoints(exact_at: Mapping[str, int] | None = None, **changes: Any) -> CheckpointsNow:
    """Is a tracker that has just looked."""
    found = CheckpointsNow(
        leader=True,
        cycled=int(NOW * 1000) - 1000,
        exact_at=exact_at or {"billing": int(NOW * 1000) - 2000, "young": 0},
        ready=1,
        precisions={"exact": 3, "bounded": 1},
        interval=5.0,
        latency=Spread(20.0, 10.0, 30.0, 15.0),
    )
    return msgspec.structs.replace(found, **changes)


def flow(*partitions: PartitionNow, **changes: Any) -> FlowNow:
    """Is a flow at work."""
    parts = partitions or (partition(), partition(number=1, lag=7.0), partition("pay.ments", upstream=-1, lag=math.nan))
    found = FlowNow(
        source="A",
        target="B",
        at=NOW,
        partitions=parts,
        halted=False,
        polled=123,
        polled_bytes=12300,
        left_out=3,
        pending=3,
        records=120,
        bytes=12000,
        batches={"passed": 10, "recoded": 2},
        sizes=Spread(10.0, 1.0, 50.0, 10.0),
        faults={("target", "NOT_LEADER_OR_FOLLOWER"): 2, ("source", "NO_ANSWER"): 1},
        heard={"source": NOW - 1, "target": NOW - 2},
        buffer_used=300,
        buffer_size=1000,
        commits=(9, 1, Spread(4.0, 2.0, 8.0, 5.0)),
        heartbeat=int(NOW * 1000) - 500,
        copied_heartbeat=int(NOW * 1000) - 1500,
        checkpoints=checkpoints(),
        share=ShareNow("dr-1 (process 7)", "", tuple(range(1, 65)), True),
    )
    return msgspec.structs.replace(found, **changes)


class Choices:
    """Takes what is chosen; ``answer``: whether it is done, or what is raised."""

    def __init__(self) -> None:
        self.made: list[Mapping[TopicPartition, int] | None] = []
        self.answer: bool | Exception = True

    async def choose(self, wanted: Mapping[TopicPartition, int] | None) -> bool:
        if isinstance(self.answer, Exception):
            raise self.answer
        self.made.append(wanted)
        return self.answer


def entry(tmp_path: Path, seen: FlowNow | None = None, choices: Choices | None = None) -> FlowEntry:
    """Is the flow A->B of ``CONFIG``, open unless ``seen`` is None."""
    choices = choices or Choices()
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG)
    (config,) = load_config(path).enabled_flows
    found = FlowEntry(config)
    found.began = NOW - 1000
    if seen is not None:
        found.opened(
            Open(
                look=lambda now: msgspec.structs.replace(seen, at=now, heard={"source": now - 1, "target": now - 2}),
                positions=lambda: {"billing": [TopicPartition("A.orders", 0)]},
                topics=lambda: {
                    SOURCE: ["A.orders"],
                    CHECKPOINT: ["A.checkpoints.internal"],
                    HEARTBEAT: ["heartbeats"],
                },
                works=frozenset((SOURCE, CHECKPOINT, HEARTBEAT)),
                cluster_id="cluster-of-B",
                copied=lambda: {part.source: part.upstream for part in seen.partitions},
                choose=choices.choose,
            )
        )
    return found


def board(tmp_path: Path, seen: FlowNow | None = None, restarted: list[str] | None = None) -> Board:
    """Is a board of that flow."""
    return Board([entry(tmp_path, seen)], (restarted if restarted is not None else []).append)


def asked(board: Board, ask: Callable[[TestClient[Any, Any]], Awaitable[R]], settings: RestSettings = LOCAL) -> R:
    """Has ``ask`` talk to a server for a board; gives what it gives."""
    api = ConnectApi(board, worker="127.0.0.1:8083", clock=lambda: NOW)
    metrics = Metrics(board, clock=lambda: NOW)
    app = application(
        settings, metrics=metrics.render, health=lambda: board.health, failed=lambda: board.failed, routes=api.routes()
    )
    return ask_app(app, ask)


def ask_app(app: web.Application, ask: Callable[[TestClient[Any, Any]], Awaitable[R]]) -> R:
    """Has ``ask`` talk to a server; gives what it gives."""

    async def run() -> R:
        async with TestClient(TestServer(app)) as client:
            return await ask(client)

    return asyncio.run(run())
