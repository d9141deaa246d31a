"""The name under which a worker of `failover replicate` signs what it keeps. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

HEADER: Final = "failover"
_NAME = re.compile(r"[\w.-]{1,253} \(process \d{1,10}(?:, shard \d{1,2}/\d{1,2})?\)", re.ASCII)


class _Signed(msgspec.Struct):
    w: str = ""


_decoder = msgspec.json.Decoder(_Signed)


def usual_name(name: str) -> str:
    """Gives a worker's name; "" where it is in words that no worker uses."""
    return name if _NAME.fullmatch(name) else ""


def signed_by(headers: Iterable[tuple[str, bytes | None]]) -> str:
    """Gives the worker that wrote a record; "" where it does not say, as MirrorMaker 2 does not."""
    content = next((value for name, value in reversed(tuple(headers)) if name == HEADER), None)
    if content is None:
        return ""
    try:
        return usual_name(_decoder.decode(content).w)
    except ValueError:  # msgspec's own errors and UnicodeDecodeError are both ones
        return ""
