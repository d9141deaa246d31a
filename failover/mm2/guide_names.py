"""Topic names as people type them: the real ones, those of other flows, and those that guides about MM2 made up."""

from __future__ import annotations

import re
from typing import NamedTuple

from failover.mm2.internal_topics import InternalTopics

CHECKPOINTS, OFFSET_SYNCS, HEARTBEATS, POSITIONS = "checkpoints", "offset-syncs", "heartbeats", "positions"
KINDS = (CHECKPOINTS, OFFSET_SYNCS, HEARTBEATS, POSITIONS)

_MADE_UP = (
    (re.compile(r"_*mm2[-_.]heartbeats?"), HEARTBEATS),
    (re.compile(r"_*mm2[-_.]offsets?[-_.]syncs?"), OFFSET_SYNCS),
    (re.compile(r"_*mm2[-_.]checkpoints?"), CHECKPOINTS),
    (re.compile(r"mirrormaker2-cluster-.+-offsets"), POSITIONS),
)
_OTHER_FLOW = (
    (re.compile(r"mm2-offset-syncs\..+\.internal"), OFFSET_SYNCS),
    (re.compile(r".+\.checkpoints\.internal"), CHECKPOINTS),
    (re.compile(r"mm2-exact-checkpoints\..+\.internal"), CHECKPOINTS),
    (re.compile(r"mm2-offsets\..+\.internal"), POSITIONS),
    (re.compile(r"(.+\.)?heartbeats"), HEARTBEATS),
)


class Meant(NamedTuple):
    """Is the kind of records that a typed word stands for; ``note`` says what to know about the word, "" if nothing."""

    kind: str
    note: str = ""


def kind_of(word: str, internal: InternalTopics) -> Meant | None:
    """Finds what a kind's or a topic's name stands for in a flow; None when nothing of MM2's is called so.

    Guides write ``mm2-offsets.<source>.internal`` for checkpoints, ``__mm2_heartbeats``, ``__mm2_offsets_sync`` and
    ``mirrormaker2-cluster-<target>-offsets``; MM2 has no topics of the last three names (measured on Kafka 4.1.1).
    """
    if word in KINDS:
        return Meant(word)
    if word == internal.connect_offsets:
        return Meant(
            POSITIONS,
            f"{word} is Kafka Connect's store of positions, never to be edited by hand; some guides take it for the"
            f" checkpoints, which are in {internal.checkpoints}: failover inspect checkpoints",
        )
    for name, kind in _names(internal):
        if word == name:
            return Meant(kind)
    for pattern, kind in _MADE_UP:
        if pattern.fullmatch(word):
            return Meant(kind, f"no MirrorMaker 2 makes a topic {word}, though guides name it; {_real(kind, internal)}")
    for pattern, kind in _OTHER_FLOW:
        if pattern.fullmatch(word):
            flow = f"{internal.source}->{internal.target}"
            return Meant(kind, f"{word} is not of the flow {flow}; {_real(kind, internal)}")
    return None


def _names(internal: InternalTopics) -> tuple[tuple[str, str], ...]:
    return (
        (internal.checkpoints, CHECKPOINTS),
        (internal.exact_checkpoints, CHECKPOINTS),
        (internal.offset_syncs, OFFSET_SYNCS),
        (internal.heartbeats, HEARTBEATS),
        (internal.remote_heartbeats, HEARTBEATS),
    )


def _real(kind: str, internal: InternalTopics) -> str:
    real = {
        CHECKPOINTS: f"checkpoints are in {internal.checkpoints} on {internal.target}",
        OFFSET_SYNCS: f"offset syncs are in {internal.offset_syncs} on {internal.offset_syncs_on}",
        HEARTBEATS: f"heartbeats are in {internal.heartbeats}, their mirrored copies in {internal.remote_heartbeats} on"
        f" {internal.target}",
        POSITIONS: f"positions are in {internal.connect_offsets} on {internal.target}",
    }
    return real[kind]
