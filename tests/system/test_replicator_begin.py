"""Where copying begins of what was never copied: ``auto.offset.reset`` of the mirror's consumer."""

from __future__ import annotations

import re
import time
from functools import partial

import pytest

from failover.model import TopicPartition
from tests.system.pair import Pair
from tests.system.replicating import Flow


def write(pair: Pair, topic: str, partition: int, values: list[str], *, age: float = 0) -> None:
    producer = pair.a.producer()
    for value in values:
        producer.produce(topic, value, partition=partition, timestamp=int((time.time() - age) * 1000))
    assert producer.flush(60) == 0


@pytest.mark.parametrize(
    ("reset", "first"),
    [("latest", {0: [], 1: []}), ("by_duration:PT1H", {0: ["new-0", "new-1"], 1: []})],
)
def test_what_came_before_is_left_out_and_nothing_after_it(pair: Pair, reset: str, first: dict[int, list[str]]) -> None:
    topic = pair.create_topic("a", pair.name("begin"), 2)
    for partition in (0, 1):
        write(pair, topic, partition, ["old-0", "old-1"], age=7200)
    write(pair, topic, 0, ["new-0", "new-1"])
    flow = Flow(pair, re.escape(topic), {"{source}.consumer.auto.offset.reset": reset})

    def copied() -> dict[int, list[str]]:
        found = flow.copy([topic])
        return {
            number: [(record.value or b"").decode() for record in found.get(TopicPartition(topic, number), [])]
            for number in (0, 1)
        }

    def holds(wanted: dict[int, list[str]]) -> bool:
        return copied() == wanted

    wanted = first
    for run in ("a", "b"):  # the second run goes on where the first ended, though it kept nothing of what came before
        with flow.worker() as worker:
            worker.says("from source offset", times=2)
            for partition in (0, 1):
                write(pair, topic, partition, [f"later-{run}"], age=7200)
            wanted = {number: [*values, f"later-{run}"] for number, values in wanted.items()}
            worker.until(partial(holds, wanted), what=f"the target holds {wanted}")
            worker.stop()
        assert copied() == wanted
