"""Connections of one cluster, one for each broker and purpose.

A broker works through the requests of one connection one after another, so what may hold it (a long poll, a commit that
waits for replication) has a connection of its own. Each is opened by its own task: a broker that takes a connection and
says nothing keeps nobody else waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from failover.errors import ClusterError
from failover.kafka.wire.connection import Connection, ConnectionLost, Pace
from failover.kafka.wire.dial import Address, Dialer

SUSPECT_FOR = 30.0
"""Seconds for which a broker that fell silent is given only ``SUSPECT_SILENCE`` to take a new connection."""
SUSPECT_SILENCE = 1.0


class Node(NamedTuple):
    """Is one broker; ``id`` -1 is a bootstrap address whose broker is not known yet."""

    id: int
    address: Address

    def __str__(self) -> str:
        return f"broker {self.id} at {self.address}" if self.id >= 0 else f"the broker at {self.address}"


class Pool:
    """Opens, keeps and replaces connections. ``silence``: seconds, see ``Connection``."""

    def __init__(self, dialer: Dialer, *, silence: float) -> None:
        self._dialer = dialer
        self._silence = silence
        self._tasks: dict[tuple[Node, str], asyncio.Task[Connection]] = {}
        self._paces: dict[Node, Pace] = {}
        self._suspects: dict[Node, float] = {}
        self._closed = False

    async def get(self, node: Node, purpose: str) -> Connection:
        """Gives the open connection of a broker and purpose, dialling if there is none.

        Raises ``ConnectionLost`` (nothing written) or ``CredentialsRefused``.
        """
        if self._closed:
            # Whoever still waited for an answer when it was closed may come back; nobody would end what it opened.
            raise ConnectionLost(
                f"cluster {self._dialer.alias}: the connections were closed", alias=self._dialer.alias, written=False
            )
        key = node, purpose
        task = self._tasks.get(key)
        if task is None or (
            task.done() and (task.cancelled() or task.exception() is not None or not task.result().open)
        ):
            task = asyncio.get_running_loop().create_task(self._dial(node), name=f"dial {node} for {purpose}")
            # A waiter may be cancelled before the end; then nobody else asks for the exception.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._tasks[key] = task
        return await asyncio.shield(task)

    def connected(self, node: Node, purpose: str) -> bool:
        """Says whether a connection is open and its broker was not found silent lately."""
        task = self._tasks.get((node, purpose))
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return False
        return task.result().open and node not in self._suspects

    def pace(self, node: Node) -> Pace:
        """Gives the throttling state shared by all connections to a broker."""
        return self._paces.setdefault(node, Pace())

    def suspect(self, node: Node) -> None:
        """Notes that a broker fell silent."""
        self._suspects[node] = asyncio.get_running_loop().time() + SUSPECT_FOR

    def drop(self, nodes: Sequence[Node]) -> list[asyncio.Task[Connection]]:
        """Ends the connections to these brokers; gives the tasks that were to open them."""
        keys = [key for key in self._tasks if key[0] in nodes]
        tasks = [self._tasks.pop(key) for key in keys]
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().close()
            task.cancel()
        return tasks

    async def close(self) -> None:
        """Ends all connections; none is opened any more."""
        self._closed = True
        tasks = self.drop([node for node, _ in self._tasks])
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close their sockets in the loop's next turn

    async def _dial(self, node: Node) -> Connection:
        silence = self._silence
        if self._suspects.get(node, 0.0) > asyncio.get_running_loop().time():
            silence = min(silence, SUSPECT_SILENCE)
        try:
            connection = await self._dialer.dial(node.address, peer=str(node), silence=silence, pace=self.pace(node))
        except ClusterError as error:
            if isinstance(error, ConnectionLost) and error.silent:
                self.suspect(node)
            raise
        self._suspects.pop(node, None)
        connection.silence = self._silence
        return connection
