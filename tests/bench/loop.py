"""The peer: a loop of confluent-kafka's consumer and producer, with the settings its users give it for throughput.

``python loop.py SOURCE TARGET TOPIC REMOTE``: copies until it is ended. At most once or at least once, as it comes.
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, Producer, TopicPartition


def main() -> None:
    source, target, topic, remote = sys.argv[1:]
    consumer = Consumer(
        {
            "bootstrap.servers": source,
            "group.id": "loop",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.max.bytes": 52428800,
            "queued.max.messages.kbytes": 65536,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": target,
            "linger.ms": 5,
            "batch.size": 1 << 20,
            "compression.type": "none",
            "queue.buffering.max.messages": 500_000,
        }
    )
    known = consumer.list_topics(topic, timeout=10).topics[topic]
    consumer.assign([TopicPartition(topic, partition, 0) for partition in known.partitions])
    while True:
        for message in consumer.consume(5_000, 0.05):
            if message.error() is not None:
                continue
            while True:
                try:
                    producer.produce(
                        remote,
                        message.value(),
                        message.key(),
                        message.partition() or 0,
                        timestamp=message.timestamp()[1],
                    )
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.poll(0)


if __name__ == "__main__":
    main()
