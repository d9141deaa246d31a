"""One heartbeat: a flow was alive at a moment."""

from __future__ import annotations

import struct

import msgspec

from failover.mm2.fields import VERSION, UnknownVersion, encode_string, numbers, required_key, string

_TIMESTAMP = struct.Struct(">q")
_VERSION_0 = struct.Struct(">hq")


class Heartbeat(msgspec.Struct, frozen=True):
    """Says that the flow ``source`` -> ``target`` wrote to its target at ``timestamp`` (epoch milliseconds).

    Only its mirrored copy proves that records travel (MM2: Heartbeat, version 0).
    """

    source: str
    target: str
    timestamp: int

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Heartbeat | None:
        """Reads one record of a heartbeats topic; None for a tombstone.

        Raises DecodeError, and UnknownVersion for a version other than 0.
        """
        key = required_key(key, "heartbeat")
        source, at = string(key, 0, "heartbeat key, source alias")
        target, _ = string(key, at, "heartbeat key, target alias")
        if value is None:
            return None
        version = numbers(VERSION, value, 0, "heartbeat value, version")[0]
        if version != 0:
            raise UnknownVersion(f"heartbeat of {source}->{target}: version {version}", version)
        return cls(source, target, numbers(_TIMESTAMP, value, VERSION.size, "heartbeat value, timestamp")[0])

    def encode_key(self) -> bytes:
        """Gives the record key; raises ValueError when an alias is too long."""
        return encode_string(self.source) + encode_string(self.target)

    def encode_value(self) -> bytes:
        """Gives the record value."""
        return _VERSION_0.pack(0, self.timestamp)
