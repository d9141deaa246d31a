"""Names of places in a cluster and faults a broker reports for one of them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class TopicPartition(NamedTuple):
    """Names one partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Fault(msgspec.Struct, frozen=True):
    """Is an error a broker (or the client) reports for one item of a request.

    ``number`` is Kafka's error code; numbers below zero are the client's own (no answer, no
    connection). ``name`` is Kafka's constant (``UNKNOWN_MEMBER_ID``). ``retriable``: the same
    request may succeed shortly without anybody's help (Kafka: the RetriableException family).
    """

    number: int
    name: str
    message: str = ""
    retriable: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.message}" if self.message else self.name
