"""What the real MirrorMaker 2 left in each hard scenario, translated again and judged record by record."""

from __future__ import annotations

import functools
import random
from pathlib import Path

import msgspec
import pytest

from failover.lab.capture import Capture, read_capture
from failover.model import Precision, Translation
from failover.translate.mm2_rule import Untranslatable, offset_sync_store
from tests.examples import EXAMPLES
from tests.formats.replay import Replay, partitions

CAPTURES = {path.stem: path for path in (Path(__file__).parent / "captures").glob("*.capture")}
SCENARIOS = (
    *("lagging", "transactional", "committed", "compacted", "restarted", "torn"),
    *("expired", "recreated", "identical"),
)
NEVER_KILLED = {"lagging", "transactional", "committed", "compacted", "expired", "recreated"}
"""Where each source record was copied once, or its first copies are gone with the topic that held them."""

GROUPS = 20
"""Committed offsets in one question, as of twenty groups."""


@functools.cache
def load(name: str) -> Capture:
    return read_capture(CAPTURES[name])


@pytest.fixture(params=SCENARIOS)
def capture(request: pytest.FixtureRequest) -> Capture:
    return load(request.param)


def replays(capture: Capture) -> list[Replay]:
    return [Replay(capture, tp) for tp in partitions(capture)]


def moments(capture: Capture, *, count: int) -> list[Replay]:
    """Gives the scenario as it was at arbitrary moments of the copying, each partition at its own."""
    pick = random.Random(capture.scenario)
    found = []
    for whole in replays(capture):
        between = range(whole.target.start + 1, whole.target.end)
        found += [Replay(capture, whole.source_tp, until=until) for until in pick.sample(between, count)]
    return found


def test_every_scenario_has_its_capture() -> None:
    assert set(CAPTURES) == set(SCENARIOS)
    sizes = [path.stat().st_size for path in CAPTURES.values()]
    assert max(sizes) < 100_000
    assert sum(sizes) < 600_000


def test_the_captures_hold_what_makes_translating_hard() -> None:
    """A scenario that lost its difficulty when it was recorded would prove nothing."""

    def all_of(name: str) -> list[Replay]:
        return replays(load(name))

    for replay in all_of("committed"):
        assert len(replay.target.ids) < len(replay.source.ids) < replay.source.end
    for name in ("restarted", "torn"):
        for replay in all_of(name):
            assert len(set(replay.target.ids)) < len(replay.target.ids)
            assert replay.syncs is not None
            assert len(replay.syncs.starts) > 1
    started, shortened = all_of("expired")
    assert started.source.start > 0 == started.target.start
    assert shortened.target.start > shortened.source.start > 0
    [again] = all_of("recreated")
    assert again.syncs is not None
    assert again.syncs.voided > 0
    assert set(again.source.ids) > set(again.target.ids)
    [same] = all_of("identical")
    assert len({record[1:] for record in same.records("source")}) == 1


@pytest.mark.parametrize("questions", [max(3, EXAMPLES // 6)])
def test_with_records_compared_no_group_offset_skips_or_reads_again(capture: Capture, questions: int) -> None:
    for replay in replays(capture):
        every = replay.every_offset()
        step = len(every) // GROUPS
        for first in range(0, step, max(1, step // questions)):
            for answer in replay.located(every[first::step]).values():
                replay.check(answer)
                assert (answer.precision, answer.reread_max) == (Precision.EXACT, 0), answer


def test_by_syncs_alone_no_group_offset_skips_or_passes_its_bound(capture: Capture) -> None:
    for replay in replays(capture):
        for upstream in replay.every_offset():
            replay.check(replay.by_syncs(upstream))


@pytest.mark.parametrize("source", [True, False], ids=["both sides", "target alone"])
def test_at_any_moment_of_the_copying_nothing_is_skipped_and_bounds_hold(capture: Capture, source: bool) -> None:
    pick = random.Random(7)
    for replay in moments(capture, count=max(2, EXAMPLES // 20)):
        upstreams = sorted(pick.sample(replay.every_offset(), GROUPS))
        for upstream, answer in replay.located(upstreams, source=source).items():
            replay.check(answer)
            if source and capture.scenario in NEVER_KILLED:
                assert answer.offset is not None
                assert replay.reread(answer.offset, upstream) == 0, answer
        for upstream in upstreams:
            replay.check(replay.by_syncs(upstream))


@pytest.mark.parametrize("behind", [1, 30, 150])
def test_with_the_mirror_a_little_behind_nothing_avoidable_is_read_again(capture: Capture, behind: int) -> None:
    pick = random.Random(behind)
    for whole in replays(capture):
        replay = Replay(capture, whole.source_tp, until=whole.target.end - behind)
        for upstream, answer in replay.located(pick.sample(replay.every_offset(), GROUPS)).items():
            replay.check(answer)
            assert answer.offset is not None
            # records that are all alike may be copies made twice near the end: then the bound must do
            if not capture.alike:
                least = replay.reread(replay.true_position(upstream), upstream)
                assert replay.reread(answer.offset, upstream) == least, answer


def test_mm2s_own_rule_gives_the_checkpoints_the_real_one_wrote_and_none_where_it_wrote_none(capture: Capture) -> None:
    newest = {(c.group, c.topic, c.partition): (c.upstream, c.downstream) for c in capture.checkpoints}
    told = 0
    for tp in partitions(capture):
        store = offset_sync_store()
        store.sync_all((s.upstream, s.downstream) for s in capture.syncs if (s.topic, s.partition) == tp)
        store.finish_initial_read()
        for commit in capture.commits:
            if (commit.topic, commit.partition) == tp:
                place = commit.group, capture.remote(commit.topic), commit.partition
                answer = store.translate(commit.offset)
                told += place in newest
                if place in newest:
                    assert (commit.offset, answer) == newest[place]
                else:
                    assert answer is Untranslatable.TOO_FAR_IN_THE_PAST, commit
    assert told == len(newest) > 5


def test_the_judge_tells_a_skip_and_a_broken_bound() -> None:
    replay = replays(load("restarted"))[0]
    upstream = 2_000
    [good] = replay.located([upstream]).values()
    assert good.offset is not None
    replay.check(good)

    def wrong(offset: int, most: int) -> Translation:
        return msgspec.structs.replace(good, offset=offset, reread_max=most)

    with pytest.raises(AssertionError, match="passes the true position"):
        replay.check(wrong(good.offset + 1, 0))
    before = good.offset - 40
    again = replay.reread(before, upstream)
    assert again == 40
    replay.check(wrong(before, again))
    with pytest.raises(AssertionError, match="reads 40 again"):
        replay.check(wrong(before, again - 1))
