"""Waiting for the real MirrorMaker 2."""

from __future__ import annotations

import time
from collections.abc import Iterable

from failover.lab.side import Produced
from tests.system.pair import Pair


def wait_copied(pair: Pair, flow: str, produced: Iterable[Produced], *, seconds: float = 120) -> None:
    """Waits until the newest record of each partition written to has been copied."""
    newest = {(f"{flow}.{record.tp.topic}", record.tp.partition): record.value for record in produced}
    for (topic, partition), value in newest.items():

        def there(topic: str = topic, partition: int = partition, value: bytes = value) -> bool:
            return _last_value(pair, topic, partition) == value

        pair.b.until(there, what=f"all of {topic}-{partition} is copied", seconds=seconds, every=0.2)


def wait_quiet(pair: Pair, flow: str | None = None, *, looks: int = 5, seconds: float = 1) -> None:
    """Waits until a flow's checkpoints topic stood still for so many looks, ``seconds`` apart.

    A commit alone gives no new checkpoint: MirrorMaker 2 writes one when its translation has
    changed (MM2: MirrorCheckpointTask).
    """
    topic, still, known = f"{flow or pair.source}.checkpoints.internal", 0, -1
    while still < looks:
        end = pair.b.ends(topic).get(0, (0, 0))[1]
        still, known = (still + 1, known) if end == known > 0 else (0, end)
        time.sleep(seconds)


def _last_value(pair: Pair, topic: str, partition: int) -> bytes | None:
    """Returns the value of a partition's last data record, None when the last few offsets hold none."""
    from confluent_kafka import TopicPartition as Place

    start, end = pair.b.ends(topic).get(partition, (0, 0))
    if end <= start:
        return None
    consumer = pair.b.consumer(enable_partition_eof=True)
    try:
        consumer.assign([Place(topic, partition, max(start, end - 5))])
        value: bytes | None = None
        while (message := consumer.poll(10)) is not None and message.error() is None:
            value = message.value()
        return value
    finally:
        consumer.close()
