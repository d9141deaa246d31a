"""Fills clusters quickly: many records, many groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from failover.lab.clients import admin_client
from failover.lab.side import Offsets, Side
from failover.model import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

T = TypeVar("T")
Message: TypeAlias = dict[str, bytes]
CLIENTS = 16
PER_CALL = 10_000
QUEUE = 400_000


def write(side: Side, topic: str, messages: Iterable[Message], *, partition: int = 0) -> None:
    """Writes messages (``value`` and maybe ``key``) into one partition in order."""
    producer = side.producer(
        linger_ms=50, batch_num_messages=PER_CALL, queue_buffering_max_messages=QUEUE, compression_type="lz4"
    )
    for some in _slices(messages, PER_CALL):
        # a message for which the queue has no room would be left out, and its successors not
        while len(producer) > QUEUE - PER_CALL:
            producer.poll(0.01)
        # the partition of each message in a batch is not honoured (measured on confluent-kafka 2.16.1)
        assert producer.produce_batch(topic, some, partition) == len(some)
    assert producer.flush(60) == 0


def write_numbers(side: Side, topic: str, partitions: int, numbers: Iterable[int]) -> None:
    """Writes one small record a number into each of a topic's partitions."""
    messages = [{"value": b"%d" % number} for number in numbers]
    for partition in range(partitions):
        write(side, topic, messages, partition=partition)


def commit_groups(side: Side, commits: Mapping[str, Offsets]) -> None:
    """Commits for groups without members over many connections: a broker answers each one request at a time."""
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka import TopicPartition as Place

    first = next(iter(commits))
    side.commit(first, commits[first])  # waits for the coordinators of a fresh cluster

    def some(client: AdminClient, groups: Sequence[str]) -> None:
        for group in groups:
            places = [Place(topic, number, offset) for (topic, number), offset in commits[group].items()]
            [future] = client.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)]).values()
            assert not [place.error for place in future.result(timeout=30).topic_partitions if place.error], group

    _over_clients(side, list(commits), some)


def committed_groups(side: Side, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """Reads the committed offsets of groups."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    found: dict[str, dict[TopicPartition, int]] = {}

    def some(client: AdminClient, mine: Sequence[str]) -> None:
        for group in mine:
            [future] = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
            places = future.result(timeout=30).topic_partitions
            found[group] = {TopicPartition(p.topic, p.partition): p.offset for p in places if p.offset >= 0}

    _over_clients(side, groups, some)
    return found


def delete_groups(side: Side, groups: Iterable[str]) -> None:
    """Deletes groups, those that do not exist excepted."""
    there = sorted(side.groups() & set(groups))
    if there:
        for future in side.admin.delete_consumer_groups(there, request_timeout=30).values():
            future.result(timeout=60)


def _over_clients(side: Side, items: Sequence[T], work: Any) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        clients = [admin_client(side.bootstrap) for _ in range(CLIENTS)]
        for done in [pool.submit(work, client, items[at::CLIENTS]) for at, client in enumerate(clients)]:
            done.result()


def _slices(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while some := list(itertools.islice(iterator, size)):
        yield some
