"""Lengths of time as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_ISO = re.compile(r"P(?=[\dT])(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d*)?)S)?)?", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)")


def parse_duration(text: str) -> float | None:
    """Reads ``90``, ``90s``, ``5m``, ``2h`` or ``1h30m`` as seconds; None for anything else."""
    text = text.strip().lower()
    parts = _PART.findall(text)
    units = [unit for _, unit in parts]
    if "".join(number + unit for number, unit in parts) != text or (units != [""] and "" in units) or not units:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def parse_iso_duration(text: str) -> float | None:
    """Reads ``PT24H`` or ``P7DT1.5S`` as seconds, as Java's ``Duration.parse`` does; None for anything else.

    What is negative is none: Kafka refuses it where it takes such a text.
    """
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    return sum(float(number or 0) * unit for number, unit in zip(found.groups(), (86400, 3600, 60, 1), strict=True))
