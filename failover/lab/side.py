"""One cluster of a lab seen through clients: what tests, the demo and captures do to it."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from failover.errors import LabError
from failover.lab.clients import SILENT, admin_client, client_settings
from failover.lab.follower import Follower, Isolation
from failover.model import Record, TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient

_ASK_SECONDS = 3
_WAIT = 5  # for a future: a little longer than its request may take
_PATIENCE_SECONDS = 30
_TRIES = 20
# Kafka's and librdkafka's errors that end by themselves but are not marked as such everywhere
_PASSING = frozenset(
    {
        "_TIMED_OUT",
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "NOT_LEADER_FOR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        # metadata names the leader of a new partition before that broker knows it is one
        "UNKNOWN_TOPIC_OR_PART",
        # a broker that has just started does not know yet which epoch it leads
        "UNKNOWN_LEADER_EPOCH",
        "FENCED_LEADER_EPOCH",
        # a leader that has just been elected waits for its followers (Kafka: KIP-207)
        "OFFSET_NOT_AVAILABLE",
    }
)
Protocol = Literal["classic", "consumer"]
# the keys of a Mapping are invariant: a named tuple is no tuple there
Offsets = Mapping[tuple[str, int], int] | Mapping[TopicPartition, int]


class Produced(NamedTuple):
    """Is one record as written; ``committed`` is False when its transaction was aborted."""

    tp: TopicPartition
    offset: int
    key: bytes | None
    value: bytes
    committed: bool = True


class Side:
    """Talks to one cluster with clients that are made when first needed and kept until ``close``."""

    def __init__(self, alias: str, settings: Mapping[str, Any]) -> None:
        self.alias = alias
        self.settings = client_settings(str(settings["bootstrap.servers"]), settings)
        self._admin: AdminClient | None = None
        self._values = itertools.count()

    @property
    def bootstrap(self) -> str:
        return str(self.settings["bootstrap.servers"])

    @property
    def admin(self) -> AdminClient:
        """Is one AdminClient kept alive: its futures never complete once it is collected."""
        if self._admin is None:
            self._admin = admin_client(self.bootstrap, self.settings)
        return self._admin

    def close(self) -> None:
        """Drops the clients."""
        self._admin = None

    # -- topics --------------------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, *, replicas: int = -1, config: Mapping[str, str] | None = None
    ) -> str:
        """Creates a topic and waits until every broker knows a leader of each partition; returns its name."""
        from confluent_kafka.admin import NewTopic

        wanted = NewTopic(name, num_partitions=partitions, replication_factor=replicas, config=dict(config or {}))
        self.admin.create_topics([wanted], request_timeout=_ASK_SECONDS)[name].result(timeout=_WAIT)
        whole = list(range(partitions))
        self.until(
            lambda: self._everywhere(lambda: self.partitions(name) == whole),
            what=f"topic {name} has {partitions} partitions",
        )
        return name

    def delete_topic(self, name: str, *, patience: float = 90) -> None:
        """Deletes a topic and waits until metadata no longer lists it, ``patience`` seconds at most."""
        self.admin.delete_topics([name], request_timeout=_ASK_SECONDS)[name].result(timeout=_WAIT)
        self.until(
            lambda: self._everywhere(lambda: name not in self.topics()), what=f"topic {name} is gone", seconds=patience
        )

    def _everywhere(self, seen: Callable[[], bool]) -> bool:
        """Says whether each broker sees the same, as likely as can be: any of them answers a question at random."""
        brokers = self.bootstrap.count(",") + 1
        return all(seen() for _ in range(1 if brokers == 1 else 4 * brokers))

    def recreate_topic(self, name: str) -> None:
        """Deletes a topic and creates it with the same partition count and its own settings; its data is gone.

        A mirror's consumer that asks for the topic in between has the broker make it anew, with one partition
        (``auto.create.topics.enable``): then once more.
        """
        from confluent_kafka import KafkaError, KafkaException

        count, config = len(self.partitions(name)), self.topic_config(name)
        for _ in range(_TRIES):
            with contextlib.suppress(LabError):  # it is there again before anybody saw that it was gone
                self.delete_topic(name, patience=2)
            try:
                self.create_topic(name, count, config=config)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
            else:
                return
        raise LabError(
            f"{name} is made anew by somebody as soon as it is deleted", hint="failover lab fault kill mm2, then again"
        )

    def topics(self) -> set[str]:
        """Returns every topic's name, internal ones included."""
        return set(self._metadata())

    def partitions(self, topic: str) -> list[int]:
        """Returns a topic's partitions that have a leader, none for an unknown topic (which is not created)."""
        # asking metadata for one topic by name would create it where auto.create.topics.enable is true
        known = self._metadata().get(topic)
        return sorted(p for p, state in known.partitions.items() if state.leader >= 0) if known is not None else []

    def _metadata(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._ask(lambda: self.admin.list_topics(timeout=1).topics, "its metadata")
        return found

    def _ask(self, question: Callable[[], Any], what: str) -> Any:
        """Asks until there is an answer, again while what stands in the way passes by itself.

        librdkafka retries a request on the broker it chose first; where that one has just died,
        only a new request goes to another. Measured on confluent-kafka 2.16: a client that spoke
        to a group coordinator before it was killed gets no answer from it any more after its
        restart, so each silence is followed by a new client. Raises LabError naming ``what`` after 30 s, and at once
        KafkaException for any other error.
        """
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return question()
            except KafkaException as failure:
                if not (failure.args[0].retriable() or failure.args[0].name() in _PASSING):
                    raise
                self._admin = None
                if time.monotonic() > deadline:
                    raise LabError(
                        f"{self.alias}: no answer to {what} in {_PATIENCE_SECONDS} s: {failure}"
                    ) from failure
            time.sleep(0.05)

    def topic_config(self, topic: str) -> dict[str, str]:
        """Returns the settings a topic has of its own."""
        from confluent_kafka.admin import ConfigResource, ConfigSource, ResourceType

        asked = ConfigResource(ResourceType.TOPIC, topic)
        found = self._ask(
            lambda: self.admin.describe_configs([asked], request_timeout=_ASK_SECONDS)[asked].result(timeout=_WAIT),
            f"the settings of {topic}",
        )
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {
            name: entry.value
            for name, entry in found.items()
            if int(getattr(entry.source, "value", entry.source)) == own
        }

    def ends(self, topic: str, *, isolation: Isolation = "read_uncommitted") -> dict[int, tuple[int, int]]:
        """Returns log start and end (high watermark; last stable offset if read_committed) of each partition."""
        found: dict[int, tuple[int, int]] = self._ask(lambda: self._ends(topic, isolation), f"the ends of {topic}")
        return found

    def _ends(self, topic: str, isolation: Isolation) -> dict[int, tuple[int, int]]:
        from confluent_kafka import IsolationLevel
        from confluent_kafka import TopicPartition as Place
        from confluent_kafka.admin import OffsetSpec

        level = IsolationLevel.READ_COMMITTED if isolation == "read_committed" else IsolationLevel.READ_UNCOMMITTED

        places = [Place(topic, partition) for partition in self.partitions(topic)]
        if not places:
            return {}
        both = []
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):  # type: ignore[no-untyped-call]
            answers = self.admin.list_offsets(
                dict.fromkeys(places, spec), isolation_level=level, request_timeout=_ASK_SECONDS
            )
            both.append({place.partition: future.result(timeout=_WAIT).offset for place, future in answers.items()})
        return {partition: (start, both[1][partition]) for partition, start in sorted(both[0].items())}

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Moves a partition's log start up to ``before`` (an offset)."""
        from confluent_kafka import TopicPartition as Place

        [future] = self.admin.delete_records([Place(topic, partition, before)], request_timeout=_ASK_SECONDS).values()
        future.result(timeout=_WAIT)

    # -- records -------------------------------------------------------------------------------

    def producer(self, **settings: Any) -> Any:
        """Returns a confluent_kafka Producer; keywords are librdkafka settings with ``_`` for ``.``."""
        from confluent_kafka import Producer

        named = {key.replace("_", "."): value for key, value in settings.items()}
        return Producer({**self.settings, "linger.ms": 5, **named}, logger=SILENT)

    def produce(
        self,
        topic: str,
        count: int,
        *,
        partition: int | None = None,
        keys: int = 0,
        size: int = 0,
        transactions: Sequence[tuple[int, bool]] = (),
        **settings: Any,
    ) -> list[Produced]:
        """Writes ``count`` records with values unique in this cluster and returns them in the order they were sent.

        Spread evenly over the partitions unless ``partition`` is given; ``keys``: so many
        distinct keys (0: no key; records still go where the count says); ``size``: values padded
        to so many bytes. ``transactions``: (records, committed) per transaction, repeated until
        ``count`` is reached. Other keywords are producer settings (``compression_type="zstd"``).
        """
        # any broker answers, also one that has not heard yet of a topic another one knows
        known = f"topic {topic} has a partition with a leader"
        places = [partition] if partition is not None else self.until(lambda: self.partitions(topic), what=known)
        sent: list[Produced | None] = [None] * count
        faults: list[str] = []
        if transactions:
            settings.setdefault("transactional_id", f"lab-{topic}-{time.monotonic_ns()}")
        producer = self.producer(**settings)
        plan = itertools.cycle(transactions) if transactions else iter([(count, True)])
        if transactions:
            producer.init_transactions(_PATIENCE_SECONDS)
        index = 0
        while index < count:
            length, committed = next(plan)
            if transactions:
                producer.begin_transaction()
            for place in range(index, min(count, index + length)):
                key = b"k%d" % (place % keys) if keys else None
                value = (b"%s:%d" % (topic.encode(), next(self._values))).ljust(size, b".")
                producer.produce(
                    topic, value, key, places[place % len(places)], on_delivery=_collect(sent, place, committed, faults)
                )
                if place % 1000 == 0:
                    producer.poll(0)
            producer.flush(30)
            if transactions:
                (producer.commit_transaction if committed else producer.abort_transaction)(30)
            index += length
        done = [record for record in sent if record is not None]
        if faults or len(done) != count:
            raise LabError(f"{self.alias}: {len(done)} of {count} records written to {topic}: {faults[:1]}")
        return done

    def consumer(self, group: str = "lab-reader", **settings: Any) -> Consumer:
        """Returns a confluent_kafka Consumer that commits nothing by itself; keywords as in ``producer``."""
        from confluent_kafka import Consumer

        named = {key.replace("_", "."): value for key, value in settings.items()}
        fixed = {
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
        }
        return Consumer({**self.settings, **fixed, **named}, logger=SILENT)

    def read(
        self, topic: str, *, isolation: Isolation = "read_uncommitted", seconds: float = 60
    ) -> dict[int, list[Record]]:
        """Returns every data record of each partition as of now."""
        with Follower(self, topic, isolation=isolation) as follower:
            return follower.catch_up(seconds=seconds)

    # -- groups --------------------------------------------------------------------------------

    def commit(self, group: str, offsets: Offsets, *, metadata: str = "") -> None:
        """Commits for a group without members; raises KafkaException with a partition's error, LabError in the end."""
        what = f"a commit of group {group}"
        if metadata:
            self._commit_with_metadata(group, offsets, metadata)
            return
        from confluent_kafka import ConsumerGroupTopicPartitions
        from confluent_kafka import TopicPartition as Place

        def attempt() -> None:
            places = [Place(topic, partition, offset) for (topic, partition), offset in offsets.items()]
            asked = [ConsumerGroupTopicPartitions(group, places)]
            [future] = self.admin.alter_consumer_group_offsets(asked, request_timeout=_ASK_SECONDS).values()
            _raise_first(future.result(timeout=_WAIT).topic_partitions)

        self._ask(attempt, what)

    def _commit_with_metadata(self, group: str, offsets: Offsets, metadata: str) -> None:
        # measured on confluent-kafka 2.16: it appends a NUL to any metadata it is given and hides
        # it when reading, so another client writes what a Java consumer would
        from kafka import KafkaConsumer, OffsetAndMetadata
        from kafka import TopicPartition as Place
        from kafka.errors import KafkaError

        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=group, enable_auto_commit=False)
        try:
            wanted = {Place(*tp): OffsetAndMetadata(offset, metadata, -1) for tp, offset in offsets.items()}
            consumer.assign(list(wanted))
            consumer.commit(wanted, timeout_ms=_PATIENCE_SECONDS * 1000)
        except KafkaError as failure:
            raise LabError(f"{self.alias}: commit of group {group} failed: {failure}") from failure
        finally:
            consumer.close(autocommit=False)

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """Returns a group's committed offsets."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        def attempt() -> dict[TopicPartition, int]:
            asked = [ConsumerGroupTopicPartitions(group)]
            [future] = self.admin.list_consumer_group_offsets(asked, request_timeout=_ASK_SECONDS).values()
            places = future.result(timeout=_WAIT).topic_partitions
            _raise_first(places)
            return {TopicPartition(place.topic, place.partition): place.offset for place in places if place.offset >= 0}

        found: dict[TopicPartition, int] = self._ask(attempt, f"the commits of group {group}")
        return found

    def groups(self) -> set[str]:
        """Returns the ids of all groups."""
        found = self._ask(
            lambda: self.admin.list_consumer_groups(request_timeout=_ASK_SECONDS).result(timeout=_WAIT), "its groups"
        )
        return {group.group_id for group in found.valid}

    def delete_group(self, group: str) -> None:
        """Deletes a group that has no members."""
        [future] = self.admin.delete_consumer_groups([group], request_timeout=_ASK_SECONDS).values()
        future.result(timeout=_WAIT)

    @contextlib.contextmanager
    def member(
        self, group: str, topics: Iterable[str], *, protocol: Protocol = "classic", seconds: float = 30, **settings: Any
    ) -> Iterator[Consumer]:
        """Joins a group with one member, waits until it owns partitions and leaves at the end."""
        if protocol == "consumer":
            settings["group_protocol"] = "consumer"
        else:
            settings.setdefault("session_timeout_ms", 6000)
        consumer = self.consumer(group, **settings)
        try:
            consumer.subscribe(list(topics))
            deadline = time.monotonic() + seconds
            while not consumer.assignment():
                if time.monotonic() > deadline:
                    raise LabError(f"{self.alias}: a member of group {group} owns nothing after {seconds:.0f} s")
                # a record that arrives already is left for the caller
                message = consumer.poll(0.05)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    consumer.seek(_place_of(message))
                elif error.fatal():
                    raise LabError(f"{self.alias}: a member of group {group} cannot join: {error}")
            yield consumer
        finally:
            consumer.close()

    def place(self, group: str, offsets: Offsets, *, protocol: Protocol = "classic") -> None:
        """Makes a group of this protocol that stands at these offsets and has no members left."""
        from confluent_kafka import TopicPartition as Place

        with self.member(group, {topic for topic, _ in offsets}, protocol=protocol) as consumer:
            consumer.commit(
                offsets=[Place(topic, partition, offset) for (topic, partition), offset in offsets.items()],
                asynchronous=False,
            )

    def until(self, check: Callable[[], Any], *, what: str, seconds: float = 90, every: float = 0.05) -> Any:
        """Polls until ``check()`` returns something true and returns it; raises LabError naming ``what``."""
        deadline = time.monotonic() + seconds
        while not (value := check()):
            if time.monotonic() > deadline:
                raise LabError(f"{self.alias}: {what}: not within {seconds:.0f} s")
            time.sleep(every)
        return value


def _place_of(message: Any) -> Any:
    from confluent_kafka import TopicPartition as Place

    return Place(message.topic(), message.partition(), message.offset())


def _collect(sent: list[Produced | None], index: int, committed: bool, faults: list[str]) -> Callable[[Any, Any], None]:
    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            faults.append(str(error))
            return
        tp = TopicPartition(message.topic(), message.partition())
        sent[index] = Produced(tp, message.offset(), message.key(), message.value(), committed)

    return delivered


def _raise_first(places: Sequence[Any]) -> None:
    """Raises the first partition's error as KafkaException: a coordinator's errors come per partition."""
    from confluent_kafka import KafkaException

    for place in places:
        if place.error is not None:
            raise KafkaException(place.error)
