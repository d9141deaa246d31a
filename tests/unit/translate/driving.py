"""Asks a world for content translations, as an inventory would."""

from __future__ import annotations

from collections.abc import Iterable

from failover.model import Translation
from failover.translate.content import Question, locate, run
from tests.unit.translate.oracle import SOURCE, TARGET, World


def located(
    world: World, upstreams: Iterable[int], *, source: bool = True, max_records: int = 200_000
) -> dict[int, Translation]:
    question = Question(
        source=SOURCE,
        target=TARGET,
        upstreams=tuple(upstreams),
        syncs=world.history(),
        bounds=world.bounds(source=source),
        source_readable=source,
        max_records=max_records,
    )
    return run({0: locate(question)}, world.read)[0]
