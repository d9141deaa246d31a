"""Appends a few records to a topic of this tool's own, through one librdkafka producer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from failover.errors import BrokerError, ClusterUnreachable, NotAuthorized
from failover.kafka.admin_convert import fault_of
from failover.kafka.login import client_properties
from failover.kafka.port import APPEND_SECONDS
from failover.model.names import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

    from failover.config.clients import ClientSettings

_TOPIC_DENIED = 29


class Appender:
    """Holds the producer, made when the first record is appended. Calls may come from several threads."""

    def __init__(self, alias: str, settings: ClientSettings) -> None:
        self._alias = alias
        self._settings = settings
        self._producer: Producer | None = None

    def append(self, partition: TopicPartition, records: Sequence[tuple[bytes | None, bytes]]) -> int:
        """Appends records and gives the offset of the last one; see ``failover.kafka.port.Cluster.append_records``."""
        ended: list[tuple[KafkaError | None, Message[Any, Any]]] = []
        producer = self._open()
        for key, value in records:
            producer.produce(
                partition.topic,
                value,
                key,
                partition.partition,
                on_delivery=lambda error, message: ended.append((error, message)),
            )
        # librdkafka ends each record at its own time limit and tells; the extra second lets it
        producer.flush(APPEND_SECONDS + 1)
        for error, _ in ended:
            if error is not None:
                raise self._error(partition, error)
        if len(ended) < len(records):
            raise ClusterUnreachable(
                f"cluster {self._alias}: no answer to an append to {partition} for {APPEND_SECONDS:g} s",
                alias=self._alias,
            )
        return max(message.offset() or 0 for _, message in ended)

    def close(self) -> None:
        """Drops the producer; what it could not append within its time limit is given up."""
        self._producer = None

    def _open(self) -> Producer:
        if self._producer is None:
            from confluent_kafka import Producer

            properties: dict[str, Any] = {
                **client_properties(self._settings, alias=self._alias),
                "acks": "all",
                "linger.ms": 0,
                "compression.type": "zstd",
                "message.timeout.ms": int(APPEND_SECONDS * 1000),
                "logger": logging.getLogger("failover.librdkafka"),
            }
            self._producer = Producer(properties)
        return self._producer

    def _error(self, partition: TopicPartition, error: KafkaError) -> Exception:
        fault = fault_of(error)
        where = f"cluster {self._alias}: nothing can be appended to {partition}: {fault}"
        if fault.number == _TOPIC_DENIED:
            return NotAuthorized(where, alias=self._alias, hint=f"grant WRITE on topic {partition.topic}")
        if fault.number < 0:
            return ClusterUnreachable(where, alias=self._alias)
        return BrokerError(where, number=fault.number, name=fault.name)
