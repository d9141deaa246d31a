"""Altering offsets over REST: what Kafka Connect and MirrorMaker 2's three connectors accept, in their words. Pure.

Source of the rules: Kafka's ConnectorOffsets and AbstractHerder, MM2's MirrorUtils and ``alterOffsets`` of the
connectors; codes and texts were taken from a Connect worker of Kafka 4.1.1. Where that answers with the names of its
own Java classes, the code is the same and the text ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from failover.config.mm2_keys import CHECKPOINT, HEARTBEAT, SOURCE
from failover.model.names import TopicPartition
from failover.serve.access import ApiError

Json = dict[str, Any]

ALTERED = "The offsets for this connector have been altered successfully"
RESET = "The offsets for this connector have been reset successfully"

_EMPTY = "Partitions / offsets need to be provided for an alter offsets request"
_LONG, _INT = 1 << 63, 1 << 31
_LAST = _LONG - 1
_KEYS = {
    SOURCE: (("cluster", "topic"), ("partition",)),
    CHECKPOINT: (("group", "topic"), ("partition",)),
    HEARTBEAT: (("sourceClusterAlias", "targetClusterAlias"), ()),
}


class Altered(NamedTuple):
    """Is one partition, in the connector's own keys, with its new offset; None: it is to have none."""

    partition: Json | None
    offset: Json | None


def not_stopped(connector: str) -> ApiError:
    """Says that a connector must be stopped first."""
    return ApiError(
        400,
        "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the"
        f" specified connector by issuing a 'PUT' request to the '/connectors/{connector}/stop' endpoint",
    )


def read_body(text: str) -> list[Altered]:
    """Reads the body of an alter request; raises ``ApiError`` where it has another shape.

    Of a partition that is named twice the last entry counts.
    """
    try:
        body = json.loads(text)
    except ValueError as error:
        raise ApiError(500, f"the body is no JSON: {error}") from None
    if not isinstance(body, dict) or set(body) - {"offsets"}:
        raise ApiError(500, 'the body must be a JSON object with "offsets" and nothing else')
    entries = body.get("offsets")
    if entries is None or entries == []:
        raise ApiError(400, _EMPTY)
    if not isinstance(entries, list):
        raise ApiError(500, '"offsets" must be a list')
    found: dict[str, Altered] = {}
    for entry in entries:
        if not isinstance(entry, dict) or set(entry) - {"partition", "offset"}:
            raise ApiError(500, 'each of "offsets" must be an object with "partition" and "offset" and nothing else')
        partition, offset = entry.get("partition"), entry.get("offset")
        if not all(part is None or isinstance(part, dict) for part in (partition, offset)):
            raise ApiError(500, '"partition" and "offset" must be objects or null')
        for name, value in (offset or {}).items():
            if isinstance(value, int) and not -_LONG <= value < _LONG:
                raise ApiError(
                    500, f"Offsets may only contain primitive types as values, but field {name} is too large"
                )
        found[_identity(partition)] = Altered(partition, offset)
    return list(found.values())


def check(kind: str, entries: Iterable[Altered]) -> None:
    """Has a connector look at what it is to store; raises ``ApiError``. What removes an offset is never refused."""
    strings, numbers = _KEYS[kind]
    for partition, offset in entries:
        if offset is None:
            continue
        if partition is None:
            raise ApiError(500, "Source partitions may not be null")
        shown = _java(partition)
        for key in strings:
            _checked(partition, key, f"Source partition {shown}", "a string", lambda value: isinstance(value, str))
        for key in numbers:
            _checked(partition, key, f"Source partition {shown}", "an integer", lambda value: _whole(value, _INT))
            _not_negative(partition, key, f"Source partition {shown}")
        what = f"Source offset {_java(offset)} for source partition {shown}"
        _checked(offset, "offset", what, "an integer", lambda value: _whole(value, _LAST))
        if kind == SOURCE:
            _not_negative(offset, "offset", what)
        elif offset["offset"] != 0:
            invalid = f"{what} has an invalid value {offset['offset']} for the 'offset' key"
            raise ApiError(500, f"{invalid}; the only accepted value is 0")


def own_place(entry: Altered, source: str) -> TopicPartition | None:
    """Gives the source partition under which the source connector of a cluster looks, None for anything else."""
    match entry.partition:
        case {"cluster": str(cluster), "topic": str(topic), "partition": int(number), **rest} if not rest:
            whole = _whole(number, _INT) and number >= 0
            return TopicPartition(topic, number) if whole and cluster == source and topic else None
    return None


class Stored:
    """Is what a connector's offsets were altered to beyond those it keeps itself; forgotten with the process.

    As with Connect, neither the checkpoint nor the heartbeat connector reads such offsets, and each writes its own
    again once it runs.
    """

    def __init__(self) -> None:
        self._given: dict[str, Json] = {}
        self._gone: set[str] = set()

    def alter(self, entries: Iterable[Altered]) -> None:
        """Notes entries."""
        for partition, offset in entries:
            key = _identity(partition)
            self._given.pop(key, None)
            self._gone.add(key)
            if offset is not None:
                self._given[key] = {"partition": partition, "offset": offset}

    def reset(self, own: Iterable[Json]) -> None:
        """Forgets everything, the connector's own, too."""
        self._given.clear()
        self._gone.update(_identity(each["partition"]) for each in own)

    def shown(self, own: Iterable[Json], *, runs: bool) -> list[Json]:
        """Gives the connector's own offsets and these; while it runs, all of its own."""
        if runs:
            self._gone.clear()
        kept = {_identity(each["partition"]): each for each in own}
        return [*({key: each for key, each in kept.items() if key not in self._gone} | self._given).values()]


def _identity(partition: Json | None) -> str:
    return json.dumps(partition, sort_keys=True)


def _whole(value: object, limit: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit


def _checked(found: Mapping[str, Any], key: str, what: str, kind: str, fits: Callable[[Any], bool]) -> None:
    if key not in found:
        raise ApiError(500, f"{what} is missing the '{key}' key, which is required")
    if not fits(found[key]):
        raise ApiError(
            500, f"{what} has an invalid value {_java(found[key])} for the '{key}' key, which must be {kind}"
        )


def _not_negative(found: Mapping[str, Any], key: str, what: str) -> None:
    if found[key] < 0:
        raise ApiError(500, f"{what} has an invalid value {found[key]} for the '{key}' key, which cannot be negative")


def _java(value: Any) -> str:
    """Shows a value as Java's ``toString`` does."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={_java(value[key])}" for key in sorted(value, key=_place)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_java, value)) + "]"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def _place(key: str) -> int:
    """Gives where Java's HashMap of the usual size has a key, and so in which order it shows several."""
    hashed = 0
    for character in key:
        hashed = (31 * hashed + ord(character)) & 0xFFFFFFFF
    return (hashed ^ hashed >> 16) & 15
