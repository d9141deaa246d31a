"""Tokens: the partitions of a topic that nobody writes to, handed out to the members of a consumer group.

Whoever holds token 0 leads. A process that dies loses its tokens after the session timeout, one that ends in order at
once, and one that is frozen finds out at its first poll (measured on Kafka 4.1.1: tokens move in 5.3 s with a session
of 6 s). Between a pause and that poll it believes to hold what it lost, so ``holds`` and ``fresh`` ask how long ago it
polled.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
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
    to 1800 unless it is configured otherwise. ``client``: by which the group names its members. ``revoked`` is called
    in the member's thread when tokens are to go to another member, who gets them when it returns.
    """

    def __init__(
        self,
        settings: ClientSettings,
        *,
        topic: str,
        group: str,
        session: float = SESSION_SECONDS,
        client: str = "",
    ) -> None:
        self.trouble = ""
        self.session = session
        self.revoked: Callable[[], None] = lambda: None
        self._settings = settings
        self._topic, self._group, self._client = topic, group, client
        self._held: dict[int, int] = {}
        self._assignments = 0
        self._polled = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="failover-tokens", daemon=True)

    def start(self) -> None:
        """Joins the group, in a thread of its own."""
        self._thread.start()

    def holds(self, token: int) -> bool:
        """Says whether a token is held, and was within half of the session timeout."""
        return token in self._held and self.fresh()

    def fresh(self) -> bool:
        """Says whether the group was heard of within half of the session timeout."""
        return _boot_time() - self._polled < self.session / 2

    def held(self) -> dict[int, int]:
        """Gives the tokens held as last heard, each with the number of the assignment it came by."""
        return self._held.copy()

    def close(self) -> None:
        """Leaves the group, so that the tokens go to another member at once."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(self.session)

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
            "session.timeout.ms": int(self.session * 1000),
            "heartbeat.interval.ms": int(self.session * 250),
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
            "allow.auto.create.topics": False,
            "error_cb": self._complain,
            "logger": logging.getLogger("failover.librdkafka"),
        }
        if self._client:
            properties["client.id"] = self._client
        consumer: Consumer = Consumer(properties)
        consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._give, on_lost=self._lose)
        try:
            while not self._end.is_set():
                message = consumer.poll(_POLL_SECONDS)
                self._polled = _boot_time()
                if message is not None and (error := message.error()) is not None:
                    self._complain(error)
        finally:
            self._held = {}
            consumer.close()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)
        self._assignments += 1
        self._held = self._held | {each.partition: self._assignments for each in partitions}
        self.trouble = ""

    def _give(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._forget(partitions)
        self.revoked()  # before they are unassigned: from then on another member may have them
        consumer.incremental_unassign(partitions)

    def _lose(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._forget(partitions)
        consumer.incremental_unassign(partitions)

    def _forget(self, partitions: list[TopicPartition]) -> None:
        gone = {each.partition for each in partitions}
        self._held = {token: by for token, by in self._held.items() if token not in gone}

    def _complain(self, error: KafkaError) -> None:
        self.trouble = str(fault_of(error))


def _boot_time() -> float:
    """Is a clock that goes on while the machine sleeps, where there is one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)
