"""A source of three brokers that loses one for a while, seen by a replicator and the groups it tracks."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable

from failover.model.names import TopicPartition
from tests.system.checkpointing import EVERY_SECOND, kept
from tests.system.pair import Pair
from tests.system.replicating import Flow, Reading


def one_source_broker_down(three: Pair, *, seconds: float) -> None:
    """Kills broker ``a/2`` for at least so long: what it leads stands still, all else goes on, all of it resumes."""
    stem = three.name("spread")
    flow = Flow(three, rf"{re.escape(stem)}\..*", EVERY_SECOND)
    topic = f"{stem}.t"
    three.expected["a"].add(topic)
    three.a.create_topic(topic, 3, replicas=1)
    three.produce("a", topic, 3000)
    leaders = three.a.admin.list_topics(topic, timeout=10).topics[topic].partitions
    down = next(number for number, state in leaders.items() if state.leader == _node(three, "a/2"))
    alive = [number for number in leaders if number != down]
    groups = [three.name("group") for _ in range(12)]
    remote = flow.remote(topic)

    def copied(number: int) -> int:
        with Reading(three.b, [remote]) as reading:
            return sum(len(records) for tp, records in reading.to_the_end().items() if tp.partition == number)

    def arrives(number: int, wanted: int) -> None:
        what = f"{wanted} records of {topic}-{number} are copied"
        three.b.until(lambda: copied(number) == wanted, what=what, seconds=90, every=0.3)

    def all_kept(numbers: Iterable[int], upstream: int) -> None:
        places = [TopicPartition(remote, number) for number in numbers]

        def there() -> bool:
            found = kept(three, flow.source).positions
            each = [found.get(group, {}).get(place) for group in groups for place in places]
            return all(one is not None and (one.upstream, one.known.precision) == (upstream, "exact") for one in each)

        three.b.until(there, what=f"all groups are on record at {upstream} of {places}", seconds=90, every=0.2)

    with flow.worker() as worker:
        worker.copied(topic)
        for group in groups:
            three.commit("a", group, {(topic, number): 100 for number in leaders})
        all_kept(leaders, 100)
        three.lab.kill("a/2")
        over = threading.Timer(seconds, lambda: None)
        over.start()
        try:
            for number in alive:
                three.produce("a", topic, 200, partition=number)
                arrives(number, 1200)
            for group in groups:
                three.commit("a", group, dict.fromkeys([(topic, number) for number in alive], 200))
            all_kept(alive, 200)
            place = (remote, down)
            three.b.until(
                lambda: (beat := kept(three, flow.source).beat) is not None and place in beat.ends_older,
                what="the partition whose end cannot be read is told",
            )
            over.join()
            for number in alive:
                three.produce("a", topic, 10, partition=number)
                arrives(number, 1210)
        finally:
            three.lab.restart("a/2")
        three.produce("a", topic, 300, partition=down)
        arrives(down, 1300)
        for group in groups:
            three.commit("a", group, {(topic, down): 300})
        all_kept([down], 300)
        for group in groups:
            three.wait_checkpoint(group, topic, down, upstream=300, flow=flow.source)
        three.b.until(
            lambda: (beat := kept(three, flow.source).beat) is not None and not (beat.older or beat.ends_older),
            what="all of it holds again",
        )
        worker.stop()


def _node(pair: Pair, name: str) -> int:
    [broker] = pair.lab.brokers(name)
    return broker.node
