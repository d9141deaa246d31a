"""Offset syncs of a flow that the replicator alone copies: what MirrorMaker 2's rule and the plan make of them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from failover.lab import MirrorOptions
from failover.lab.internal_records import sync_of
from failover.model import Record, TopicPartition
from failover.translate.mm2_rule import OffsetSyncStore
from tests.system.counting import count, partitions
from tests.system.handing_over import COMPACT, TRANSACTIONS, Copy, Flow
from tests.system.pair import Pair

SHARES = [number / 20 for number in range(21)]
HOLES = 600


class Copied:
    """Is what one run of the replicator has copied: both sides' records, and the syncs as they were written."""

    def __init__(self, pair: Pair, flow: Flow, topics: Sequence[str], groups: str) -> None:
        self.pair = pair
        self.flow = flow
        self.groups = groups
        self.source: Copy = {
            TopicPartition(topic, number): records for topic in topics for number, records in pair.a.read(topic).items()
        }
        self.target = flow.copy(topics)

    def syncs(self, tp: TopicPartition) -> list[tuple[int, int]]:
        """Gives (source offset, target offset) in the order of the topic."""
        return [sync[2:] for sync in read_syncs(self.pair, self.flow) if sync[:2] == tp]

    def plan(self) -> list[dict[str, Any]]:
        """Plans the scene's groups; gives every partition."""
        config = self.flow.config
        ran = self.pair.run_cli("plan", "--group-pattern", self.groups, "--format", "json", config=config)
        assert ran.code == 0, ran.out + ran.err
        return partitions(ran.json())


def read_syncs(pair: Pair, flow: Flow) -> list[Any]:
    return [sync_of(record) for record in pair.a.read(f"mm2-offset-syncs.{flow.target}.internal").get(0, ())]


def truth(source: Sequence[Record], target: Sequence[Record], upstream: int) -> int:
    """Gives the target offset of the first record from source offset ``upstream`` on, the target's end without one."""
    ahead = {record.value for record in source if record.offset >= upstream}
    return next((record.offset for record in target if record.value in ahead), target[-1].offset + 1)


@pytest.fixture(scope="module")
def copied(pair: Pair) -> Iterator[Copied]:
    stem = pair.name("sync")
    topics = plain, transactional, compacted, few, holes = [
        pair.create_topic("a", f"{stem}.plain", 2),
        pair.create_topic("a", f"{stem}.txn", 2),
        pair.create_topic("a", f"{stem}.compact", 1, config=COMPACT),
        pair.create_topic("a", f"{stem}.few", 1),
        pair.create_topic("a", f"{stem}.holes", 1, config=COMPACT),
    ]
    pair.produce("a", plain, 20_000)
    pair.produce("a", transactional, 1_500, transactions=TRANSACTIONS)
    pair.produce("a", compacted, 1_500, keys=1_000)
    pair.produce("a", compacted, 1_500, keys=700)
    write_holes(pair, holes)
    options = MirrorOptions(topics=rf"{re.escape(stem)}\..*", groups=rf"{re.escape(stem)}\..*", refresh_seconds=1)
    flow = Flow(pair, options)
    groups = rf"{re.escape(stem)}\.group-\d+"
    names = []
    with flow.ours("kill"):
        pair.b.until(lambda: behind(pair, flow, topics[:3]) == 0, what="what there is is copied", every=0.2)
        pair.produce("a", plain, 3_000)
        pair.produce("a", few, 30)
        # killed only after the last record's sync is there: a quiet partition gets one within about a second
        wanted = {tp: (offset, copy) for tp, offset, copy in ends_of(pair, flow, (plain, few))}

        def synced() -> bool:
            found = {TopicPartition(*sync[:2]): tuple(sync[2:]) for sync in read_syncs(pair, flow)}
            return wanted == {tp: found.get(tp) for tp in wanted}

        pair.b.until(synced, what="the syncs of the last records", every=0.1)
    found = Copied(pair, flow, topics, groups)
    for number, share in enumerate(SHARES):
        offsets = {}
        for topic in topics:
            for partition, (start, end) in pair.ends("a", topic).items():
                offsets[TopicPartition(topic, partition)] = start + int((end - start) * share)
        names.append(f"{stem}.group-{number}")
        pair.commit("a", names[-1], offsets)
    yield found
    for name in names:
        pair.a.delete_group(name)


def write_holes(pair: Pair, topic: str) -> None:
    """Leaves records at 0 and from 601 to 1000: those between are compacted away."""
    producer = pair.a.producer()
    now = time.time_ns() // 1_000_000
    keys = [b"first", *[b"x"] * HOLES, *[b"k%d" % number for number in range(398)], b"x", b"last"]
    for number, key in enumerate(keys):
        # a log's open segment is never compacted: the last record opens another one by its age
        timestamp = now if key == b"last" else now - 10_000
        producer.produce(topic, b"holes:%d" % number, key, 0, timestamp=timestamp)
        if number == len(keys) - 2:
            producer.flush(30)
    producer.flush(30)
    left = len(keys) - HOLES
    pair.a.until(lambda: len(pair.a.read(topic)[0]) == left, what=f"compaction of {topic}", seconds=90, every=0.5)


def behind(pair: Pair, flow: Flow, topics: Sequence[str]) -> int:
    """Counts records of the source whose values the target does not hold."""
    copy = flow.copy(topics)
    held = {record.value for records in copy.values() for record in records}
    return sum(r.value not in held for topic in topics for rs in pair.a.read(topic).values() for r in rs)


def ends_of(pair: Pair, flow: Flow, topics: Sequence[str]) -> Iterator[tuple[TopicPartition, int, int]]:
    """Gives each partition's last record, and where its copy lies once it is there."""
    for topic in topics:
        for number, records in pair.a.read(topic).items():
            tp = TopicPartition(topic, number)
            last = records[-1]

            def there(tp: TopicPartition = tp, last: Record = last) -> Record | None:
                copies = flow.copy([tp.topic]).get(tp, [])
                return copies[-1] if copies and copies[-1].value == last.value else None

            yield tp, last.offset, pair.b.until(there, what=f"the last record of {tp}", every=0.1).offset


@pytest.mark.timeout(240)
def test_the_plan_is_exact_for_every_group(copied: Copied) -> None:
    found = copied.plan()
    assert len(found) == len(SHARES) * len(copied.source)
    for p in found:
        tp = TopicPartition(p["source_topic"], p["partition"])
        judged = count(copied.source[tp], copied.target[tp], p["source_committed"], p["offset"])
        assert (p["precision"], p["reread_max"], *judged) == ("exact", 0, 0, 0), p


def test_mirror_makers_rule_over_our_syncs_never_skips(copied: Copied) -> None:
    """Each source offset there is, translated by MirrorMaker 2's rule from the syncs in the order of the topic."""
    for tp, source in copied.source.items():
        target = copied.target[tp]
        store = OffsetSyncStore(must_read_to_end=False)
        store.sync_all(copied.syncs(tp))
        store.finish_initial_read()
        near = 0
        for upstream in {source[0].offset, source[-1].offset + 1, *(r.offset for r in source[::37])}:
            answer = store.translate(upstream)
            exact = truth(source, target, upstream)
            assert isinstance(answer, int), (tp, upstream, answer)
            assert answer <= exact, (tp, upstream)
            near += answer == exact
        # the end, where groups usually stand, is exact by the last record's sync
        assert store.translate(source[-1].offset + 1) == target[-1].offset + 1, tp
        assert near, tp


def test_a_hole_left_by_compaction_is_no_distance(copied: Copied) -> None:
    [tp] = [tp for tp in copied.source if tp.topic.endswith(".holes")]
    # target offset 0 is the marker of the fence, so that each record lies one further
    syncs = copied.syncs(tp)
    store = OffsetSyncStore(must_read_to_end=False)
    store.sync_all(syncs)
    store.finish_initial_read()
    assert syncs[0] == (0, 1)
    assert syncs[-1] == (1_000, 401)
    assert [store.translate(upstream) for upstream in (500, 1_000, 1_001)] == [2, 401, 402]
    [few] = [tp for tp in copied.source if tp.topic.endswith(".few")]
    assert copied.syncs(few)[-1] == (29, 30)
    all_read = [p for p in copied.plan() if p["source_topic"] == few.topic and p["source_committed"] == 30]
    assert {p["offset"] for p in all_read} == {31}
