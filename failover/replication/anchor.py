"""Where the copying of one source partition stands, as it is kept in Kafka Connect's offsets topic.

The record is the one MirrorSourceConnector would write, so that either side can go on where the other stopped:

    key     ["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"orders"}]
    value   {"offset":41}                                    the last source offset copied
    header  failover: {"v":1,"d":950,"s":…,"t":…,"e":7,"w":…} what MirrorMaker 2 has no place for

Connect looks at key and value alone (KafkaOffsetBackingStore), so the header is lost as soon as MirrorMaker 2 moves the
position, together with the position it belonged to.

At source offset 0 the value is ``{"offset":-1}``: Connect takes any whole number, and to MirrorMaker 2 -1 means no
position at all (MirrorUtils.unwrapOffset gives it for an absent one; from 3.7 on ``auto.offset.reset`` then decides,
before it read from 0). A tombstone would say the same and be compacted away a day later, header and all, and with it
where on the target the copy of a source begins that was made anew.

A position that somebody chose says so in its header, ``{"v":1,"set":true}``: where its copy begins on the target shows
when the copying starts, and all later records name that place (``b``), as what lies below it tells nothing any more.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.mm2.connect_offsets import SourceOffsetKey, decode_offset, decode_offset_key, encode_offset
from failover.mm2.fields import DecodeError, Unreadable
from failover.mm2.worker_name import HEADER, usual_name
from failover.model.names import TopicPartition

Headers = tuple[tuple[str, bytes | None], ...]

_NOTHING_COPIED = -1
_LAST = (1 << 63) - 2
_ID_BYTES = len(NO_TOPIC_ID)
_Offset = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Anchor(msgspec.Struct, frozen=True):
    """Says that what is to be copied of the source below ``upstream`` is on the target below ``downstream``.

    ``upstream``: the next source offset to read. ``downstream``: the next target offset; None where MirrorMaker 2
    moved the position, which keeps none. ``source_topic_id``, ``target_topic_id``: of which topics of these names it
    is true (16 bytes), ``NO_TOPIC_ID`` where that is not known. ``leader_epoch``: that of the source record before
    ``upstream``, -1 where it is not known. ``since``: the target offset at which the copying began when the position
    was last chosen by somebody, None where it never was: what lies below is no witness. ``chosen``: it was chosen and
    nothing has been copied since; ``upstream`` 0 then means to begin as if nothing ever had been.
    """

    upstream: int
    downstream: int | None = None
    source_topic_id: bytes = NO_TOPIC_ID
    target_topic_id: bytes = NO_TOPIC_ID
    leader_epoch: int = -1
    since: int | None = None
    chosen: bool = False


class _Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """Is the header's content; topic ids as Kafka prints them. A reader ignores fields it does not know."""

    v: Literal[1]
    d: _Offset | None = None
    s: str = ""
    t: str = ""
    e: Annotated[int, msgspec.Meta(ge=-1, le=(1 << 31) - 1)] = -1
    w: str = ""
    b: _Offset | None = None
    set: bool = False


_decode_kept = msgspec.json.Decoder(_Kept).decode


def anchor_key(connector: str, source: str, tp: TopicPartition) -> bytes:
    """Gives the record key of a source partition; ``source`` is the source's alias."""
    return SourceOffsetKey(connector, source, tp.topic, tp.partition).encode()


def anchored_partition(key: bytes | None, connector: str, source: str) -> TopicPartition | None:
    """Gives the source partition a record's key names; None for every key under which this connector finds nothing.

    That is also a key that means the same and is written otherwise: Connect compares bytes.
    """
    try:
        found = decode_offset_key(key)
    except DecodeError:
        return None
    if not isinstance(found, SourceOffsetKey) or (found.connector, found.cluster) != (connector, source):
        return None
    return TopicPartition(found.topic, found.partition) if found.encode() == key else None


def encode_anchor(anchor: Anchor, worker: str = "") -> tuple[bytes, Headers]:
    """Gives value and headers of the record; one without ``downstream`` becomes a record as MirrorMaker 2 writes it.

    ``worker``: who writes it, for people.
    """
    value = encode_offset(anchor.upstream - 1)
    if anchor.downstream is None and not anchor.chosen:
        return value, ()
    kept = _Kept(
        1,
        anchor.downstream,
        _id_text(anchor.source_topic_id),
        _id_text(anchor.target_topic_id),
        anchor.leader_epoch,
        worker,
        anchor.since,
        anchor.chosen,
    )
    return value, ((HEADER, msgspec.json.encode(kept)),)


def decode_anchor(value: bytes | None, headers: Iterable[tuple[str, bytes | None]] = ()) -> Anchor | None:
    """Reads value and headers of a record; None where they say that there is no position.

    A header that is damaged, of another version or somebody else's counts as none, and the record as MirrorMaker
    2's. Raises DecodeError where Connect itself could not make a position of the value.
    """
    offset = decode_offset(value)
    if offset is None:
        return None
    if offset > _LAST:
        raise DecodeError(f"Connect offset value: {offset} is no offset", Unreadable.NOT_AN_OFFSET)
    kept = _kept(headers)
    if offset < 0 and (kept is None or offset != _NOTHING_COPIED):
        return None
    upstream = offset + 1
    if kept is None:
        return Anchor(upstream)
    header, source_id, target_id = kept
    if header.set:
        return Anchor(upstream, chosen=True)
    return Anchor(upstream, header.d, source_id, target_id, header.e, header.b)


def writer_of(headers: Iterable[tuple[str, bytes | None]]) -> str:
    """Gives the worker that wrote a record; "" where it does not say, or in words that no worker of ours uses."""
    kept = _kept(headers)
    return usual_name(kept[0].w) if kept is not None else ""


def _kept(headers: Iterable[tuple[str, bytes | None]]) -> tuple[_Kept, bytes, bytes] | None:
    """Finds what our header says, the last of several (Kafka: Headers.lastHeader)."""
    content = next((value for name, value in reversed(tuple(headers)) if name == HEADER), None)
    if content is None:
        return None
    try:
        kept = _decode_kept(content)
        return (kept, _id_of(kept.s), _id_of(kept.t)) if kept.set or kept.d is not None else None
    except ValueError:  # msgspec's own errors, UnicodeDecodeError and binascii.Error are all ones
        return None


def _id_text(topic_id: bytes) -> str:
    return "" if topic_id == NO_TOPIC_ID else base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def _id_of(text: str) -> bytes:
    if not text:
        return NO_TOPIC_ID
    topic_id = base64.b64decode(f"{text}==", altchars=b"-_", validate=True)
    if len(topic_id) != _ID_BYTES:
        raise binascii.Error(f"a topic id of {len(topic_id)} bytes")
    return topic_id
