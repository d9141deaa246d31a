"""Where a copied record came from, in headers of its own: an option of ``replicate``.

Whoever compares a copy with its original leaves them out; MirrorMaker 2 has no such headers.
"""

from __future__ import annotations

from typing import Final

from failover.model.names import TopicPartition
from failover.model.records import Record

PREFIX: Final = "failover.source."

Header = tuple[str, bytes | None]


def provenance(tp: TopicPartition, offset: int, timestamp: int) -> list[Header]:
    """Gives the headers of a copy of the source's record; numbers as decimal text, the timestamp in epoch ms."""
    return [
        (f"{PREFIX}topic", tp.topic.encode()),
        (f"{PREFIX}partition", b"%d" % tp.partition),
        (f"{PREFIX}offset", b"%d" % offset),
        (f"{PREFIX}timestamp", b"%d" % timestamp),
    ]


def without_provenance(record: Record) -> Record:
    """Gives the record as it was written, without any such headers, those of earlier copies included."""
    if not any(name.startswith(PREFIX) for name, _ in record.headers):
        return record
    return record._replace(headers=tuple(header for header in record.headers if not header[0].startswith(PREFIX)))
