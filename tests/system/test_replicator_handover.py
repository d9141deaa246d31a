"""Copying changes hands mid-stream, from the real MirrorMaker 2 to the replicator and back."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from failover.lab import MirrorOptions
from failover.lab.follower import Isolation
from failover.model import TopicPartition
from tests.system.handing_over import Flow, Scene
from tests.system.pair import Pair


@pytest.fixture(params=[("read_uncommitted", 1.0), ("read_committed", 60.0)], ids=lambda param: str(param[0]))
def scene(pair: Pair, request: pytest.FixtureRequest) -> Iterator[Scene]:
    isolation: Isolation
    isolation, flush_seconds = request.param
    found = Scene(pair, isolation=isolation, flush_seconds=flush_seconds)
    try:
        yield found
    finally:
        found.traffic.end()
        if found.group in pair.a.groups():
            pair.a.delete_group(found.group)


@pytest.mark.timeout(420)
def test_both_ways_under_traffic(scene: Scene) -> None:
    """Ended in order and killed, each side goes on where the other stood; see the comments for what may be doubled."""
    with scene.flow.mirror_maker("stop"):
        scene.grown({})
    mark, copy = scene.marks(), scene.copy()
    stood = scene.ends(copy)

    with scene.flow.ours("stop"):
        scene.grown(mark)
    copy = scene.copy()
    scene.goes_on(copy, mark, stood)
    mark, stood = scene.marks(), scene.ends(copy)
    assert {tp: anchor.downstream for tp, anchor in scene.flow.positions().items() if tp in mark} == mark
    committed = dict(stood)
    scene.pair.commit("a", scene.group, committed)

    # killed: where offsets are flushed once a minute, our position is still the one on record
    with scene.flow.mirror_maker("kill"):
        scene.grown(mark)
        for tp, upstream in committed.items():
            found = scene.pair.wait_checkpoint(scene.group, *tp, upstream=upstream, flow=scene.flow.source, seconds=150)
            scene.safe(scene.copy(), tp, upstream, found.downstream)
    copy = scene.copy()
    scene.goes_on(copy, mark, stood)
    mark, stood = scene.marks(), scene.ends(copy)

    with scene.flow.ours("kill"):
        scene.grown(mark)
    with scene.flow.ours("kill"):
        scene.grown(scene.marks())
    copy = scene.copy()
    scene.goes_on(copy, mark, stood)
    mark, stood = scene.marks(), scene.ends(copy)

    # it knows no more than the last record of positions: what was copied after that comes twice, and nothing else
    on_record = {tp: anchor.upstream for tp, anchor in scene.flow.positions().items() if tp in mark}
    # (it may lie behind a transaction's marker, which is never copied)
    ahead = {tp: [one for one in scene.wanted(tp) if stood[tp] <= one.offset < on_record[tp]] for tp in stood}
    assert not any(ahead.values()), ahead
    with scene.flow.mirror_maker("stop"):
        scene.grown(mark)
        scene.traffic.end()
        copy = scene.caught_up()
        scene.goes_on(copy, mark, on_record)
        committed = scene.ends(copy)
        scene.pair.commit("a", scene.group, committed)
        for tp, upstream in committed.items():
            found = scene.pair.wait_checkpoint(scene.group, *tp, upstream=upstream, flow=scene.flow.source, seconds=150)
            scene.safe(copy, tp, upstream, found.downstream)
    doubled = {str(tp): sum(on_record[tp] <= one.offset < stood[tp] for one in scene.wanted(tp)) for tp in mark}
    logging.getLogger(__name__).warning("MirrorMaker 2 copied twice, after the replicator was killed: %s", doubled)


def test_a_position_set_by_hand(pair: Pair) -> None:
    """Where the target's records say nothing about the source, the partition stands still until a person decides."""
    topic = pair.create_topic("a", pair.name("hand.set"))
    flow = Flow(pair, MirrorOptions(topics=re.escape(topic), refresh_seconds=1))
    remote = pair.create_topic("b", f"{flow.source}.{topic}")
    written = pair.produce("a", topic, 100)
    pair.produce("b", remote, 50)
    with flow.ours("stop") as log:
        pair.b.until(lambda: "position-unknown" in log.read_text(), what="it stands still")
    [[foreign]] = [flow.copy([topic]).values()]
    assert len(foreign) == 50

    key = f'["MirrorSourceConnector",{{"cluster":"{flow.source}","partition":0,"topic":"{topic}"}}]'
    header = 'failover:{"v":1,"set":true}'
    pair.lab.run_tool(
        *("org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", pair.bootstrap("b")),
        *("--topic", f"mm2-offsets.{flow.source}.internal"),
        *("--property", "parse.key=true", "--property", "parse.headers=true", "--property", "headers.separator=;"),
        stdin=f'{header}\t{key}\t{{"offset":41}}\n',
    )
    assert flow.positions()[TopicPartition(topic, 0)].upstream == 42
    with flow.ours("stop"):
        pair.b.until(lambda: len(flow.copy([topic])[TopicPartition(topic, 0)]) >= 108, what="the rest is copied")
    copies = flow.copy([topic])[TopicPartition(topic, 0)]
    assert [record.value for record in copies[50:]] == [record.value for record in written[42:]]
