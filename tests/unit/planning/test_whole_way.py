"""From two clusters to what the target holds in the end, against an oracle that knows every record.

For any world and any options: what is planned passes over no unread record and moves no commit back unless that was
allowed, says how much it passes over at least, and execute writes exactly that.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import event, given, settings
from hypothesis import strategies as st

from failover.execution.session import overrides
from failover.inventory.by_time import Times
from failover.inventory.comparing import record_comparison
from failover.inventory.selection import Selection
from failover.model.cluster import LogRange
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.model.plan import Action, Plan, PlanOptions
from failover.model.records import Record
from failover.planning.build import make_plan
from failover.planning.plan_file import decode_plan, encode_plan
from tests.unit.execution import scene as executing
from tests.unit.inventory.scene import NOW, Scene, flow

Draw = Callable[[st.SearchStrategy[Any]], Any]
START = int(NOW.timestamp() * 1000) - 100_000
GROUPS = ("g", "h")


class World(NamedTuple):
    """Is both clusters, and by group where it truly stands on the source.

    ``copied``: (target offset, source offset) of every record the target ever held.
    """

    scene: Scene
    positions: dict[str, dict[TopicPartition, int]]
    copied: dict[TopicPartition, list[tuple[int, int]]]

    def unread(self, group: str, place: TopicPartition, offset: int) -> int:
        """Counts the unread records that a start at ``offset`` passes over: the target holds them before it alone."""
        read = self.positions[group].get(TopicPartition("orders", place.partition), 0)
        held = {record.offset for record in self.scene.b.log.get(place, ())}
        before = {origin for at, origin in self.copied[place] if at in held and at < offset and origin >= read}
        return len(before - {origin for at, origin in self.copied[place] if at >= offset})


def record(offset: int, origin: int, timestamp: int) -> Record:
    return Record(offset, timestamp, b"%d" % origin, b"value of %d" % origin)


def build(draw: Draw, folder: Path) -> World:
    """Draws both clusters: what was copied, with gaps and stretches copied twice, and what MM2 left."""
    made = Scene(flow(folder))
    made.a.topic("orders", 2)
    made.b.topic("a.orders", 2)
    copied: dict[TopicPartition, list[tuple[int, int]]] = {}
    positions: dict[str, dict[TopicPartition, int]] = {group: {} for group in GROUPS}
    for number in range(2):
        source, place = TopicPartition("orders", number), TopicPartition("a.orders", number)
        length = draw(st.integers(0, 12))
        # out of order now and then, and some alike
        times = [START + 1000 * (n + draw(st.integers(-3, 3))) for n in range(length)]
        pairs, end = copy(draw, made, number, length)
        copied[place] = pairs
        start = draw(st.integers(0, length)) if draw(st.booleans()) else 0
        made.a.log[source] = [record(n, n, times[n]) for n in range(start, length)]
        made.a.logs[source] = LogRange(start, length)
        cut = draw(st.integers(0, end)) if draw(st.booleans()) else 0
        made.b.log[place] = [record(at, n, times[n]) for at, n in pairs if at >= cut]
        made.b.logs[place] = LogRange(cut, end)
        for group in GROUPS:
            if draw(st.integers(0, 4)):
                positions[group][source] = draw(st.integers(start, length))
    if draw(st.booleans()):
        made.b.group("g")
    for group in GROUPS:
        made.a.group(group, positions[group])
        for source, read in positions[group].items():
            place = TopicPartition("a.orders", source.partition)
            if draw(st.booleans()):
                made.checkpoint(
                    group, "a.orders", *checkpoint(draw, copied[place], made, place, read), partition=place[1]
                )
            if not draw(st.integers(0, 2)):
                known = made.b.groups.get(group)
                commits = dict(known.commits) if known is not None else {}
                made.b.group(group, {**commits, place: Commit(draw(st.integers(0, made.b.logs[place].end)))})
    return World(made, positions, copied)


def copy(draw: Draw, made: Scene, number: int, length: int) -> tuple[list[tuple[int, int]], int]:
    """Copies records as MM2 does: markers leave gaps, a restart goes back, each begins with an offset sync."""
    pairs: list[tuple[int, int]] = []
    at = n = 0
    synced = lost = not draw(st.integers(0, 3))  # its syncs are lost at times
    while n < length and draw(st.integers(0, 9)):
        change = draw(st.integers(0, 9))
        if change == 0:
            at, synced = at + 1, lost  # a transaction's marker
        elif change == 1 and n:
            n, synced = draw(st.integers(0, n - 1)), lost  # a restart: what was copied since is copied again
        if not synced or (not lost and not draw(st.integers(0, 5))):
            made.sync("orders", n, at, partition=number)
            synced = True
        pairs.append((at, n))
        at, n = at + 1, n + 1
    return pairs, at


def checkpoint(
    draw: Draw, pairs: list[tuple[int, int]], made: Scene, place: TopicPartition, read: int
) -> tuple[int, int]:
    """Draws a checkpoint at or below where the group stands: never beyond the first record it has not read."""
    upstream = draw(st.integers(0, read))
    first = min((at for at, n in pairs if n >= upstream), default=made.b.logs[place].end)
    return upstream, draw(st.integers(max(0, first - 4), first))


@st.composite
def asked(draw: Any) -> PlanOptions:
    skip = draw(st.booleans())
    moment = datetime.fromtimestamp((START + 1000 * draw(st.integers(-5, 20))) / 1000, UTC).isoformat()
    policies = ["leave", "earliest", "fail", f"at={moment}", f"ago={draw(st.integers(80, 110))}s"]
    return PlanOptions(
        missing=draw(st.sampled_from(policies + ["latest"] * skip)),
        allow_skip=skip,
        allow_rewind=draw(st.booleans()),
        all_or_nothing=draw(st.booleans()),
        precision=draw(st.sampled_from(["exact", "bounded", "conservative"])),
        rewind_by=draw(st.sampled_from([0.0, 0.0, 1.0, 4.0, 1000.0])),
        content=draw(st.booleans()),
        groups=draw(st.sampled_from([(), ("g",)])),
    )


def planned(world: World, options: PlanOptions, *, source_down: bool) -> Plan:
    def comparison(source: Any, target: Any, evidence: Any, report: Any) -> Any:
        return record_comparison(source, target, evidence, report, max_records=1000)

    snapshot = world.scene.look(
        Selection(options.groups, topics=options.topics),
        times=Times(options.missing, options.rewind_by),
        source_down=source_down,
        comparison=comparison if options.content else None,
    )
    fields = {"plan_id": "p", "operator": "kim", "reason": "", "ttl_seconds": 9e6, "tool_version": "0"}
    return make_plan(snapshot, options, **fields, settle_seconds=0.0)  # type: ignore[arg-type]


@settings(max_examples=40)
@given(st.data())
def test_nothing_is_passed_over_or_set_back_and_exactly_the_plan_is_written(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = build(data.draw, Path(folder))
        options, source_down = data.draw(asked()), data.draw(st.booleans())
        if source_down and "g" not in world.scene.b.groups:
            options = msgspec.structs.replace(options, groups=())  # nobody might know the name
        made = decode_plan(encode_plan(planned(world, options, source_down=source_down)))
        before = {group: dict(known.commits) for group, known in world.scene.b.groups.items()}
        for group in made.groups:
            for p in group.partitions:
                judge(world, group.group, p, options)
        execution = executing.run(made, world.scene.b, Path(folder))
        expected = {group: {tp: commit.offset for tp, commit in commits.items()} for group, commits in before.items()}
        for group in made.groups:
            for p in group.partitions:
                if p.offset is not None:
                    expected.setdefault(group.group, {})[TopicPartition(p.topic, p.partition)] = p.offset
        found = {
            group: {tp: commit.offset for tp, commit in known.commits.items()}
            for group, known in world.scene.b.groups.items()
        }
        assert found == expected
        assert {p.written for g in execution.groups for p in g.partitions if p.planned is None} <= {None}
        if options.allow_rewind:
            assert "allow_rewind" in overrides(made)


def judge(world: World, group: str, p: Any, options: PlanOptions) -> None:
    place = TopicPartition(p.topic, p.partition)
    if p.action is Action.COMMIT:
        event(p.reason)
        passed = world.unread(group, place, p.offset)
        if not options.allow_skip:
            assert passed == 0, p
        assert p.skipped is not None
        assert passed <= p.skipped, p
        if not options.allow_rewind and p.target_committed is not None:
            assert p.offset > p.target_committed, p
        assert p.target_start <= p.offset <= p.target_end
        if options.missing == "leave":
            assert p.skipped == 0
    elif p.position_after.offset is not None and p.skipped is not None and p.source_committed is not None:
        # what a standing commit passes over is said too, unless the group consumed here itself
        assert world.unread(group, place, p.position_after.offset) <= p.skipped or p.ahead_because == "consumed-here", p
