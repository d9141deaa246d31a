"""Findings on real brokers: a flow whose mirror was written by hand, each topic with a fault of its own."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from failover.mm2.checkpoint import Checkpoint
from failover.mm2.offset_sync import OffsetSync
from failover.model.names import TopicPartition
from tests.system.pair import Pair
from tests.system.typed import AT_ONCE, by_name, findings, offsets, plan

MINUTE = 60_000
DAY = 24 * 60 * MINUTE


class Hand(NamedTuple):
    """Writes by hand what a mirror from ``fa`` to ``fb`` would have left; groups and topics have one prefix."""

    pair: Pair
    config: Path
    stem: str

    def name(self, what: str) -> str:
        return f"{self.stem}.{what}"

    def topic(self, what: str, *, mirrored: int, held: int, ago: int = 0, size: int = 10, **options: Any) -> str:
        """Makes a topic with ``held`` records on the source, written ``ago`` ms before, and so many copies."""
        topic = self.name(what)
        copies = options.pop("copies", 1)
        self.pair.create_topic("a", topic, options.pop("partitions", 1))
        self.pair.create_topic("b", f"fa.{topic}", copies, config=options.pop("config", None))
        self.write("a", topic, [(None, b"v" * size, ago)] * held)
        self.write("b", f"fa.{topic}", [(None, b"v" * size, ago)] * mirrored)
        if mirrored:
            self.sync(topic, 0, 0)
            self.sync(topic, mirrored - 1, mirrored - 1)
        return topic

    def sync(self, topic: str, upstream: int, downstream: int) -> None:
        record = OffsetSync(topic, 0, upstream, downstream)
        self.write("a", "mm2-offset-syncs.fb.internal", [(record.encode_key(), record.encode_value(), 0)])

    def checkpoint(self, group: str, topic: str, upstream: int, downstream: int, *, ago: int = 0) -> None:
        record = Checkpoint(group, topic, 0, upstream, downstream, b"")
        self.write("b", "fa.checkpoints.internal", [(record.encode_key(), record.encode_value(), ago)])

    def write(self, alias: str, topic: str, records: list[tuple[bytes | None, bytes, int]]) -> None:
        producer = self.pair.sides[alias].producer(batch_num_messages=1)
        now, faults = int(time.time() * 1000), []
        for key, value, ago in records:
            producer.produce(
                topic, value, key, 0, timestamp=now - ago, on_delivery=lambda error, _: faults.append(error)
            )
        assert producer.flush(20) == 0
        assert [error for error in faults if error is not None] == []

    def group(self, what: str, at: dict[str, int]) -> str:
        """Commits for a group on the source, partition 0 of each topic."""
        name = self.name(what)
        self.pair.commit("a", name, {(topic, 0): offset for topic, offset in at.items()})
        return name


@pytest.fixture(scope="module")
def hand(pair: Pair) -> Hand:
    pair.expect_topic(r"fa\..*|mm2-offset-syncs\.fb\.internal")
    compact = {"cleanup.policy": "compact"}
    pair.create_topic("a", "mm2-offset-syncs.fb.internal", config=compact)
    pair.create_topic("b", "fa.checkpoints.internal", config=compact)
    stem = pair.name("find")
    return Hand(pair, pair.config_path(aliases=("fa", "fb"), added={"fa->fb.topics": f"{stem}.*"}), stem)


class Scene(NamedTuple):
    """Is a plan of many groups and its findings by code."""

    made: dict[str, Any]
    found: dict[str, dict[str, Any]]
    groups: dict[str, str]
    topics: dict[str, str]
    state: Path


@pytest.fixture(scope="module")
def scene(hand: Hand, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    pair, state = hand.pair, tmp_path_factory.mktemp("findings")
    topics = {
        "plain": hand.topic("plain", mirrored=10, held=10),
        "large": hand.topic(
            "large", mirrored=3, held=5, ago=47 * MINUTE, size=5000, config={"max.message.bytes": "6000"}
        ),
        "gone": hand.topic("gone", mirrored=4, held=20),
        "anew": hand.topic("anew", mirrored=10, held=10),
        "thin": hand.topic("thin", mirrored=2, held=2, config={"min.insync.replicas": "2"}),
        "wide": hand.topic("wide", mirrored=2, held=2, partitions=3, copies=2),
        "bare": hand.topic("bare", mirrored=0, held=2),
    }
    # a record that the copy's topic does not take
    hand.write("a", topics["large"], [(None, b"v" * 9000, 47 * MINUTE)])
    hand.write("b", f"fa.{topics['large']}", [(None, b"v" * 5000, 47 * MINUTE)] * 2)
    hand.sync(topics["large"], 4, 4)
    groups = {
        "stale": hand.group("stale", {topics["plain"]: 9}),
        "rewound": hand.group("rewound", {topics["plain"]: 2}),
        "kept": hand.group("kept", {topics["plain"]: 7}),
        "streams": hand.group("streams", {topics["plain"]: 3}),
        "misnamed": hand.group("misnamed", {topics["plain"]: 3}),
        "many": hand.group("many", {topics[each]: 2 for each in ("large", "gone", "anew", "thin", "wide", "bare")}),
    }
    remote = f"fa.{topics['plain']}"
    hand.checkpoint(groups["stale"], remote, 4, 4, ago=3 * 60 * MINUTE)
    hand.checkpoint(groups["rewound"], remote, 9, 9, ago=MINUTE)
    hand.checkpoint(groups["rewound"], remote, 2, 2, ago=MINUTE)
    hand.checkpoint(groups["kept"], remote, 7, 7, ago=6 * DAY)
    pair.commit("b", groups["kept"], {(remote, 0): 7})
    plain_name = hand.name("onlyplain")
    pair.create_topic("b", plain_name)
    hand.checkpoint(groups["misnamed"], f"fa.{plain_name}", 1, 1, ago=MINUTE)
    pair.create_topic("a", f"{groups['streams']}-store-changelog")
    before = plan(pair, state=state, config=hand.config, code=4)
    pair.a.delete_records(topics["gone"], 0, 12)
    pair.a.recreate_topic(topics["anew"])
    hand.write("a", topics["anew"], [(None, b"new", 0)] * 3)
    # a clock that is ahead
    hand.checkpoint(groups["streams"], remote, 3, 3, ago=-60 * MINUTE)
    with pair.b.member("fa-mm2", [remote]), pair.b.member("failover.replicate.fa-fb", [remote]):
        made = plan(pair, state=state, config=hand.config, code=4)
    assert "source-recreated" not in findings(before)
    return Scene(made, findings(made), groups, topics, state)


CASES = {
    # code: severity, what stands in its subject, what it says
    "checkpoint-stale": ("warning", "stale", "by up to 5 records in 180 min"),
    "rewound-upstream": ("warning", "rewound", "a commit on the target from before stays ahead"),
    "naming-mismatch": ("error", "onlyplain", "checkpoints use default naming"),
    "mirror-stalled": ("warning", "large", "it has 9,000 bytes"),
    "source-truncated": ("error", "gone", "up to 8 records were deleted on fa"),
    "source-recreated": ("warning", "anew", "made anew"),
    "min-isr-unsatisfiable": ("warning", "thin", "min.insync.replicas=2; brokers from 3.7 on"),
    "partition-count-differs": ("warning", "wide", "another number of partitions"),
    "partition-uncovered": ("warning", "", "auto.offset.reset decides"),
    "streams-state": ("warning", "streams", "streams-store-changelog"),
    "subscription-changes": ("info", "", "must read other topics on fb"),
    "local-topic-missing": ("warning", "", "that producers will write are not on fb"),
    "two-writers": ("warning", "fa-mm2", "MirrorMaker 2 and failover replicate both run fa->fb"),
    "clock-skew": ("warning", "fa.checkpoints.internal on fb", "60 min ahead of this machine's clock"),
    "mm2-group-sync": ("warning", "kept", "equal MM2's checkpoints"),
}


@pytest.mark.parametrize("code", CASES)
def test_a_fault_on_real_brokers_is_found_and_named(hand: Hand, scene: Scene, code: str) -> None:
    severity, subject, message = CASES[code]
    said = scene.found[code]
    assert said["severity"] == severity, said
    assert subject in said["subject"], said
    assert message in said["message"], said
    assert said["remedy"]
    assert "not-checked" not in scene.found


def test_commits_that_are_old_are_about_to_expire(scene: Scene) -> None:
    told = [each for each in scene.made["findings"] if each["code"] == "offsets-expire"]
    assert [(each["severity"], each["subject"]) for each in told] == [
        ("warning", scene.groups["kept"]),
        ("info", "fb"),
    ]
    assert "6 days old and dropped after 7 days" in told[0]["message"]


def test_the_screen_names_the_step_after_each_finding(hand: Hand, scene: Scene) -> None:
    ran = hand.pair.run_cli("show", scene.made["id"], state=scene.state, config=hand.config)
    screen = ran.out if ran.code == 0 else hand.pair.run_cli("plan", state=scene.state, config=hand.config).out
    assert max(map(len, screen.splitlines())) <= 100
    for code in ("source-truncated", "min-isr-unsatisfiable", "local-topic-missing"):
        assert f"[{code}]" in screen
    assert "kafka-topics.sh" in screen


def test_local_topics_earliest_lets_a_latest_consumer_miss_nothing(hand: Hand, tmp_path: Path) -> None:
    pair = hand.pair
    topic = hand.topic("local", mirrored=5, held=5)
    group = hand.group("local", {topic: 5})
    pair.create_topic("b", topic, 2)
    made = plan(pair, group, state=tmp_path, config=hand.config)
    assert "--local-topics earliest" in findings(made)["local-topic-uncovered"]["remedy"]
    more = ("--local-topics", "earliest")
    made = plan(pair, group, state=tmp_path, config=hand.config, more=more)
    assert offsets(by_name(made)[group]) == {(f"fa.{topic}", 0): 5, (topic, 0): 0, (topic, 1): 0}
    assert "local-topic-uncovered" not in findings(made)
    ran = pair.run_cli("execute", *AT_ONCE, state=tmp_path, config=hand.config)
    assert ran.code == 0, ran.err
    assert offsets(by_name(ran.json())[group], "read_back")[topic, 1] == 0
    # producers come first, the consumers after them
    written = pair.produce("b", topic, 20)
    consumer = pair.b.consumer(group, auto_offset_reset="latest")
    consumer.subscribe([topic, f"fa.{topic}"])
    got: set[bytes | None] = set()

    def all_read() -> bool:
        got.update(m.value() for m in consumer.consume(50, 0.2) if m.error() is None)
        return got == {record.value for record in written}

    try:
        pair.b.until(all_read, what="the consumer has read what was written before it came")
    finally:
        consumer.close()
    run = ran.json()["id"]
    ran = pair.run_cli("verify", run, "--format", "json", state=tmp_path, config=hand.config)
    assert ran.code == 0, ran.err


def test_missing_acls_and_users_are_created_by_the_commands_it_prints(hand: Hand, tmp_path: Path) -> None:
    """What Kafka's own kafka-acls makes of the printed commands is what was missing."""
    from confluent_kafka.admin import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )

    pair = hand.pair
    topic = hand.topic("rights", mirrored=2, held=2)
    group = hand.group("rights", {topic: 2})
    user = f"it's {hand.stem} $(x)"
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    allow = AclPermissionType.ALLOW
    bindings = [
        AclBinding(ResourceType[kind], name, pattern, f"User:{user}", "*", AclOperation[operation], allow)
        for kind, name, pattern, operation in (
            ("TOPIC", topic, literal, "READ"),
            ("TOPIC", topic, literal, "WRITE"),
            ("GROUP", group[:-2], prefixed, "READ"),
            ("TRANSACTIONAL_ID", f"{hand.stem}-tx", literal, "WRITE"),
        )
    ]
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 5000)
    upsert = UserScramCredentialUpsertion(user, credential, b"secret")
    for made in pair.a.admin.create_acls(bindings, request_timeout=10).values():
        made.result(timeout=15)
    for done in pair.a.admin.alter_user_scram_credentials([upsert], request_timeout=10).values():
        done.result(timeout=15)
    mine = AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type]
        ResourcePatternType.ANY,
        f"User:{user}",
        None,  # type: ignore[arg-type]
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    try:
        plan_of = plan(pair, group, state=tmp_path, config=hand.config)
        missing = [acl for acl in plan_of["missing_acls"] if acl["principal"] == f"User:{user}"]
        assert {(acl["resource"], acl["pattern"], acl["name"], acl["operation"]) for acl in missing} == {
            ("topic", "literal", topic, "READ"),
            ("topic", "literal", f"fa.{topic}", "READ"),
            ("topic", "literal", topic, "WRITE"),
            ("group", "prefixed", group[:-2], "READ"),
            ("transactional-id", "literal", f"{hand.stem}-tx", "WRITE"),
        }
        assert {"name": user, "credentials": [["SCRAM-SHA-512", 5000]]} in plan_of["missing_users"]
        assert f"User:{user}" in findings(plan_of)["acl-missing"]["subject"]
        ran = pair.run_cli("plan", "--group", group, "--format", "kafka-acls", state=tmp_path, config=hand.config)
        assert ran.code == 0, ran.err
        admin = tmp_path / "admin.properties"
        admin.write_text("")
        lines = [line for line in ran.out.splitlines() if not line.startswith(("#", ":"))]
        ours = [line for line in lines if {user, f"User:{user}"} & {*shlex.split(line)}]
        tools = {"kafka-acls.sh": "org.apache.kafka.tools.AclCommand", "kafka-configs.sh": "kafka.admin.ConfigCommand"}
        commands = [line for line in ours if line.startswith(tuple(tools))]
        assert len(commands) == 5
        # each takes a JVM: the user, the topic with both its operations, the prefix of groups
        run = [line for line in commands if "kafka-configs" in line or "Write --topic" in line or "prefixed" in line]
        assert len(run) == 3
        for line in run:
            tool, *words = shlex.split(line.replace("$COMMAND_CONFIG", str(admin)).replace("$PASSWORD", "secret"))
            assert words[words.index("--bootstrap-server") + 1] == pair.bootstrap("b")
            pair.lab.run_tool(tools[tool], *words)
        after = plan(pair, group, state=tmp_path, config=hand.config)
        left = [acl["name"] for acl in after["missing_acls"] if acl["principal"] == f"User:{user}"]
        assert sorted(left) == sorted([f"fa.{topic}", f"{hand.stem}-tx"])
        assert user not in [each["name"] for each in after["missing_users"]]
    finally:
        for side in (pair.a, pair.b):
            for gone in side.admin.delete_acls([mine], request_timeout=10).values():
                gone.result(timeout=15)
            deletion = UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_512)
            for done in side.admin.alter_user_scram_credentials([deletion], request_timeout=10).values():
                done.exception(timeout=15)  # the target may never have got the user


def test_two_sources_of_one_topic_are_refused(hand: Hand, tmp_path: Path) -> None:
    """Where names are kept, two sources write one partition of the target."""
    pair = hand.pair
    topic = hand.name("shared")
    for alias in ("a", "b"):
        pair.create_topic(alias, topic)
        hand.write(alias, topic, [(None, b"x", 0)] * 3)
    group = hand.group("shared", {topic: 2})
    identity = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    config = pair.config_path(
        aliases=("ia", "ib"),
        added={
            "clusters": "ia, ic, ib",
            "ic.bootstrap.servers": pair.bootstrap("a"),
            "ic->ib.enabled": "true",
            "replication.policy.class": identity,
            "ia->ib.topics": topic,
            "ic->ib.topics": topic,
        },
    )
    pair.expect_topic(r"i[ac]\.checkpoints\.internal")
    for alias in ("ia", "ic"):
        pair.create_topic("b", f"{alias}.checkpoints.internal", config={"cleanup.policy": "compact"})
        record = Checkpoint(group, topic, 0, 2, 2, b"")
        hand.write("b", f"{alias}.checkpoints.internal", [(record.encode_key(), record.encode_value(), 0)])
    made = plan(pair, group, state=tmp_path, config=config, code=3, more=("--source", "ia", "--target", "ib"))
    [partition] = by_name(made)[group]["partitions"]
    assert (partition["action"], partition["reason"]) == ("refuse", "two-sources")
    assert TopicPartition(partition["topic"], 0) == TopicPartition(topic, 0)
