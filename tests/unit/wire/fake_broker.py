"""A broker that answers from a script, over a real socket."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple, Self

from failover.kafka.wire.connection import Connection
from failover.kafka.wire.primitives import Reader, Writer

API_VERSIONS = 18


class Asked(NamedTuple):
    key: int
    version: int
    body: memoryview


Answer = bytes | None
"""None: the connection is closed."""
SILENT = b"silent"


class FakeBroker:
    """``script``: api key → what to answer (a body); offered are the versions in ``offered``."""

    def __init__(
        self,
        script: Mapping[int, Callable[[Asked], Answer]],
        offered: Mapping[int, tuple[int, int]],
        *,
        flexible: Mapping[int, int] | None = None,
        piece: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.tls = tls
        self.script = {API_VERSIONS: self._versions, **script}
        self.offered = {API_VERSIONS: (0, 4), **offered}
        self.flexible = {API_VERSIONS: 3, **(flexible or {})}
        self.piece = piece
        self.asked: list[Asked] = []
        self.connections = 0
        self._writers: list[asyncio.StreamWriter] = []
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        await self._server.wait_closed()
        await asyncio.sleep(0.01)

    def stop_listening(self) -> None:
        """Takes no further connection; as an answer it ends the one that asked."""
        self._server.close()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def left(self) -> None:
        """Waits until every client has ended its connection."""
        await asyncio.gather(*self._serving)

    def order(self) -> list[int]:
        return [asked.key for asked in self.asked]

    def _versions(self, asked: Asked) -> Answer:
        out = Writer(flexible=True)
        out.int16(0)
        out.array(len(self.offered))
        for key, (low, high) in self.offered.items():
            out.int16(key)
            out.int16(low)
            out.int16(high)
            out.tags()
        out.int32(0)
        out.tags()
        return bytes(out.data)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                request = await reader.readexactly(size)
                key, version, correlation, client = struct.unpack_from(">hhih", request)
                at = 10 + max(client, 0)
                flexible = version >= self.flexible.get(key, 1 << 15)
                if flexible:
                    header = Reader(memoryview(request), flexible=True, at=at)
                    header.tags()
                    at = header.at
                asked = Asked(key, version, memoryview(request)[at:])
                self.asked.append(asked)
                answer = self.script[key](asked)
                if answer is None:
                    writer.transport.abort()
                    return
                if answer is SILENT:
                    continue
                head = b"\0" if flexible and key != API_VERSIONS else b""
                body = struct.pack(">i", correlation) + head + answer
                await self._send(writer, struct.pack(">i", len(body)) + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.transport.abort()

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        step = self.piece or len(data)
        for at in range(0, len(data), step):
            writer.write(data[at : at + step])
            await writer.drain()
            if self.piece:
                await asyncio.sleep(0)


@asynccontextmanager
async def saying(said: bytes, *, max_unsent: int = 1 << 20) -> AsyncIterator[Connection]:
    """Gives a connection to a peer that says this at once, reads nothing and keeps quiet."""
    writers: list[asyncio.StreamWriter] = []

    def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(said)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1)
    _, connection = await asyncio.get_running_loop().create_connection(
        lambda: Connection(alias="a", peer="broker 1", client_id="t", silence=5, max_unsent=max_unsent),
        *server.sockets[0].getsockname(),
    )
    try:
        yield connection
    finally:
        connection.close()
        for writer in writers:
            writer.transport.abort()
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0.01)
