"""Batches in pieces, for a target that takes none so large."""

from __future__ import annotations

from collections.abc import Iterable

from failover.kafka.wire.batches import decoding_errors, records_of, split
from failover.replication.batches.assembly import Assembly, Limits
from failover.replication.batches.outgoing import Kind, Outgoing

_CODEC = 0x07


def cut(batches: Iterable[Outgoing], limits: Limits) -> tuple[Outgoing, ...]:
    """Gives the batches with those in pieces that were passed as they are and exceed ``limits.batch_bytes``.

    Before they are stamped. One that cannot be decoded stays whole: the source let its producer write it so.
    """
    made: list[Outgoing] = []
    for batch in batches:
        if batch.kind is not Kind.PASSED or batch.records == 1 or len(batch.data) <= limits.batch_bytes:
            made.append(batch)
            continue
        mark = len(made)
        try:
            [whole] = split(memoryview(batch.data))
            pieces = Assembly(whole.attributes & _CODEC, Kind.RECODED, limits, 0, made)
            pieces.add(records_of(whole))
            pieces.finish(batch.next_source_offset)
        except decoding_errors():
            made[mark:] = [batch]
    return tuple(made)
