"""A fetch session: a broker remembers what is fetched, and only differences are sent (Kafka: KIP-227). Pure."""

from __future__ import annotations

from failover.kafka.wire.fetch import FetchAnswer, FetchPartition
from failover.model.names import TopicPartition

_SESSION_NOT_FOUND = 70
_LAST_EPOCH = (1 << 31) - 1
_NEW = (0, 0)


class FetchSession:
    """Keeps what one broker is to send and what of it the broker knows already.

    Invariant: after each answer without an error the broker's picture equals ``wanted`` as of the request, so the next
    request holds what changed since and nothing else. Any error, a lost connection or a broker without room for a
    session makes the next request a full one.
    """

    def __init__(self) -> None:
        self.wanted: dict[TopicPartition, FetchPartition] = {}
        self.names: dict[bytes, str] = {}
        self._known: dict[TopicPartition, FetchPartition] = {}
        self._changed: dict[TopicPartition, None] = {}
        self._place = _NEW

    def want(self, asked: FetchPartition) -> None:
        """Fetches a partition from now on, or from another place."""
        tp = TopicPartition(asked.topic, asked.partition)
        if self.wanted.get(tp) != asked:
            self.wanted[tp] = asked
            self.names[asked.topic_id] = asked.topic
            self._changed[tp] = None

    def drop(self, tp: TopicPartition) -> None:
        """Fetches a partition no more."""
        if self.wanted.pop(tp, None) is not None:
            self._changed[tp] = None

    def next(self) -> tuple[tuple[int, int], list[FetchPartition], list[FetchPartition]]:
        """Gives (session id, epoch), the partitions to send and those to forget."""
        if self._place[1] == 0:
            self._known = dict(self.wanted)
            self._changed.clear()
            return self._place, list(self.wanted.values()), []
        asked, forgotten = [], []
        for tp in self._changed:
            wanted, known = self.wanted.get(tp), self._known.get(tp)
            if wanted is None:
                if known is not None:
                    forgotten.append(known)
                    del self._known[tp]
                continue
            if known is not None and known.topic_id != wanted.topic_id:
                forgotten.append(known)
            if known != wanted:
                asked.append(wanted)
                self._known[tp] = wanted
        self._changed.clear()
        return self._place, asked, forgotten

    def answered(self, answer: FetchAnswer) -> bool:
        """Notes an answer; False: the session was refused, and the next request begins a new one."""
        if answer.error:
            self._place = _NEW if answer.error == _SESSION_NOT_FOUND else (self._place[0], 0)
            return False
        if not answer.session_id:
            self._place = _NEW
        elif self._place[1] == _LAST_EPOCH:
            self._place = answer.session_id, 1
        else:
            self._place = answer.session_id, self._place[1] + 1
        return True

    def lost(self) -> None:
        """Notes that no answer will come: what the broker knows is uncertain."""
        self._place = self._place[0], 0
