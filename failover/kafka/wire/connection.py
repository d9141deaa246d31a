"""One connection to one broker: framing, pipelining, bounded buffers, and a clear end.

Kafka answers the requests of one connection in the order they were sent, each answer prefixed with its length and the
request's correlation id. Answers are received into a buffer of their own size, so a large one is never copied; the
memoryview handed out owns it.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple, cast

from failover.config.tls import tls_hint
from failover.errors import BrokerError, ClusterError, ClusterUnreachable, CredentialsRefused

API_VERSIONS_KEY = 18
MAX_ANSWER = 1 << 30
"""Longer answers are taken for bytes of another protocol (Kafka's own limit is 2 GiB, fetches ask for far less)."""

_FRAME = struct.Struct(">i")
_HEADER = struct.Struct(">ihhi")
_TLS_ALERT = b"\x15\x03"  # as a length it would be 352 MB


class ConnectionLost(ClusterUnreachable):
    """Says that a connection broke, was refused or fell silent.

    ``written``: the request may have reached the broker, so a write's outcome is unknown. ``silent``: the broker
    holds the connection but did not answer in time.
    """

    def __init__(self, message: str, *, alias: str, written: bool = True, silent: bool = False, hint: str = "") -> None:
        super().__init__(message, alias=alias, hint=hint)
        self.written = written
        self.silent = silent


class Pace:
    """Keeps the moment before which a broker wants no further request (Kafka: KIP-219, throttle_time_ms)."""

    __slots__ = ("quiet_until",)

    def __init__(self) -> None:
        self.quiet_until = 0.0

    def throttle(self, milliseconds: int, now: float) -> None:
        if milliseconds > 0:
            self.quiet_until = max(self.quiet_until, now + milliseconds / 1000)


class _Pending(NamedTuple):
    correlation: int
    answer: asyncio.Future[memoryview]
    overdue_from: float  # silence counts from here: when it was sent, plus what it may wait at the broker
    tagged_header: bool


class Connection(asyncio.BufferedProtocol):
    """Is one connection; made by ``failover.kafka.wire.dial.dial``.

    ``silence``: seconds without a byte while an answer is due after which it counts as lost; an answer that arrives
    slowly is no silence. ``max_unsent``: bytes the transport may hold unsent before ``ready`` waits: queued
    megabytes cost a copy on each send (measured: 2.07 CPU-s/GB with 40 MB queued against 0.38 with 10).
    ``versions``: api key → (lowest, highest). ``renew``: repeats the SASL exchange; called from ``ready`` once
    ``renew_at`` (loop time) has come.
    """

    def __init__(
        self,
        *,
        alias: str,
        peer: str,
        client_id: str,
        silence: float,
        pace: Pace | None = None,
        max_unsent: int = 4 << 20,
    ) -> None:
        self.alias = alias
        self.peer = peer
        self.silence = silence
        self.pace = pace or Pace()
        self.versions: dict[int, tuple[int, int]] = {}
        self.renew: Callable[[], Coroutine[Any, Any, None]] | None = None
        self.renew_at = float("inf")
        self._client_id = struct.pack(">h", len(client_id.encode())) + client_id.encode()
        self._max_unsent = max_unsent
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._failure: Callable[[bool], ClusterError] | None = None
        self._pending: deque[_Pending] = deque()
        self._correlation = 0
        self._heard = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._writable: asyncio.Future[None] | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._size = bytearray(_FRAME.size)
        self._into = memoryview(self._size)
        self._body: memoryview | None = None
        self._filled = 0

    # -- what callers use ------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Says whether requests can be sent."""
        return self._transport is not None and self._failure is None

    @property
    def in_flight(self) -> int:
        """Is the number of requests without an answer yet."""
        return len(self._pending)

    def version(self, key: int, low: int, high: int) -> int:
        """Chooses the highest version of an API that both sides speak within [low, high].

        Raises ``BrokerError`` UNSUPPORTED_VERSION (35) when there is none.
        """
        offered = self.versions.get(key)
        if offered is None or offered[0] > high or offered[1] < low:
            spoken = "not at all" if offered is None else f"{offered[0]} to {offered[1]}"
            raise BrokerError(
                f"{self.peer} of cluster {self.alias} speaks Kafka API {key} {spoken}, needed is {low} to {high}",
                number=35,
                name="UNSUPPORTED_VERSION",
                hint="brokers from Kafka 2.4 on are supported",
            )
        return min(high, offered[1])

    async def ready(self) -> None:
        """Waits until a request may be sent: throttling over, credentials fresh, the unsent bytes within their bound.

        Between its return and ``submit`` there must be no await. Raises ``ClusterError`` when the connection is lost.
        """
        while True:
            if self._failure is not None:
                raise self._failure(False)
            delay = self.pace.quiet_until - self._loop.time()
            if delay > 0:
                await asyncio.sleep(delay)
            elif self._renewal is not None:
                await asyncio.shield(self._renewal)
            elif self._loop.time() >= self.renew_at and self.renew is not None:
                self._renewal = self._loop.create_task(self.renew())
                self._renewal.add_done_callback(self._renewed)
            elif self._writable is not None:
                await asyncio.shield(self._writable)
            else:
                return

    def submit(
        self,
        key: int,
        version: int,
        chunks: Iterable[bytes | bytearray | memoryview],
        *,
        flexible: bool,
        patience: float = 0.0,
    ) -> asyncio.Future[memoryview]:
        """Sends a request at once and returns the future of its answer's body.

        ``chunks``: the body; its parts must not change until the answer is there. ``patience``: seconds the broker
        may hold the request on purpose (a long poll), added to the accepted silence.
        """
        if self._failure is not None or self._transport is None:
            raise self._failure(False) if self._failure else self._lost("is not connected", written=False)
        self._correlation = self._correlation + 1 & 0x7FFFFFFF
        parts = [self._client_id, b"\0" if flexible else b"", *chunks]
        size = _HEADER.size - _FRAME.size + sum(map(len, parts))
        now = self._loop.time()
        answer: asyncio.Future[memoryview] = self._loop.create_future()
        self._pending.append(_Pending(self._correlation, answer, now + patience, flexible and key != API_VERSIONS_KEY))
        self._transport.writelines([_HEADER.pack(size, key, version, self._correlation), *parts])
        if self._watch is None:
            self._watch = self._loop.call_later(self.silence + patience, self._look)
        return answer

    async def request(
        self,
        key: int,
        version: int,
        chunks: Iterable[bytes | bytearray | memoryview],
        *,
        flexible: bool,
        patience: float = 0.0,
        deadline: float | None = None,
    ) -> memoryview:
        """Sends a request and waits for its answer's body, ``deadline`` seconds at most.

        A request given up does no harm to the others: its answer is dropped when it comes. Raises
        ``ConnectionLost``, or ``CredentialsRefused`` when the broker ended the TLS session.
        """
        await self.ready()
        answer = self.submit(key, version, chunks, flexible=flexible, patience=patience)
        try:
            async with asyncio.timeout(deadline):
                return await answer
        except TimeoutError as error:
            raise self._lost(f"did not answer within {deadline:g} s", silent=True) from error

    async def exchange(self, key: int, version: int, body: bytes | bytearray) -> memoryview:
        """Sends one message of a SASL exchange; unlike ``request`` it does not wait for the exchange to end."""
        return await self.submit(key, version, [body], flexible=False)

    def error(self, what: str) -> ConnectionLost:
        """Makes the error of an answer that cannot be used; ``what`` follows the peer's name."""
        return self._lost(what)

    def close(self, reason: str = "was closed by this client") -> None:
        """Ends the connection; pending requests fail with ``reason``."""
        self._fail(lambda written: self._lost(reason, written=written))

    # -- asyncio.BufferedProtocol ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._max_unsent)
        self._heard = self._loop.time()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the protocol's signature
        return self._into[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        self._heard = self._loop.time()
        if self._filled < len(self._into):
            return
        self._filled = 0
        if self._body is None:
            (size,) = _FRAME.unpack(self._size)
            if not _FRAME.size <= size <= MAX_ANSWER or self._size.startswith(_TLS_ALERT):
                self._fail(lambda _: self._foreign(bytes(self._size)))
                return
            # bytearray(size) zeroes what is overwritten anyway; at memory speed that is below a tenth
            # of the receive itself.
            self._body = self._into = memoryview(bytearray(size))
            return
        body, self._body, self._into = self._body, None, memoryview(self._size)
        self._answered(body)

    def eof_received(self) -> bool | None:
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ssl.SSLError):
            reason = exc.reason or str(exc)
            self._fail(lambda _: refused_tls(self.alias, self.peer, reason))
        elif exc is not None:
            self._fail(lambda written: self._lost(f"lost the connection: {exc}", written=written))
        else:
            self._fail(
                lambda written: self._lost(
                    "closed the connection",
                    written=written,
                    hint="does its listener speak the configured security.protocol?",
                )
            )

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None:
            writable, self._writable = self._writable, None
            writable.set_result(None)

    # -- inside ----------------------------------------------------------------------------------

    def _answered(self, body: memoryview) -> None:
        (correlation,) = _FRAME.unpack_from(body)
        if not self._pending or self._pending[0].correlation != correlation:
            due = self._pending[0].correlation if self._pending else "none"
            self._fail(
                lambda written: self._lost(f"answered request {correlation} while {due} was due", written=written)
            )
            return
        request = self._pending.popleft()
        start = _FRAME.size
        if request.tagged_header:
            start = _skip_tags(body, start)
        if not request.answer.done():
            request.answer.set_result(body[start:])

    def _look(self) -> None:
        """Runs when silence may have lasted too long; re-arms itself instead of being moved at each byte."""
        self._watch = None
        if not self._pending or self._failure is not None:
            return
        since = max(self._heard, self._pending[0].overdue_from, self.pace.quiet_until)
        left = since + self.silence - self._loop.time()
        if left > 0.001:
            self._watch = self._loop.call_later(left, self._look)
        else:
            self._fail(lambda written: self._lost(f"was silent for {self.silence:g} s", written=written, silent=True))

    def _renewed(self, task: asyncio.Task[None]) -> None:
        self._renewal = None
        if not task.cancelled() and (error := task.exception()) is not None:
            reason = error
            self._fail(
                lambda written: (
                    reason if isinstance(reason, CredentialsRefused) else self._lost(str(reason), written=written)
                )
            )

    def _fail(self, failure: Callable[[bool], ClusterError]) -> None:
        if self._failure is None:
            self._failure = failure
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self._renewal is not None:
            self._renewal.cancel()
        if self._transport is not None:
            self._transport.abort()
        self.resume_writing()
        while self._pending:
            answer = self._pending.popleft().answer
            if not answer.done():
                answer.set_exception(self._failure(True))

    def _lost(self, what: str, *, written: bool = True, silent: bool = False, hint: str = "") -> ConnectionLost:
        return ConnectionLost(
            f"cluster {self.alias}: {self.peer} {what}", alias=self.alias, written=written, silent=silent, hint=hint
        )

    def _foreign(self, start: bytes) -> ClusterError:
        if start.startswith(_TLS_ALERT):
            return CredentialsRefused(
                f"cluster {self.alias}: {self.peer} speaks TLS, this client was told to speak plain text",
                alias=self.alias,
                hint="set security.protocol to SSL or SASL_SSL",
            )
        return self._lost(
            f"does not speak Kafka's protocol (it began with {start!r})",
            hint="is this the address of a Kafka listener?",
        )


def refused_tls(alias: str, peer: str, reason: str) -> CredentialsRefused:
    """Builds the error of a TLS session that did not come about or was ended by the broker."""
    return CredentialsRefused(
        f"cluster {alias}: no TLS session with {peer}: {reason.replace('_', ' ').lower()}",
        alias=alias,
        hint=tls_hint(reason, alias),
    )


def _skip_tags(body: memoryview, at: int) -> int:
    if body[at] == 0:
        return at + 1
    from failover.kafka.wire.primitives import Reader

    reader = Reader(body, flexible=True, at=at)
    reader.tags()
    return reader.at
