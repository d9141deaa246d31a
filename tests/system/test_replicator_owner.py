"""Who may copy a flow and how fast: rights that are missing, a second worker, MirrorMaker 2 itself, a rate."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from failover.lab import ADMIN, APP
from failover.model import TopicPartition
from tests.system.pair import Pair
from tests.system.replicating import Flow, contents

if TYPE_CHECKING:
    from confluent_kafka.admin import AclBinding, AclBindingFilter

UNFENCED = "exact for one worker, not fenced against a second"
RATE, SIZE, RECORDS = 400_000, 10_000, 160


@contextlib.contextmanager
def allowed(pair: Pair, *rights: tuple[str, str, str]) -> Iterator[None]:
    """Gives APP rights on the target, each (kind of resource, beginning of its name, operation), within the block."""
    from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

    bindings = [
        AclBinding(
            ResourceType[kind],
            name,
            ResourcePatternType.PREFIXED,
            f"User:{APP}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for kind, name, operation in rights
    ]
    admin = pair.b.admin
    for made in admin.create_acls(bindings, request_timeout=10).values():
        made.result(timeout=15)
    try:
        yield
    finally:
        for gone in admin.delete_acls([filter_of(binding) for binding in bindings], request_timeout=10).values():
            gone.result(timeout=15)


def filter_of(binding: AclBinding) -> AclBindingFilter:
    from confluent_kafka.admin import AclBindingFilter

    return AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )


def as_app(pair: Pair, topics: str, **settings: str) -> Flow:
    """Gives a flow whose worker may do everything on the source and is user APP on the target."""
    password = pair.lab.state.passwords[APP]
    login = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{APP}" password="{password}";'
    named = {f"failover.replicator.{key.replace('_', '.')}": text for key, text in settings.items()}
    return Flow(pair, topics, {"{target}.sasl.jaas.config": login, **named}, user=ADMIN)


def base(flow: Flow) -> list[tuple[str, str, str]]:
    """Gives the rights every worker needs, those on transactional ids and on copies apart."""
    return [
        ("TOPIC", f"mm2-offsets.{flow.source}.internal", "ALL"),
        ("BROKER", "kafka-cluster", "CREATE"),
        ("GROUP", f"{flow.source}-mm2", "DESCRIBE"),
    ]


def ids(flow: Flow) -> list[tuple[str, str, str]]:
    return [("TRANSACTIONAL_ID", f"failover|{flow.name}|", right) for right in ("WRITE", "DESCRIBE")]


def test_a_topic_that_may_not_be_written_holds_up_no_other(pair: Pair) -> None:
    stem = pair.name("acl")
    mine, theirs = (pair.create_topic("a", f"{stem}.{what}", 2) for what in ("mine", "theirs"))
    flow = as_app(pair, rf"{stem}\..*")
    for topic in (mine, theirs):
        pair.create_topic("b", flow.remote(topic), 2)
        pair.produce("a", topic, 20)
    rights = [("TOPIC", flow.remote(mine), "ALL"), *[("TOPIC", flow.remote(theirs), r) for r in ("READ", "DESCRIBE")]]
    write = ("TOPIC", flow.remote(theirs), "WRITE")
    with allowed(pair, *base(flow), *ids(flow), *rights), flow.worker() as worker:
        source, target = worker.copied(mine)
        assert contents(target) == contents(source)
        worker.says(f"{theirs}-0 ->", "stands still", "TOPIC_AUTHORIZATION_FAILED")
        assert sum(map(len, flow.copy([theirs]).values())) == 0
        with allowed(pair, write):
            source, target = worker.copied(theirs)
            assert contents(target) == contents(source)
        # taken away while it is copied
        pair.produce("a", theirs, 20)
        pair.produce("a", mine, 20)
        worker.says(f"{theirs}-0 ->", "stands still", "TOPIC_AUTHORIZATION_FAILED", times=2)
        worker.copied(mine)
        assert sum(map(len, flow.copy([theirs]).values())) == 20
        with allowed(pair, write):
            source, target = worker.copied(theirs)
            assert contents(target) == contents(source)
            worker.stop()
        assert not worker.lines(UNFENCED)


def test_without_rights_on_transactional_ids_it_says_what_that_costs(pair: Pair) -> None:
    stem = pair.name("acl")
    topic = pair.create_topic("a", f"{stem}.free", 2)
    flow = as_app(pair, rf"{stem}\..*")
    pair.produce("a", topic, 20)
    with allowed(pair, *base(flow), ("TOPIC", flow.remote(topic), "ALL")), flow.worker() as worker:
        source, target = worker.copied(topic)
        assert contents(target) == contents(source)
        [said] = worker.lines(UNFENCED)  # by both shards together
        assert f"WARNING flow {flow.name}: " in said
        assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in said
        assert said.endswith(f"grant WRITE and DESCRIBE on transactional ids that begin with failover|{flow.name}|")
        worker.stop()


def test_where_the_fence_is_required_nothing_is_written_without(pair: Pair) -> None:
    stem = pair.name("acl")
    topic, later = pair.create_topic("a", f"{stem}.kept", 2), f"{stem}.later"
    flow = as_app(pair, rf"{stem}\..*", exactly_once="required")
    pair.produce("a", topic, 20)
    with allowed(pair, *base(flow), ("TOPIC", flow.remote(stem), "ALL")), flow.worker() as worker:
        worker.says("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
        pair.create_topic("a", later)
        worker.says("Created topic", flow.remote(later))  # a look at the topics later
        assert pair.ends("b", flow.remote(topic)) == {0: (0, 0), 1: (0, 0)}
        assert not worker.lines(UNFENCED)
        with allowed(pair, *ids(flow)):
            source, target = worker.copied(topic)
            assert contents(target) == contents(source)
            worker.stop()


def test_a_flow_is_not_shared_without_the_rights_for_it(pair: Pair) -> None:
    """Each that is missing is named in its turn; without a fence, who wakes up late would write into another's part."""
    stem = pair.name("acl")
    topic = pair.create_topic("a", f"{stem}.shared", 2)
    flow = as_app(pair, rf"{stem}\..*")
    group = f"failover.replicate.{flow.source}-{flow.target}"
    topics = [("TOPIC", name, "ALL") for name in (flow.remote(stem), f"mm2-failover-shards.{flow.source}.internal")]
    with allowed(pair, *base(flow), *topics), contextlib.ExitStack() as granted:
        for kind, name, rights in (
            ("GROUP", group, ("READ", "DESCRIBE")),
            ("TRANSACTIONAL_ID", f"failover|{flow.name}|", ("WRITE", "DESCRIBE")),
        ):
            ran = pair.run_cli("replicate", "--group-id", config=flow.config)
            assert ran.code == 8, ran.err
            assert f"hint: grant {' and '.join(rights)}" in ran.err
            assert name in ran.err.partition("hint: ")[2]
            granted.enter_context(allowed(pair, *((kind, name, right) for right in rights)))
        pair.produce("a", topic, 20)
        with flow.worker("--group-id") as worker:
            source, target = worker.copied(topic, seconds=90)
            assert contents(target) == contents(source)
            worker.stop()


def test_a_second_worker_takes_over_and_the_first_says_so(pair: Pair) -> None:
    stem = pair.name("two")
    topic = pair.create_topic("a", f"{stem}.x", 3)
    flow = Flow(pair, rf"{stem}\..*")
    pair.produce("a", topic, 300)
    with flow.worker() as first:
        first.copied(topic)
        with flow.worker() as second:
            for number in range(3):
                second.says(f"{topic}-{number} ->", "from source offset")
            pair.produce("a", topic, 300)
            assert first.ended() == 3, first.log
            [said] = first.lines("error:")
            successor = f"{socket.gethostname()} (process {second.pid})"
            assert said.startswith(f"error: flow {flow.name}: another worker has taken over, {successor}")
            assert first.lines("hint:", "stop it and start this one")
            assert "Traceback" not in first.log
            source, target = second.copied(topic)
            assert contents(target) == contents(source)
            second.stop()
    assert contents(flow.copy([topic])) == contents(source)


def test_beside_mirror_maker_it_does_not_start(pair: Pair) -> None:
    """The real one is asked in test_replicator_positions; what tells of it is a member of its group."""
    stem = pair.name("beside")
    topic = pair.create_topic("a", f"{stem}.x")
    pair.create_topic("b", stem)
    flow = Flow(pair, rf"{stem}\..*")
    with pair.b.member(f"{flow.source}-mm2", [stem]):
        ran = pair.run_cli("replicate", config=flow.config)
        assert (ran.code, ran.out) == (3, "")
        assert f"error: MirrorMaker 2 runs {flow.name}: group {flow.source}-mm2" in ran.err
        assert "hint: stop it" in ran.err
    assert flow.remote(topic) not in pair.b.topics()


def test_the_rate_that_is_set_holds(pair: Pair) -> None:
    """Bytes over the time the target took them in, by its own clock; a second's worth may come at once."""
    stem = pair.name("rate")
    topic = pair.create_topic("a", f"{stem}.x")
    flow = Flow(
        pair,
        rf"{stem}\..*",
        {"failover.replicator.rate.limit.bytes": str(RATE), "{source}.consumer.max.partition.fetch.bytes": str(SIZE)},
    )
    pair.create_topic("b", flow.remote(topic), config={"message.timestamp.type": "LogAppendTime"})
    pair.produce("a", topic, RECORDS, size=SIZE, batch_num_messages=1)
    with flow.worker() as worker:
        source, target = worker.copied(topic)
        worker.stop()
    assert contents(target, timestamps=False) == contents(source, timestamps=False)
    moments = [record.timestamp / 1000 for record in target[TopicPartition(topic, 0)]]
    held_back = RECORDS * SIZE - RATE - 2 * SIZE
    assert moments[-1] - moments[0] >= held_back / RATE
