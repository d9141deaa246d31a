"""The world of the oracle seen from its target: copies that were consumed, originals that are unread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from failover.model import Translation, Window, WindowRequest
from failover.translate.content import run
from failover.translate.inverse_content import InverseQuestion, locate
from failover.translate.sync_rule import LogBounds
from tests.unit.translate.oracle import SOURCE, TARGET, World


def inverse_bounds(world: World) -> LogBounds:
    return LogBounds(
        target_start=world.source_start,
        target_end=len(world.source),
        source_start=world.target_start,
        source_end=len(world.target),
    )


def inverted(
    world: World, copied: Iterable[int], *, shared: bool = False, max_records: int = 200_000
) -> dict[int, Translation]:
    question = InverseQuestion(
        copies=TARGET,
        originals=SOURCE,
        copied=tuple(copied),
        syncs=world.history(),
        bounds=inverse_bounds(world),
        shared=shared,
        max_records=max_records,
    )

    def read(requests: Sequence[WindowRequest]) -> dict[WindowRequest, Window]:
        """Reads as the plan's source and target: the copies are its source."""
        sides = {"source": "target", "target": "source"}
        assert all(request.tp == (TARGET if request.side == "source" else SOURCE) for request in requests)
        found = world.read([request._replace(side=sides[request.side]) for request in requests])
        return {request: found[request._replace(side=sides[request.side])] for request in requests}

    return run({0: locate(question)}, read)[0]


def highest_consumed(world: World, copied: int) -> int:
    """Gives the highest original with a copy below ``copied``, -1 for none; copies since removed count, too."""
    return max((i.offset for i in world.written[:copied] if i is not None and i.life == world.life), default=-1)


def all_true(world: World) -> bool:
    """Says whether each sync that may be used still names a copy of its original (truncated copies may outgrow one)."""
    syncs = world.history()
    if syncs is None:
        return True
    at = [(up, down) for up, down in zip(syncs.ups, syncs.downs, strict=True) if down < len(world.written)]
    return all((item := world.written[down]) is not None and item.offset == up for up, down in at)


def check(world: World, answer: Translation, *, bound: bool = True) -> None:
    """Asserts that nothing beyond the highest consumed original is passed, and that the promise holds."""
    if answer.offset is None:
        assert answer.failure
        return
    copied = answer.upstream
    highest = highest_consumed(world, copied)
    passed = [at for at in range(max(highest + 1, world.source_start), answer.offset) if world.source[at] is not None]
    assert not passed, f"{answer} passes the unread originals {passed}, the last consumed is {highest}"
    assert answer.offset <= len(world.source)
    if bound:
        consumed = {i.offset for i in world.written[:copied] if i is not None and i.life == world.life}
        start = max(answer.offset, world.source_start)
        again = [at for at in range(start, len(world.source)) if at in consumed and world.source[at] is not None]
        assert answer.reread_max is not None
        assert answer.reread is not None
        assert len(again) <= answer.reread_max, f"{answer} reads {again} again"
        assert answer.reread <= answer.reread_max
        assert (answer.precision == "exact") == (answer.reread_max == 0)


__all__ = ["all_true", "check", "highest_consumed", "inverse_bounds", "inverted"]
