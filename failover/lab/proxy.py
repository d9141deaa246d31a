"""A TCP proxy in front of brokers that cuts and delays where a test asks, request by request.

Runs as a process of its own (``python -m failover.lab.proxy``), steered by ``ProxyControl``.
It understands Kafka's framing only: a request is a length, an api key, a version and a
correlation id; a response a length and a correlation id. Rules are matched in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from failover.lab.ports import LOOPBACK
from failover.lab.proxy_control import Answer, Command, Rule

_HEADER = struct.Struct(">hhi")
_LENGTH = struct.Struct(">i")
_CHUNK = 65536


class Proxy:
    """Passes bytes between clients and brokers, applying its rules."""

    def __init__(self, routes: dict[int, int]) -> None:
        self.routes = routes
        self.rules: list[Rule] = []
        self.closed: set[int] = set()
        self._last_id = 0
        self._open: dict[asyncio.StreamWriter, int] = {}

    def obey(self, command: Command) -> Answer:
        """Carries out one command from the control port."""
        ports = command.ports or tuple(self.routes)
        if command.do == "add" and command.rule is not None:
            self._last_id += 1
            command.rule.id = self._last_id
            self.rules.append(command.rule)
        elif command.do == "clear":
            self.rules.clear()
            self.closed.clear()
        elif command.do == "close":
            self.closed.update(ports)
            self._cut(ports)
        elif command.do == "open":
            self.closed.difference_update(ports)
        elif command.do == "cut":
            self._cut(ports)
        return Answer(rules=tuple(self.rules), connections=len(self._open))

    async def control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one control connection: a JSON command a line, a JSON answer a line."""
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                try:
                    answer = self.obey(msgspec.json.decode(line, type=Command))
                except msgspec.DecodeError as failure:
                    answer = Answer(error=str(failure))
                writer.write(msgspec.json.encode(answer) + b"\n")
                await writer.drain()
        writer.close()

    async def serve(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one client connection until either side ends it or a rule does."""
        if port in self.closed:
            _reset(writer)
            return
        try:
            to_broker = await asyncio.open_connection(LOOPBACK, self.routes[port])
        except OSError:
            _reset(writer)
            return
        self._open[writer] = port
        waiting: dict[int, int] = {}
        pumps = [
            asyncio.create_task(self._requests(port, reader, to_broker[1], waiting)),
            asyncio.create_task(self._answers(port, to_broker[0], writer, waiting)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        del self._open[writer]
        _reset(to_broker[1])
        _reset(writer)

    async def _requests(
        self, port: int, reader: asyncio.StreamReader, broker: asyncio.StreamWriter, waiting: dict[int, int]
    ) -> None:
        while True:
            head = await reader.readexactly(_LENGTH.size + _HEADER.size)
            api, _, correlation = _HEADER.unpack_from(head, _LENGTH.size)
            waiting[correlation] = api
            if not await _pass_on(head, reader, broker, self._rule("request", port, api)):
                return

    async def _answers(
        self, port: int, broker: asyncio.StreamReader, client: asyncio.StreamWriter, waiting: dict[int, int]
    ) -> None:
        while True:
            head = await broker.readexactly(_LENGTH.size + 4)
            (correlation,) = _LENGTH.unpack_from(head, _LENGTH.size)
            api = waiting.pop(correlation, -1)
            if not await _pass_on(head, broker, client, self._rule("answer", port, api)):
                return

    def _rule(self, where: str, port: int, api: int) -> Rule | None:
        return next((rule for rule in self.rules if rule.where == where and rule.take(port, api)), None)

    def _cut(self, ports: Sequence[int]) -> None:
        for writer, port in list(self._open.items()):
            if port in ports:
                _reset(writer)


async def _pass_on(head: bytes, reader: asyncio.StreamReader, out: asyncio.StreamWriter, rule: Rule | None) -> bool:
    """Passes one message on, as far as the rule lets it; returns False when the connection must end."""
    limit: int | None = None
    if rule is not None and rule.action == "delay":
        await asyncio.sleep(rule.seconds)
    elif rule is not None:
        limit = rule.after_bytes
    left: int = _LENGTH.unpack_from(head)[0] + _LENGTH.size
    chunk = head
    while True:
        if limit is not None and len(chunk) >= limit:
            out.write(chunk[:limit])
            await out.drain()
            if rule is not None and rule.action == "hold":
                await asyncio.Event().wait()  # until the client gives up and its connection ends
            return False
        out.write(chunk)
        await out.drain()
        limit = None if limit is None else limit - len(chunk)
        left -= len(chunk)
        if left <= 0:
            return True
        chunk = await reader.read(min(left, _CHUNK))
        if not chunk:
            return False


def _reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection with RST, as a broken network does; what was not sent yet is dropped."""
    transport = writer.transport
    raw: socket.socket | None = transport.get_extra_info("socket")
    if raw is not None and not transport.is_closing():
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def run(control_port: int, routes: dict[int, int]) -> None:
    """Serves until cancelled; ``routes``: the proxy's port to the broker's port."""
    proxy = Proxy(routes)

    def handler(port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError):
                await proxy.serve(port, reader, writer)

        return handle

    servers = [await asyncio.start_server(proxy.control, LOOPBACK, control_port)]
    servers += [await asyncio.start_server(handler(port), LOOPBACK, port) for port in routes]
    await asyncio.gather(*(server.serve_forever() for server in servers))


def main(arguments: Sequence[str]) -> None:
    """Runs the proxy: ``CONTROL_PORT PORT:BROKER_PORT…``."""
    routes = {}
    for route in arguments[1:]:
        port, _, broker = route.partition(":")
        routes[int(port)] = int(broker)
    asyncio.run(run(int(arguments[0]), routes))


if __name__ == "__main__":
    # words after the numbers only mark the process for the lab
    main([argument for argument in sys.argv[1:] if argument[0].isdigit()])
