"""Tokens: the partitions of a topic that nobody writes to, handed out to the members of a consumer group.

Whoever holds token 0 leads. A process that dies loses its tokens after the session timeout, one that ends in order at
once, and one that is frozen finds out at its first poll (measured on Kafka 4.1.1: tokens move in 5.3 s with a session
of 6 s). Between a pause and that poll it believes to hold what it lost, so ``holds`` also asks how long ago it
polled.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from failover.kafka.admin_convert import fault_of
from failover.kafka.login import token_failure

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    from failover.config.clients import ClientSettings

SESSION_SECONDS = 10.0
_POLL_SECONDS = 0.5
_LOGIN_PAUSE_SECONDS = 1.0
_log = logging.getLogger(__name__)


class Tokens:
    """Is a member of the group from ``start`` to ``close``.

    ``trouble``: why nothing can be held, "" if nothing is known to be wrong. ``session``: seconds; the broker allows 6
    to 1800 unless it is configured otherwise.
    """

    def __init__(self, settings: ClientSettings, *, topic: str, group: str, session: float = SESSION_SECONDS) -> None:
        self.trouble = ""
        self._settings = settings
        self._topic, self._group, self._session = topic, group, session
        self._held: set[int] = set()
        self._polled = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="failover-tokens", daemon=True)

    def start(self) -> None:
        """Joins the group, in a thread of its own."""
        self._thread.start()

    def holds(self, token: int) -> bool:
        """Says whether a token is held, and was within half of the session timeout."""
        return token in self._held and _boot_time() - self._polled < self._session / 2

    def close(self) -> None:
        """Leaves the group, so that the tokens go to another member at once."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(self._session)

    # -- inside ----------------------------------------------------------------------------------

    def _work(self) -> None:
        from confluent_kafka import Consumer

        while (failure := token_failure(self._settings)) is not None:
            self.trouble = failure.message
            if self._end.wait(_LOGIN_PAUSE_SECONDS):
                return
        properties: dict[str, Any] = {
            **self._settings.librdkafka(),
            "group.id": self._group,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": int(self._session * 1000),
            "heartbeat.interval.ms": int(self._session * 250),
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
            "allow.auto.create.topics": False,
            "error_cb": self._complain,
            "logger": logging.getLogger("failover.librdkafka"),
        }
        consumer: Consumer = Consumer(properties)
        consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        try:
            while not self._end.is_set():
                message = consumer.poll(_POLL_SECONDS)
                self._polled = _boot_time()
                if message is not None and (error := message.error()) is not None:
                    self._complain(error)
        finally:
            self._held.clear()
            consumer.close()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)
        self._held.update(each.partition for each in partitions)
        self.trouble = ""

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._held.difference_update(each.partition for each in partitions)
        consumer.incremental_unassign(partitions)

    def _complain(self, error: KafkaError) -> None:
        self.trouble = str(fault_of(error))


def _boot_time() -> float:
    """Is a clock that goes on while the machine sleeps, where there is one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)
