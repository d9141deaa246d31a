"""What MirrorMaker 2's checkpoints would have groups read again, and what a plan would: judged record by record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from failover.lab import MirrorOptions
from failover.lab.side import Produced
from failover.model import TopicPartition
from tests.bench.figures import Figures
from tests.bench.fill import commit_groups
from tests.bench.measure import failover
from tests.bench.mirroring import wait_copied, wait_quiet
from tests.bench.oracle import Mirrored
from tests.system.pair import Pair

pytestmark = pytest.mark.timeout(900)

SHORT, RECORDS = 37, 400_000
NOTE = "Records, counted one by one over all rows (a row: one partition of one group); every value is unique."
HEADER = (
    "scene",
    "copied twice",
    "rows",
    "MM2: no checkpoint",
    "MM2 would re-read",
    "MM2 would skip",
    "plan: not placed",
    "this plan re-reads",
    "this plan skips",
    "plan: exact",
    "`failover plan`, s",
)


class Scene(NamedTuple):
    """Is one topic, what was written to it, and the share of each partition that each group has consumed."""

    name: str
    topic: str
    produced: list[Produced]


class Tally:
    """Adds up one scene's rows."""

    def __init__(self) -> None:
        self.twice = self.rows = self.without = self.mm2_reread = self.mm2_skipped = 0
        self.unplaced = self.reread = self.skipped = self.exact = 0

    def cells(self) -> list[int]:
        return [
            self.twice,
            self.rows,
            self.without,
            self.mm2_reread,
            self.mm2_skipped,
            self.unplaced,
            self.reread,
            self.skipped,
            self.exact,
        ]


def commit_shares(pair: Pair, topics: Iterable[str], shares: Sequence[int], prefix: str) -> dict[str, dict[Any, int]]:
    """Commits for one group a share (in percent) of each partition's log, short of the mark."""
    ends = {topic: pair.a.ends(topic) for topic in topics}
    commits = {
        f"{prefix}-{share:03}": {
            TopicPartition(topic, number): max(start + 1, start + (end - start) * share // 100 - SHORT)
            for topic, logs in ends.items()
            for number, (start, end) in logs.items()
        }
        for share in shares
    }
    commit_groups(pair.a, commits)
    return commits


def judge(pair: Pair, flow: str, scenes: Sequence[Scene], commits: Mapping[str, Any], plan: Any) -> dict[str, Tally]:
    """Counts for both answers, scene by scene."""
    checkpoints = pair.checkpoints(flow=flow)
    offsets = {
        (group["group"], row["source_topic"], row["partition"]): row
        for group in plan["groups"]
        for row in group["partitions"]
    }
    tallies: dict[str, Tally] = defaultdict(Tally)
    for scene in scenes:
        remote = f"{flow}.{scene.topic}"
        source, target = pair.a.read(scene.topic), pair.b.read(remote)
        produced: dict[int, list[Produced]] = defaultdict(list)
        for record in scene.produced:
            produced[record.tp.partition].append(record)
        tally = tallies[scene.name]
        for number, written in produced.items():
            mirrored = Mirrored(written, source[number], target[number])
            tally.twice += len(mirrored.positions) - len(mirrored.last)
            for group, committed in commits.items():
                upstream = committed[scene.topic, number]
                tally.rows += 1
                checkpoint = checkpoints.get((group, remote, number))
                if checkpoint is None:
                    tally.without += 1
                else:
                    answer = mirrored.judge(upstream, checkpoint.downstream)
                    tally.mm2_reread += answer.reread
                    tally.mm2_skipped += answer.skipped
                row = offsets[group, scene.topic, number]
                if row["action"] != "commit":
                    tally.unplaced += 1
                    continue
                answer = mirrored.judge(upstream, row["offset"])
                tally.reread += answer.reread
                tally.skipped += answer.skipped
                tally.exact += row["precision"] == "exact"
                assert answer.skipped == 0, f"{group} {scene.topic}-{number}: {row}: {answer}"
                assert row["reread_max"] is None or answer.reread <= row["reread_max"], f"{group}: {row}: {answer}"
    return tallies


def plan_and_judge(
    pair: Pair, flow: str, scenes: Sequence[Scene], commits: Mapping[str, Any], *, config: Path, state: Path
) -> list[list[object]]:
    """Plans and gives the rows of the table, one a scene and the sum."""
    run = failover("plan", "--format", "json", config=config, state=state, codes=(0, 4))
    tallies = judge(pair, flow, scenes, commits, run.json())
    rows: list[list[object]] = [[name, *tally.cells(), ""] for name, tally in tallies.items()]
    sums = [sum(column) for column in zip(*(tally.cells() for tally in tallies.values()), strict=True)]
    if len(rows) == 1:
        rows.clear()
        return [[scenes[0].name, *sums, f"{run.seconds:.2f}"]]
    return [*rows, ["all", *sums, f"{run.seconds:.2f}"]]


def test_lagging_groups_on_one_large_partition(pair: Pair, tmp_path: Path) -> None:
    topic = pair.create_topic(pair.source, "events")
    shares = range(5, 101, 5)
    # the groups and a first record are there before the mirror: its checkpoint task keeps only the newest sync of
    # those it finds at its start, and would translate nothing older (MM2: OffsetSyncStore)
    produced = pair.a.produce(topic, 1)
    commit_shares(pair, [topic], shares, "lagging")
    options = MirrorOptions(topics=topic, groups="lagging-.*", checkpoint_seconds=1, refresh_seconds=1)
    with pair.mirror(options, aliases=("a1", "b1")) as config:
        pair.b.until(
            lambda: len(pair.checkpoints(flow="a1")) == len(shares), what="a first checkpoint each", seconds=90
        )
        produced += pair.a.produce(topic, RECORDS - 1, compression_type="lz4")
        commits = commit_shares(pair, [topic], shares, "lagging")
        scene = Scene(f"{len(shares)} lagging groups, {RECORDS:,} records", topic, produced)
        wait_copied(pair, "a1", scene.produced)
        wait_quiet(pair, "a1")
        rows = plan_and_judge(pair, "a1", [scene], commits, config=config, state=tmp_path)
    figures = Figures("lagging-groups", "MM2 would re-read, this plan re-reads: one large partition")
    figures.table(HEADER, rows)
    figures.note(NOTE)
    figures.publish()


def make_scenes(pair: Pair) -> list[Scene]:
    """Fills six topics; what makes each of them hard is there before the mirror starts, the restarts excepted."""

    def scene(name: str, partitions: int, config: dict[str, str] | None = None) -> str:
        return pair.create_topic(pair.source, name, partitions, config=config)

    lagging = scene("lagging", 1)
    transactions = scene("transactional", 6)
    compact = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
    compacted = scene("compacted", 2, compact | {"min.compaction.lag.ms": "0", "max.compaction.lag.ms": "1000"})
    restarts = scene("restarts", 4)
    retention = scene("retention", 4)
    small = scene("small", 1)
    scenes = [
        Scene("lagging", lagging, pair.a.produce(lagging, 100_000)),
        Scene(
            "transactional with aborts",
            transactions,
            pair.a.produce(transactions, 30_000, transactions=[(97, True), (31, False), (206, True)]),
        ),
        Scene("compacted with holes", compacted, pair.a.produce(compacted, 60_000, keys=5_000, size=120)),
        Scene("restarts", restarts, pair.a.produce(restarts, 200_000)),
        Scene("retention", retention, pair.a.produce(retention, 120_000)),
        Scene("small topic", small, pair.a.produce(small, 60)),
    ]
    for number in range(4):
        pair.a.delete_records(retention, number, 15_000)
    pair.a.until(
        lambda: sum(map(len, pair.a.read(compacted).values())) < 50_000, what="the cleaner left holes", every=0.5
    )
    return scenes


def test_six_hard_scenes_on_one_mirror(pair: Pair, tmp_path: Path) -> None:
    scenes = make_scenes(pair)
    topics = [scene.topic for scene in scenes]
    commits = commit_shares(pair, topics, (5, 20, 45, 70, 90, 100), "hard")
    options = MirrorOptions(
        topics=",".join(topics), groups="hard-.*", checkpoint_seconds=1, refresh_seconds=1, flush_seconds=2
    )
    # the worker of the killed process is given up soon
    settings = {"b2.session.timeout.ms": "6000", "b2.heartbeat.interval.ms": "1000"}
    total = sum(end - start for topic in topics for start, end in pair.a.ends(topic).values())

    def copied() -> int:
        return sum(end for topic in topics for _, end in pair.b.ends(f"a2.{topic}").values())

    def reached(share: float) -> bool:
        return copied() >= share * total

    with pair.mirror(options, aliases=("a2", "b2"), added=settings) as config:
        for share in (0.2, 0.45, 0.7):
            pair.b.until(partial(reached, share), what=f"{share:.0%} copied", seconds=90)
            pair.lab.kill("mm2-a2-b2")
            pair.lab.start_mirror(config, name="mm2-a2-b2")
        for scene in scenes:
            wait_copied(pair, "a2", scene.produced)
        wait_quiet(pair, "a2")
        rows = plan_and_judge(pair, "a2", scenes, commits, config=config, state=tmp_path)
    figures = Figures(
        "hard-scenes", "MM2 would re-read, this plan re-reads: six scenes, MM2 killed three times with -9"
    )
    figures.table(HEADER, rows)
    figures.note(NOTE)
    figures.publish()
