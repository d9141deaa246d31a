"""Failback with the real MirrorMaker 2: groups that consumed on the ex-target go back, each value counted.

A group that stands at an offset of the copies has consumed every value below it. Whatever else the original cluster
holds must come after the offset planned there (nothing skipped), and nothing that was consumed (nothing read again).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from failover.lab import MirrorOptions
from failover.model import Record
from tests.system.pair import Pair
from tests.system.typed import AT_ONCE, by_name, findings, offsets, plan

Logs = Mapping[int, list[Record]]


def ends(logs: Logs) -> dict[int, int]:
    return {partition: records[-1].offset + 1 if records else 0 for partition, records in logs.items()}


def caught_up(pair: Pair, topic: str, remote: str) -> None:
    """Waits until the newest record of each partition is mirrored, however often others were copied."""
    wanted = {partition: records[-1].value for partition, records in pair.a.read(topic).items() if records}

    def done() -> bool:
        if remote not in pair.b.topics():
            return False
        copied = pair.b.read(remote)
        return all(copied.get(p) and copied[p][-1].value == value for p, value in wanted.items())

    pair.b.until(done, what=f"{remote} ends as {topic} does", seconds=90, every=0.5)


def judged(originals: Logs, copies: Logs, stood: int, back: int, partition: int) -> tuple[int, int]:
    """Counts (skipped, read again) for a group that stood at ``stood`` and goes on at ``back``."""
    consumed = {record.value for record in copies[partition] if record.offset < stood}
    skipped = sum(1 for record in originals[partition] if record.offset < back and record.value not in consumed)
    again = sum(1 for record in originals[partition] if record.offset >= back and record.value in consumed)
    return skipped, again


def test_groups_go_back_without_losing_or_repeating_a_record(pair: Pair, tmp_path: Path) -> None:
    topic = pair.create_topic("a", pair.name("back.orders"), 2)
    pair.create_topic("b", topic, 2)
    names = [pair.name("back.group") for _ in range(6)]
    options = MirrorOptions(topics=topic, checkpoint_seconds=1, refresh_seconds=1, flush_seconds=60)
    forward: Any = {"aliases": ("ha", "hb")}
    remote = f"ha.{topic}"

    # killed before it had flushed a position: the next run copies everything again
    pair.produce("a", topic, 1200, transactions=((45, True), (15, False)))
    with pair.mirror(options, **forward):
        caught_up(pair, topic, remote)
    first = ends(pair.b.read(remote))
    pair.produce("a", topic, 900)
    with pair.mirror(options, **forward) as config:
        caught_up(pair, topic, remote)
    # never mirrored
    tail = pair.produce("a", topic, 60)
    originals, copies = pair.a.read(topic), pair.b.read(remote)
    last = ends(copies)
    assert all(last[p] > first[p] + 600 for p in (0, 1)), "the second run copied again what the first had copied"

    places = {
        names[0]: {0: 217, 1: 1},
        names[1]: {0: first[0], 1: first[1] - 1},
        names[2]: {0: first[0] + 150, 1: first[1] + 333},
        names[3]: {0: last[0] - 101, 1: last[1] - 1},
        names[4]: {0: last[0], 1: last[1]},
        names[5]: {0: 400, 1: last[1]},
    }
    for group, at in places.items():
        pair.b.place(group, {(remote, p): offset for p, offset in at.items()})
    # where it stood on the source before the failover
    pair.a.place(names[5], {(topic, 0): 100, (topic, 1): 100})

    aliases = ("--source", "hb", "--target", "ha")
    made = plan(pair, *names, state=tmp_path, config=config, more=aliases)
    groups = by_name(made)
    for name in names:
        assert (name, groups[name]["verdict"], groups[name]["subscribe"]) == (name, "ready", [topic])
        for partition in groups[name]["partitions"]:
            assert (partition["precision"], partition["reread_max"]) == ("exact", 0), partition
            assert partition["source_topic"] == remote
            assert partition["evidence"][0] == "came from ha: by the inverse of ha->hb's offset syncs"
    said = findings(made)["unmirrored-tail"]["message"]
    assert said.startswith("60 records on ha were never mirrored to hb: ")
    for p in (0, 1):
        begin = min(record.offset for record in tail if record.tp.partition == p)
        assert f"{topic}-{p} from offset {begin}: 30" in said
    assert [row for row in made["unreplicated"] if row["source_topic"] == remote] == []
    screen = pair.run_cli("plan", *aliases, "--group", names[0], state=tmp_path, config=config)
    assert "hb->ha is not enabled: the settings of ha->hb apply, read backwards" in screen.err
    assert "never mirrored" in screen.out

    # by the syncs alone: never beyond, and as far below as stated
    coarse = by_name(plan(pair, *names, state=tmp_path, config=config, code=None, more=(*aliases, "--no-content")))
    for name, at in places.items():
        for partition in coarse[name]["partitions"]:
            number = partition["partition"]
            back = partition["position_after"]["offset"]
            skipped, again = judged(originals, copies, at[number], back, number)
            assert skipped == 0, (name, partition)
            assert again <= partition["reread_max"], (name, partition)

    ran = pair.run_cli(
        "execute", *aliases, *[w for n in names for w in ("--group", n)], *AT_ONCE, state=tmp_path, config=config
    )
    assert ran.code == 0, ran.out + ran.err
    assert offsets(by_name(ran.json())[names[4]], "read_back")
    for name, at in places.items():
        standing = pair.committed("a", name)
        for number, stood in at.items():
            back = standing[topic, number]  # type: ignore[index]
            assert judged(originals, copies, stood, back, number) == (0, 0), (name, number, stood, back)

    # a consumer of the one at the end gets the tail, all of it and nothing else
    with pair.a.member(names[4], [topic]) as consumer:
        got: list[bytes] = []

        def read() -> bool:
            got.extend(m.value() or b"" for m in consumer.consume(100, 0.2) if m.error() is None)
            return len(got) >= len(tail)

        pair.a.until(read, what="the tail is read", seconds=90)
        assert sorted(got) == sorted(record.value for record in tail)

    # the flow back: what b's producers wrote since goes by it, the copies still by the inverse
    own = pair.produce("b", topic, 80)
    back_again = MirrorOptions(topics=topic, checkpoint_seconds=1, refresh_seconds=1, flush_seconds=1, both_ways=True)
    pair.b.place(names[0], {(remote, 0): 217, (remote, 1): 1, (topic, 0): 33, (topic, 1): 40})
    with pair.mirror(back_again, **forward, added={"ha->hb.enabled": "false"}) as config:
        mirrored = f"hb.{topic}"
        pair.a.until(
            lambda: mirrored in pair.a.topics() and sum(e for _, e in pair.a.ends(mirrored).values()) >= len(own),
            what=f"{mirrored} holds what was written on b",
            seconds=90,
            every=0.5,
        )
    [group] = plan(pair, names[0], state=tmp_path, config=config, more=aliases)["groups"]
    assert group["verdict"] == "ready"
    assert offsets(group, "offset") == {(mirrored, 0): 33, (mirrored, 1): 40}
    assert {p["reason"] for p in group["partitions"] if p["topic"] == topic} == {"already-there"}
    assert group["subscribe"] == [topic, mirrored] or group["subscribe"] == [mirrored, topic]
