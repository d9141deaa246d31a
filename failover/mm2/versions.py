"""MirrorMaker 2 releases, where its behaviour depends on them."""

from __future__ import annotations

from typing import TypeAlias

Mm2Version: TypeAlias = tuple[int, ...]
"""A release, ``(3, 9)`` or ``(3, 5, 1)``. Without a patch number it stands for the newest patch of that minor."""

_NEWEST_PATCH = 1 << 30


def at_least(version: Mm2Version | None, *release: int) -> bool:
    """Says whether ``version`` is ``release`` or newer; None stands for the newest release there is."""
    if version is None:
        return True
    padded = version if len(version) > 2 else (*version, _NEWEST_PATCH)
    return padded >= release
