"""Which transactional batches a read_committed consumer does not see."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from failover.kafka.wire.batches import TRANSACTIONAL, Batch, decode

_ABORT = b"\0\0"
_PRODUCER = Struct(">q")
_PRODUCER_AT = 43


def is_abort(key: bytes | None) -> bool:
    """Says whether the key of a control record marks an abort (Kafka: ControlRecordType)."""
    return key is not None and key[2:4] == _ABORT


class AbortedTransactions:
    """Follows the aborted transactions of one fetch answer from batch to batch.

    ``listed``: the answer's (producer id, first offset) pairs. The rule is that of Kafka's Java consumer
    (CompletedFetch): a transaction is aborted from its first offset to its producer's next abort marker, batches
    between them that are not transactional are not part of it, and each fetch answer starts anew, since it lists
    every aborted transaction that reaches into it.
    """

    def __init__(self, listed: Iterable[tuple[int, int]]) -> None:
        self._later = sorted(((first, producer) for producer, first in listed), reverse=True)
        self._producers: set[int] = set()

    def covers(self, producer_id: int, last_offset: int) -> bool:
        """Says whether a transactional data batch, the next in the log, belongs to an aborted transaction."""
        self._begin(last_offset)
        return producer_id in self._producers

    def end(self, producer_id: int, last_offset: int) -> None:
        """Notes an abort marker, the next batch in the log."""
        self._begin(last_offset)
        self._producers.discard(producer_id)

    def hides(self, batch: Batch) -> bool:
        """Takes the next batch of the log and says whether a read_committed consumer sees nothing of it."""
        if batch.magic < 2:
            return False
        producer_id = _PRODUCER.unpack_from(batch.data, _PRODUCER_AT)[0]
        if batch.control:
            if any(is_abort(record.key) for record in decode(batch)):
                self.end(producer_id, batch.next_offset - 1)
            return True
        return bool(batch.attributes & TRANSACTIONAL) and self.covers(producer_id, batch.next_offset - 1)

    def __copy__(self) -> AbortedTransactions:
        twin = AbortedTransactions(())
        twin._later, twin._producers = self._later.copy(), self._producers.copy()
        return twin

    def _begin(self, last_offset: int) -> None:
        while self._later and self._later[-1][0] <= last_offset:
            self._producers.add(self._later.pop()[1])
