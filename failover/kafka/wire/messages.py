"""What a request is to the connection layer, and the bridge to kafka-python's generated message classes.

kafka-python's ``kafka.protocol`` encodes and decodes without I/O; it serves requests that are not hot, and is imported
where one is made. Messages whose fields it cannot carry unharmed (offset metadata that is not UTF-8) or does not know
(the newer group descriptions) are coded by hand with ``primitives``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from failover.kafka.wire.primitives import Reader, Writer

R = TypeVar("R")

Chunks = Sequence[bytes | bytearray | memoryview]


class Call(Generic[R]):
    """Is one request: its API, the versions it can be encoded in, and how its answer is read.

    ``flexible_from``: the first version with tagged fields. ``throttle_at``: where in the answer the int32 of
    throttle_time_ms lies, None if it has none.
    """

    def __init__(
        self,
        key: int,
        low: int,
        high: int,
        *,
        flexible_from: int,
        encode: Callable[[int], Chunks],
        decode: Callable[[int, memoryview], R],
        throttle_at: int | None = 0,
    ) -> None:
        self.key = key
        self.low = low
        self.high = high
        self.flexible_from = flexible_from
        self.encode = encode
        self.decode = decode
        self.throttle_at = throttle_at


def written(
    key: int,
    low: int,
    high: int,
    *,
    flexible_from: int,
    write: Callable[[Writer, int], None],
    read: Callable[[Reader, int], R],
    throttle_at: int | None = 0,
) -> Call[R]:
    """Makes a call that is coded by hand: ``write`` fills the body, ``read`` takes the answer's body apart."""

    def encode(version: int) -> Chunks:
        writer = Writer(flexible=version >= flexible_from)
        write(writer, version)
        return [writer.data]

    def decode(version: int, body: memoryview) -> R:
        return read(Reader(body, flexible=version >= flexible_from), version)

    return Call(key, low, high, flexible_from=flexible_from, encode=encode, decode=decode, throttle_at=throttle_at)


def generated(
    request: Any,
    response: Any,
    low: int,
    high: int,
    fields: Mapping[str, Any],
    *,
    throttle_at: int | None = 0,
) -> Call[Any]:
    """Makes a call from a pair of kafka-python's message classes; ``fields``: the request's."""
    first_flexible = request._flexible_versions[0]
    return Call(
        request.API_KEY,
        low,
        min(high, request.max_version),
        flexible_from=first_flexible if first_flexible >= 0 else 1 << 15,
        encode=lambda version: [request[version](**fields).encode()],
        decode=lambda version, body: response.decode(body, version=version),
        throttle_at=throttle_at,
    )
