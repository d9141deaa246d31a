"""What a request is to the connection layer: how it is written in a version both sides speak, how its answer is read.

Every message is coded by hand with ``primitives``, in versions from the one Kafka 2.4 speaks to the newest that changes
something for us. Source of the layouts: Kafka 4.1.1's message schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

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
    """Makes a call: ``write`` fills the body, ``read`` takes the answer's body apart."""

    def encode(version: int) -> Chunks:
        writer = Writer(flexible=version >= flexible_from)
        write(writer, version)
        return [writer.data]

    def decode(version: int, body: memoryview) -> R:
        return read(Reader(body, flexible=version >= flexible_from), version)

    return Call(key, low, high, flexible_from=flexible_from, encode=encode, decode=decode, throttle_at=throttle_at)
