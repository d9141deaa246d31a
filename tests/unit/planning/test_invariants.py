"""What holds for every input: no commit outside the log, none back, none beyond what is known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from failover.model import Precision, Proof, Translation
from failover.model.cluster import ClusterState
from failover.model.plan import Action, PlanOptions, Verdict
from failover.planning.build import exit_code
from tests.unit.planning.worlds import checkpoint, plan, world

offsets = st.integers(0, 40)
maybe = st.none() | offsets


@st.composite
def translations(draw):
    upstream, offset = draw(offsets), draw(maybe)
    if offset is None:
        return Translation(upstream, None, Precision.NONE, Proof.NONE, failure="older-than-first-sync")
    precision = draw(st.sampled_from([Precision.EXACT, Precision.BOUNDED, Precision.CONSERVATIVE]))
    reread = 0 if precision is Precision.EXACT else draw(maybe)
    bound = 0 if precision is Precision.EXACT else (None if reread is None else reread + draw(offsets))
    return Translation(upstream, offset, precision, Proof.SYNC_BELOW, reread, bound)


@st.composite
def situations(draw):
    start, target_start = draw(offsets), draw(offsets)
    numbers = range(draw(st.integers(1, 3)))
    some = lambda values: {n: v for n in numbers if (v := draw(st.none() | values)) is not None}  # noqa: E731
    snapshot = world(
        partitions=len(numbers),
        source=draw(st.sampled_from(list(ClusterState))),
        source_commits=some(offsets),
        target_commits=some(offsets),
        checkpoints=some(st.builds(checkpoint, offsets, offsets)),
        translations=some(translations()),
        source_log=(start, start + draw(offsets)),
        target_log=(target_start, target_start + draw(offsets)),
        group_offsets_synced=draw(st.booleans()),
    )
    missing = draw(st.sampled_from(["leave", "earliest", "latest", "fail"]))
    options = PlanOptions(
        missing=missing,
        precision=draw(st.sampled_from(["exact", "bounded", "conservative"])),
        all_or_nothing=draw(st.booleans()),
        allow_rewind=draw(st.booleans()),
        allow_skip=missing == "latest" or draw(st.booleans()),
        allow_unverified=draw(st.booleans()),
    )
    return snapshot, options


@given(situations())
def test_every_decision_keeps_the_rules(situation):
    snapshot, options = situation
    made = plan(snapshot, options)
    (group,) = made.groups
    assert group.verdict in Verdict
    assert exit_code(made) in (0, 3, 4)
    unknown = sum(p.skipped is None and p.reason != "source-never-committed" for p in group.partitions)
    assert made.summary.unknown == (0 if group.verdict is Verdict.REFUSED else unknown)
    for p in group.partitions:
        assert (p.offset is not None) is (p.action is Action.COMMIT)
        assert (p.position_after.by == "plan") is (p.action is Action.COMMIT)
        assert (p.ahead is not None) is (p.reason == "would-rewind")
        if p.position_after.by == "auto.offset.reset":
            assert p.skipped is None
            assert p.position_after.offset is None
        if p.offset is None or p.target_start is None or p.target_end is None:
            continue
        assert p.target_start <= p.offset <= p.target_end
        if not options.allow_rewind and p.target_committed is not None:
            assert p.offset > p.target_committed
        if p.skipped:
            assert options.allow_skip or options.allow_unverified
            assert p.precision == "none"
        if p.reread is not None and p.reread_max is not None:
            assert 0 <= p.reread <= p.reread_max <= p.target_end - p.offset
        # Beyond every known place of the group's position only by the log start or a named override.
        places = [
            place
            for tp, t in snapshot.translations["payments"].items()
            if tp.partition == p.partition and (place := t.offset) is not None
        ] + [c.downstream for tp, c in snapshot.checkpoints["payments"].items() if tp.partition == p.partition]
        if p.reason == "translated" and p.source_committed != 0:
            assert p.offset in places


@given(situations())
def test_ready_means_nothing_is_passed_over(situation):
    snapshot, options = situation
    (group,) = plan(snapshot, options).groups
    if group.verdict is Verdict.READY:
        assert all(p.skipped == 0 or p.reason == "source-never-committed" for p in group.partitions)
        assert all(p.action is not Action.REFUSE for p in group.partitions)
    if group.verdict in (Verdict.REFUSED, Verdict.NOTHING):
        assert not any(p.action is Action.COMMIT for p in group.partitions)
