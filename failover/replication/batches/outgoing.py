"""What is sent to the target, and the sender's mark on it."""

from __future__ import annotations

import enum
from struct import Struct

import msgspec

from failover.kafka.wire.batches import TRANSACTIONAL
from failover.replication.batches.crc import carried

DELETE_HORIZON = 0x40
"""Says that the cleaner put the moment from which tombstones go in the base timestamp's place (Kafka: KIP-534)."""

_NO_OFFSET, _NO_EPOCH = bytes(8), b"\xff" * 4
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_PRODUCER = Struct(">qhi")  # producer id, epoch, base sequence
_CRC_AT, _CRC_FROM, _PRODUCER_AT = 17, 21, 43
_FIXED = 57  # where the fields that are changed end
_SEQUENCES = 1 << 31


class Kind(enum.Enum):
    """Says what was done to the source's bytes."""

    PASSED = "passed"
    COALESCED = "coalesced"
    RECODED = "recoded"


class Outgoing(msgspec.Struct, frozen=True):
    """Is one batch for the target: consecutive data records of one source partition.

    ``first_source_offset``, ``last_source_offset``: where its first and last record lie on the source.
    ``next_source_offset``: where the source is read on once it is acknowledged; beyond last + 1 where nothing for the
    target follows it. ``records``: how many target offsets it takes. ``newest_timestamp``: epoch ms. ``data``: the
    whole batch, writable, ``stamp``ed before it is sent and unchanged until acknowledged; a passed one keeps the
    memory of its fetch answer alive.
    """

    first_source_offset: int
    last_source_offset: int
    next_source_offset: int
    records: int
    newest_timestamp: int
    data: bytearray | memoryview
    kind: Kind


def stamp(data: bytearray | memoryview, producer_id: int, epoch: int, sequence: int) -> None:
    """Makes a checked batch its sender's, in place: base offset 0, no leader epoch, not transactional.

    The CRC is carried over, not made anew, so it still proves the records to be those the source's producer summed
    up, and a batch may be stamped again, after a change of epoch, at any time before it is sent.
    ``sequence``: that of its first record (see ``next_sequence``).
    """
    old = bytes(data[_CRC_FROM:_FIXED])
    (attributes,) = _ATTRIBUTES.unpack_from(old)
    data[:8] = _NO_OFFSET
    data[12:16] = _NO_EPOCH
    _ATTRIBUTES.pack_into(data, _CRC_FROM, attributes & ~(TRANSACTIONAL | DELETE_HORIZON))
    _PRODUCER.pack_into(data, _PRODUCER_AT, producer_id, epoch, sequence)
    (crc,) = _CRC.unpack_from(data, _CRC_AT)
    _CRC.pack_into(data, _CRC_AT, carried(crc, old, bytes(data[_CRC_FROM:_FIXED]), len(data) - _FIXED))


def next_sequence(sequence: int, records: int) -> int:
    """Gives the sequence after a batch; after 2 ** 31 - 1 comes 0 (Kafka: DefaultRecordBatch.incrementSequence)."""
    return (sequence + records) % _SEQUENCES
