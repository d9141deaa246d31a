"""Topic settings and ACLs kept alike: the same topics, mirrored by the real MirrorMaker 2 and by the replicator."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from failover.config.clients import ClientSettings
from failover.kafka.wire.acls import Acl, AclOperation, AclPattern, AclPermission, create_acls, describe_acls
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.connection import Connection
from failover.kafka.wire.thread import WireThread
from failover.kafka.wire.topics import ConfigEntry, describe_topic_configs
from failover.lab import APP, MirrorOptions
from failover.lab.side import Side
from failover.model.names import Fault
from failover.replication import config_sync
from failover.replication.acl_sync import AclSync
from failover.replication.config_sync import ConfigSync
from failover.replication.topic_configs import config_rule
from tests.system.pair import Pair
from tests.system.replicating import set_config
from tests.system.test_plan_rights import Scene
from tests.system.wire_side import address, secured

DESCRIBE_CONFIGS, ALTER_CONFIGS, DESCRIBE_ACLS, CREATE_ACLS = 32, 44, 29, 30
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
READ, WRITE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.ALL
OF_TOPICS = [operation for operation in AclOperation if operation <= 11 and operation.name != "CLUSTER_ACTION"]


class Aliases(NamedTuple):
    """Names a mirror's clusters: ``first`` and ``second`` are both the source, each with a flow to ``target``.

    The second flow has ``use.defaults.from=source``.
    """

    first: str
    second: str
    target: str

    def settings(self, pair: Pair, topics: str) -> dict[str, str]:
        plus = f"{self.second}->{self.target}"
        found = {
            "clusters": ", ".join(self),
            f"{self.second}.bootstrap.servers": pair.bootstrap("a"),
            f"{plus}.enabled": "true",
            f"{plus}.topics": topics,
            f"{plus}.use.defaults.from": "source",
            "emit.heartbeats.enabled": "false",
            "heartbeats.replication.enabled": "false",
        }
        for flow in (f"{self.first}->{self.target}", plus):
            for what in ("topic.configs", "topic.acls"):
                found |= {f"{flow}.sync.{what}.enabled": "true", f"{flow}.sync.{what}.interval.seconds": "1"}
        return found


class Mirrors(NamedTuple):
    """Is the pair with both mirrors running: which topics they mirror, and by which aliases."""

    pair: Pair
    topics: list[str]
    theirs: Aliases
    ours: Aliases

    def both(self, which: str) -> tuple[str, str]:
        """Gives the prefixes that one of the flows has in either mirror."""
        return getattr(self.theirs, which), getattr(self.ours, which)

    def configs(self, alias: str) -> dict[str, dict[str, str]]:
        return {topic: self.pair.b.topic_config(f"{alias}.{topic}") for topic in self.topics}


@pytest.fixture(scope="module")
def mirrors(pair: Pair) -> Iterator[Mirrors]:
    stem = pair.name("sync")
    topics = [
        pair.create_topic("a", f"{stem}.compacted", 2, config={"cleanup.policy": "compact", "retention.ms": "7000000"}),
        pair.create_topic("a", f"{stem}.plain"),
        pair.create_topic("a", f"{stem}.zstd", config={"compression.type": "zstd", "min.insync.replicas": "1"}),
    ]
    theirs, ours = (Aliases(pair.name(f"{who}a"), pair.name(f"{who}c"), pair.name(f"{who}b")) for who in "mr")
    pattern = rf"{stem}\..*|\*"  # the wildcard of ACLs is a name as any other
    options = MirrorOptions(topics=pattern, refresh_seconds=1)
    for alias in (*theirs, *ours):
        pair.expect_topic(rf"{alias}\.sync-.*")
    config = pair.config_path(aliases=(ours.first, ours.target), options=options, added=ours.settings(pair, pattern))
    name = f"replicator-{ours.first}"
    added = theirs.settings(pair, pattern)
    with pair.mirror(options, aliases=(theirs.first, theirs.target), added=added):
        pair.lab.start_replicator(config, name=name)
        try:
            wanted = {f"{each}.{topic}" for mirror in (theirs, ours) for each in mirror[:2] for topic in topics}
            pair.b.until(lambda: wanted <= pair.b.topics(), what=f"topics {wanted}", seconds=120)
            yield Mirrors(pair, topics, theirs, ours)
            assert pair.lab.running(name) is not None, "the replicator ended"
        finally:
            if pair.lab.running(name) is not None:
                pair.lab.kill(name)


# -- settings -------------------------------------------------------------------------------------


def test_settings_follow_as_with_mirror_maker(mirrors: Mirrors) -> None:
    pair = mirrors.pair
    compacted, bare, zstd = mirrors.topics
    for alias in (*mirrors.both("first"), *mirrors.both("second")):
        set_config(pair.b, f"{alias}.{bare}", "retention.ms", "123456789")  # the source has none of its own
        set_config(pair.b, f"{alias}.{bare}", "unclean.leader.election.enable", "true")  # excluded: stays
        set_config(pair.b, f"{alias}.{zstd}", "compression.type", "gzip")
    set_config(pair.a, compacted, "cleanup.policy", "delete")
    set_config(pair.a, compacted, "retention.ms", "8000000")
    set_config(pair.a, zstd, "message.timestamp.type", "LogAppendTime")  # excluded
    set_config(pair.a, bare, "max.message.bytes", "2000000")
    wanted = {
        compacted: {"cleanup.policy": "delete", "retention.ms": "8000000"},
        bare: {"max.message.bytes": "2000000", "unclean.leader.election.enable": "true"},
        zstd: {"compression.type": "zstd"},
    }
    theirs, ours = mirrors.both("first")
    pair.b.until(lambda: mirrors.configs(theirs) == wanted, what="MirrorMaker 2's settings")
    pair.b.until(lambda: mirrors.configs(ours) == wanted, what="the replicator's settings")
    theirs, ours = mirrors.both("second")
    pair.b.until(
        lambda: mirrors.configs(theirs)[bare].get("retention.ms") == "604800000", what="MirrorMaker 2's settings"
    )
    pair.b.until(lambda: mirrors.configs(ours) == mirrors.configs(theirs), what="the same with the source's defaults")
    assert len(mirrors.configs(ours)[bare]) > 20
    for topic, own in wanted.items():
        assert own.items() <= mirrors.configs(ours)[topic].items()


def test_what_is_alike_costs_no_request(mirrors: Mirrors, asked: Counter[int]) -> None:
    pair, first = mirrors.pair, mirrors.ours.first
    targets = {topic: f"{first}.{topic}" for topic in mirrors.topics}
    pair.b.until(lambda: mirrors.configs(first) == mirrors.configs(mirrors.theirs.first), what="both are alike")
    with sides(pair) as (thread, source, target):
        configs = ConfigSync(source, target, topics=lambda: targets, rule=config_rule({}))
        for _ in range(3):
            thread.run(configs.sync())
        assert (asked[DESCRIBE_CONFIGS], asked[ALTER_CONFIGS]) == (6, 0)


def test_a_broker_names_what_it_does_not_take(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, asked: Counter[int]
) -> None:
    """The other settings arrive, and what is refused is sent no more."""
    topic = pair.create_topic("a", pair.name("refused"), config={"retention.ms": "7000000"})
    pair.create_topic("b", f"x.{topic}")
    of_other_rules = (ConfigEntry("no.such.setting", "1"), ConfigEntry("retention.bytes", "many"))

    async def described(cluster: WireCluster, topics: Iterable[str]) -> dict[str, Any]:
        found: dict[str, Any] = await describe_topic_configs(cluster, topics)
        return {name: entries + of_other_rules * (cluster.alias == "a") for name, entries in found.items()}

    monkeypatch.setattr(config_sync, "describe_topic_configs", described)
    with sides(pair) as (thread, source, target), caplog.at_level(logging.INFO):
        configs = ConfigSync(source, target, topics=lambda: {topic: f"x.{topic}"}, rule=config_rule({}))
        for _ in range(3):
            thread.run(configs.sync())
    assert pair.b.topic_config(f"x.{topic}") == {"retention.ms": "7000000"}
    assert asked[ALTER_CONFIGS] == 3
    told = [record.getMessage() for record in caplog.records]
    assert told[0] == f"Topic x.{topic} of b has retention.ms=7000000 now, as on a"
    assert sorted(line.partition(" (")[0] for line in told[1:]) == [
        "b does not take no.such.setting=1",
        "b does not take retention.bytes=many",
    ]


# -- ACLs -----------------------------------------------------------------------------------------


def test_the_acls_are_mirror_makers(mirrors: Mirrors) -> None:
    pair = mirrors.pair
    principal = f"User:{pair.name('acl')}"
    stem = mirrors.topics[0].partition(".")[0]
    unborn, other = f"{stem}.unborn", pair.name("other")
    matrix = [
        Acl(name, principal, host, operation, permission, pattern=pattern)
        for name in (*mirrors.topics, unborn, other, "*")
        for pattern in (AclPattern.LITERAL, AclPattern.PREFIXED)
        for operation in OF_TOPICS
        for permission, host in ((ALLOW, "*"), (DENY, "10.0.0.1"))
        if (name, pattern) != ("*", AclPattern.PREFIXED)
    ]
    late = Acl(mirrors.topics[1], principal, "10.0.0.2", READ, ALLOW)
    with removed(pair, principal), sides(pair) as (thread, source, target):

        def copies(alias: str) -> set[Acl]:
            found = thread.run(describe_acls(target))
            assert isinstance(found, tuple)
            mine = [acl for acl in found if acl.principal == principal]
            return {acl._replace(name=acl.name[len(alias) + 1 :]) for acl in mine if acl.name.startswith(f"{alias}.")}

        assert set(thread.run(create_acls(source, matrix)).values()) == {None}
        # 5 names that match; of 9 operations ALLOW WRITE is gone and ALLOW ALL has become ALLOW READ
        of_each = 9 - 2 + 9
        theirs, ours = mirrors.both("first")
        pair.b.until(lambda: len(copies(theirs)) == 5 * of_each, what="MirrorMaker 2's ACLs", every=0.2)
        pair.b.until(lambda: len(copies(ours)) >= 5 * of_each, what="the replicator's ACLs", every=0.2)
        assert copies(ours) == copies(theirs)
        assert {(acl.permission, acl.operation) for acl in copies(ours)}.isdisjoint({(ALLOW, WRITE), (ALLOW, ALL)})
        assert {acl.name for acl in copies(ours)} == {*mirrors.topics, unborn, "*"}
        # what is taken away on the source stays
        before = copies(ours)
        delete(pair.a, principal)
        assert set(thread.run(create_acls(source, [late])).values()) == {None}
        pair.b.until(lambda: late in copies(ours), what="the replicator's late ACL", every=0.2)
        pair.b.until(lambda: late in copies(theirs), what="MirrorMaker 2's late ACL", every=0.2)
        assert copies(ours) == copies(theirs) == before | {late}


def _number(found: tuple[Acl, ...] | Fault, principal: str) -> int:
    assert isinstance(found, tuple)
    return sum(acl.principal == principal for acl in found)


def test_many_unchanged_acls_cost_two_questions(pair: Pair, asked: Counter[int]) -> None:
    principal, stem = f"User:{pair.name('acl')}", pair.name("many")
    many = [Acl(f"{stem}.{number}", principal, "*", READ, ALLOW) for number in range(5_000)]
    with removed(pair, principal), sides(pair) as (thread, source, target):
        thread.run(create_acls(source, many))
        # the controller has taken them; the broker that is asked hears of them a little later
        pair.a.until(lambda: _number(thread.run(describe_acls(source)), principal) == len(many), what="the ACLs")
        acls = AclSync(source, target, replicates=lambda name: name.startswith(stem), rename="x.{}".format)
        asked.clear()
        thread.run(acls.sync())
        assert (asked[DESCRIBE_ACLS], asked[CREATE_ACLS]) == (2, 25)
        pair.b.until(lambda: _number(thread.run(describe_acls(target)), principal) == len(many), what="the copies")
        asked.clear()
        thread.run(acls.sync())
        assert (asked[DESCRIBE_ACLS], asked[CREATE_ACLS]) == (2, 0)
        found = thread.run(describe_acls(target))
        assert isinstance(found, tuple)
        assert {acl.name for acl in found if acl.principal == principal} == {f"x.{acl.name}" for acl in many}


def test_the_missing_right_is_named(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    principal, stem = f"User:{pair.name('acl')}", pair.name("right")
    acl = Acl(stem, principal, "*", READ, ALLOW)
    scene = Scene(pair, pair.lab.config, ("", ""), ("", ""))
    with removed(pair, principal), caplog.at_level(logging.INFO):
        with sides(pair, source=secured(pair, "a", user=APP, mechanism="SCRAM-SHA-512")) as (thread, source, target):
            acls = AclSync(source, target, replicates=lambda name: name == stem, rename="x.{}".format)
            thread.run(acls.sync())
        with sides(pair, target=secured(pair, "b", user=APP, mechanism="SCRAM-SHA-512")) as (thread, source, target):
            thread.run(create_acls(source, [acl]))
            acls = AclSync(source, target, replicates=lambda name: name == stem, rename="x.{}".format)
            thread.run(acls.sync())
            with scene.allowed(("BROKER", "kafka-cluster", "DESCRIBE")):
                thread.run(acls.sync())
            with scene.allowed(("BROKER", "kafka-cluster", "ALTER")):
                thread.run(acls.sync())
    assert [record.getMessage().partition("; grant ")[::2] for record in caplog.records] == [
        (
            "topic ACLs cannot be read on a: CLUSTER_AUTHORIZATION_FAILED",
            "DESCRIBE on the cluster a, or set sync.topic.acls.enabled=false",
        ),
        (
            "topic ACLs cannot be created on b: CLUSTER_AUTHORIZATION_FAILED",
            "ALTER (DESCRIBE is in it) on the cluster b, or set sync.topic.acls.enabled=false",
        ),
        (f"1 topic ACL of a on b: ALLOW READ for {principal} from * on x.{stem}", ""),
        ("topic ACLs of a are copied to b again", ""),
    ]


def test_brokers_without_an_authorizer(breakable: Pair, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), sides(breakable) as (thread, source, target):
        acls = AclSync(source, target, replicates=lambda _: True, rename="x.{}".format)
        for _ in range(3):
            thread.run(acls.sync())
        told = thread.run(create_acls(target, [Acl("t", "User:x", "*", READ, ALLOW)]))
    assert [record.getMessage() for record in caplog.records] == ["ACL sync off: no authorizer on a"]
    assert [reason.name for reason in told.values() if reason is not None] == ["SECURITY_DISABLED"]


# -- inside ---------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Counts the requests by API key."""
    counted: Counter[int] = Counter()
    submit = Connection.submit

    def counting(self: Connection, key: int, *rest: Any, **options: Any) -> Any:
        counted[key] += 1
        return submit(self, key, *rest, **options)

    monkeypatch.setattr(Connection, "submit", counting)
    return counted


@contextlib.contextmanager
def sides(
    pair: Pair, *, source: ClientSettings | None = None, target: ClientSettings | None = None
) -> Iterator[tuple[WireThread, WireCluster, WireCluster]]:
    """Opens both clusters, as a super user unless settings are given."""
    from_a = WireCluster(source or ClientSettings(address(pair.bootstrap("a"))), alias="a", silence=10)
    to_b = WireCluster(target or ClientSettings(address(pair.bootstrap("b"))), alias="b", silence=10)
    with WireThread() as thread:
        try:
            thread.run(from_a.open())
            thread.run(to_b.open())
            yield thread, from_a, to_b
        finally:
            thread.run(from_a.close())
            thread.run(to_b.close())


def delete(side: Side, principal: str) -> None:
    """Deletes every ACL of a principal."""
    from confluent_kafka.admin import (
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
    )

    nobody: Any = None
    everything = AclBindingFilter(
        *(ResourceType.ANY, nobody, ResourcePatternType.ANY, principal, nobody),
        *(AclOperation.ANY, AclPermissionType.ANY),
    )
    for gone in side.admin.delete_acls([everything], request_timeout=20).values():
        gone.result(timeout=25)


@contextlib.contextmanager
def removed(pair: Pair, principal: str) -> Iterator[None]:
    """Is a block at whose end both sides have no ACL of a principal."""
    try:
        yield
    finally:
        for side in (pair.a, pair.b):
            delete(side, principal)
