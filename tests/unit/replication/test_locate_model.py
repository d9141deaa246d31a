"""Where the copying of a partition goes on: random logs, copied by random runs, killed anywhere."""

from __future__ import annotations

from hypothesis import event, given, settings
from hypothesis import strategies as st

from failover.replication.anchor import Anchor
from failover.replication.locate_answer import Located
from tests.examples import EXAMPLES
from tests.unit.replication.log_pair import Copying, Datum, MemoryLog, ask

KINDS = {"distinct": 1 << 30, "few": 3, "alike": 1}


@st.composite
def sources(draw: st.DrawFn, kind: str, *, most: int = 160) -> MemoryLog:
    """Gives a source of records, markers, and aborted records."""
    log = MemoryLog(start=draw(st.sampled_from([0, 0, 7])))
    variety = KINDS[kind]
    number = 0
    for _ in range(draw(st.integers(1, 12))):
        what = draw(st.sampled_from(["data", "data", "data", "aborted", "marker"]))
        if what == "marker":
            log.add(*[None] * draw(st.integers(1, 3)))
            continue
        for _ in range(draw(st.integers(1, most // 8))):
            seed = number if kind == "distinct" else draw(st.integers(0, variety - 1))
            log.add(
                Datum(
                    b"v%d" % seed,
                    number if kind == "distinct" else 1_000,
                    b"k%d" % (number % 17) if kind == "distinct" else None,
                ),
                aborted=what == "aborted",
            )
            number += 1
        if what == "aborted":
            log.add(None)
        log.epoch += draw(st.integers(0, 1))
    return log


def lose(draw: st.DrawFn, log: MemoryLog, *, upto: int) -> None:
    """Takes records away as compaction and retention do; never those of the newest segment."""
    if draw(st.booleans()):
        for _ in range(draw(st.integers(0, 4))):
            first = draw(st.integers(log.start, max(log.start, upto - 1)))
            log.gone |= set(range(first, min(first + draw(st.integers(1, 30)), upto)))
    if draw(st.integers(0, 2)) == 0:
        log.start = draw(st.integers(log.start, max(log.start, upto)))
        log.gone = {offset for offset in log.gone if offset >= log.start}


def same_content(copying: Copying, upstream: int) -> bool:
    """Says whether the target ends with what the source holds before an offset, as far as 32 records tell."""
    before = [datum for offset, datum in copying.source.seen(committed=copying.committed) if offset < upstream][-32:]
    copied = [datum for _, datum in copying.target.seen(committed=False)][-32:]
    return before == copied


def truth(copying: Copying, answer: object) -> None:
    """Checks that an answer, if there is one, leaves nothing out and copies nothing again."""
    if not isinstance(answer, Located):
        event("unknown")
        return
    event(answer.how)
    if not copying.stands_at(answer.upstream):
        # Of records that are alike the target may hold the very ones that lie before another place.
        assert same_content(copying, answer.upstream), f"{answer} for {copying.position}"
        event("alike")
    assert answer.downstream == copying.target.end


@settings(max_examples=EXAMPLES)
@given(st.data(), st.sampled_from(list(KINDS)), st.booleans())
def test_our_own_anchors_always_lead_to_the_position(data, kind, committed):
    """Exact anchors, kills at any point, markers of each change of owner: the position, whatever the records are."""
    source = data.draw(sources(kind))
    copying = Copying(source, MemoryLog(), committed=committed, position=source.start)
    copying.fence()
    kept = copying.anchor()
    for _ in range(data.draw(st.integers(1, 5))):
        for _ in range(data.draw(st.integers(0, 3))):
            copying.copy(data.draw(st.integers(0, 60)))
            if data.draw(st.booleans()):
                kept = copying.anchor()
        for _ in range(data.draw(st.integers(1, 3))):
            copying.fence()
        answer = ask(source, copying.target, [kept], committed=committed).answer
        assert isinstance(answer, Located)
        truth(copying, answer)
        copying.position = answer.upstream


@settings(max_examples=EXAMPLES)
@given(st.data(), st.sampled_from(list(KINDS)), st.booleans())
def test_runs_of_mirrormaker_that_were_killed(data, kind, committed):
    """At least once: runs begin below what was copied. Its position bounds, its offset syncs count."""
    source = data.draw(sources(kind))
    copying = Copying(source, MemoryLog(), committed=committed, position=source.start)
    noted = source.start
    for _ in range(data.draw(st.integers(1, 4))):
        before = copying.target.end
        copying.copy(data.draw(st.integers(1, 60)))
        if data.draw(st.booleans()) and copying.target.end > before:
            copying.sync()
        reached = copying.position
        noted = data.draw(st.integers(noted, max(noted, reached)))
        copying.position = noted
    copying.position = reached
    copying.fence()
    answer = ask(source, copying.target, [Anchor(noted), *copying.syncs], committed=committed).answer
    if kind != "few":
        assert isinstance(answer, Located) or not copying.syncs
    truth(copying, answer)


@settings(max_examples=EXAMPLES)
@given(st.data(), st.booleans())
def test_runs_of_mirrormaker_whose_offset_syncs_are_lost(data, committed):
    source = data.draw(sources("distinct"))
    copying = Copying(source, MemoryLog(), committed=committed, position=source.start)
    noted = source.start
    for _ in range(data.draw(st.integers(1, 4))):
        copying.copy(data.draw(st.integers(1, 60)), synced=data.draw(st.booleans()))
        reached = copying.position
        noted = data.draw(st.integers(noted, max(noted, reached)))
        copying.position = noted
    copying.position = reached
    copying.fence()
    answer = ask(source, copying.target, [Anchor(noted), *copying.syncs], committed=committed).answer
    if copying.target.seen(committed=False):
        assert isinstance(answer, Located)
        truth(copying, answer)


@settings(max_examples=EXAMPLES)
@given(st.data(), st.booleans(), st.booleans(), st.booleans())
def test_records_lost_on_either_side_never_mislead(data, committed, early, mirrormaker):
    """Compaction before and after the copying, retention on both sides; distinct records."""
    source = data.draw(sources("distinct"))
    if early:
        lose(data.draw, source, upto=source.end)
    copying = Copying(source, MemoryLog(), committed=committed, position=source.start)
    kept = copying.anchor()
    for _ in range(data.draw(st.integers(1, 4))):
        copying.copy(data.draw(st.integers(0, 60)))
        copying.fence()
        kept = copying.anchor()  # as a worker does behind its fence
        copying.copy(data.draw(st.integers(0, 60)))
    copying.fence()
    lose(data.draw, source, upto=source.end)
    lose(data.draw, copying.target, upto=copying.target.end - 1)
    anchors = [Anchor(kept.upstream), *copying.syncs] if mirrormaker else [kept]
    truth(copying, ask(source, copying.target, anchors, committed=committed).answer)


@settings(max_examples=EXAMPLES)
@given(st.data(), st.sampled_from(["distinct", "few"]))
def test_a_target_that_lost_its_end(data, kind):
    """An unclean election cut the target; anchors and syncs beyond its end are void, those before hold."""
    source = data.draw(sources(kind))
    copying = Copying(source, MemoryLog(), position=source.start)
    anchors = [copying.anchor()]
    for _ in range(data.draw(st.integers(1, 5))):
        copying.copy(data.draw(st.integers(1, 40)))
        anchors.insert(0, copying.anchor())
    end = data.draw(st.integers(0, copying.target.end))
    records = len([datum for datum in copying.target.places[end:] if datum is not None])
    copying.target.truncate(end)
    seen = [offset for offset, _ in source.seen(committed=False) if offset < copying.position]
    left = seen[: len(seen) - records]
    copying.position = left[-1] + 1 if left else source.start
    for _ in range(data.draw(st.integers(1, 2))):
        copying.fence()
    answer = ask(source, copying.target, anchors).answer
    if kind == "distinct":
        assert isinstance(answer, Located)
        truth(copying, answer)
