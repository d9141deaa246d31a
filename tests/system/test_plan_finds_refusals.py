"""What execute refuses, plan refuses: a plan made before a state arose, and one made in it, both executed."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from failover.execution.claims import Claim
from failover.execution.runlog import RunLog
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.primitives import Reader, Writer
from failover.lab import ADMIN, APP, MirrorOptions
from failover.model.names import TopicPartition
from tests.system.executing import target
from tests.system.pair import Pair, Ran
from tests.system.typed import AT_ONCE, by_name, error_object, plan
from tests.system.wire_side import plain

ALIASES = ("ps", "pt")
WANTED = {0: 30, 1: 20}
Found = tuple[tuple[str, str], ...]

DONE: Found = (("commit", "translated"),) * 2
THERE: Found = (("skip", "already-there"),) * 2


def refused(code: str) -> Found:
    return (("refuse", code),) * 2


# what a plan made in the state says of both partitions
STATES: dict[str, Found] = {
    "absent": DONE,
    "dead": DONE,
    "empty": DONE,
    "empty-consumer-protocol": DONE,
    "there-already": THERE,
    "ahead": (("skip", "would-rewind"), ("commit", "translated")),
    "stable": refused("group-active"),
    "stable-consumer-protocol": refused("group-active"),
    "static-member-closed": refused("group-active"),
    "rebalancing": refused("group-active"),
    "reconciling": refused("group-active"),
    "share": refused("group-type-unsupported"),
    "group-not-allowed": refused("not-authorized"),
    "group-hidden": refused("not-authorized"),
    "topic-not-allowed": refused("not-authorized"),
    "topic-hidden": refused("not-authorized"),
    "topic-missing": (("skip", "topic-missing"),) * 2,
    "recreated": refused("target-recreated"),
    "recreated-smaller": (("refuse", "target-recreated"), ("skip", "partition-missing")),
    "truncated": DONE,
    "set-back": DONE,
}

# where the older plan refuses though a plan made now need not: what it relies on is gone
OLDER: dict[str, Found] = {
    "truncated": (("refuse", "target-truncated"), ("commit", "translated")),
    "set-back": (("refuse", "commits-moving"), ("commit", "translated")),
}


class Results(NamedTuple):
    """Is the plan from before and the one made in the states, dry runs and executions of both; groups by name."""

    older: dict[str, Any]
    newer: dict[str, Any]
    dry: tuple[dict[str, Any], dict[str, Any]]
    ran: tuple[dict[str, Any], dict[str, Any]]


class Scene:
    """Holds one topic and one group for each state; the target is used as a user without all rights."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.prefix = pair.name("refuses")
        self.topics = {state: f"{self.prefix}.{state}" for state in STATES}
        self.groups = {state: f"{self.prefix}.{state}.g" for state in STATES}

    def remote(self, state: str) -> str:
        return f"{ALIASES[0]}.{self.topics[state]}"

    def places(self, state: str, *offsets: int) -> dict[tuple[str, int], int]:
        return {(self.remote(state), number): offset for number, offset in enumerate(offsets)}


@pytest.fixture(scope="module")
def scene(pair: Pair) -> Scene:
    """Is mirrored by a MirrorMaker 2 that ends before anything is planned: it would make missing topics again."""
    made = Scene(pair)
    for state, topic in made.topics.items():
        pair.create_topic("a", topic, 2)
        for number in range(2):
            pair.produce("a", topic, 60, partition=number)
        pair.commit("a", made.groups[state], {(topic, number): offset for number, offset in WANTED.items()})
    options = MirrorOptions(
        topics=rf"{made.prefix}\..*", groups=rf"{made.prefix}\..*", checkpoint_seconds=1, refresh_seconds=1
    )
    with pair.mirror(options, aliases=ALIASES):
        for state, topic in made.topics.items():
            pair.wait_mirrored(topic, flow=ALIASES[0])
            for number, offset in WANTED.items():
                pair.wait_checkpoint(made.groups[state], topic, number, upstream=offset, flow=ALIASES[0])
    return made


@pytest.fixture(scope="module")
def config(pair: Pair) -> Path:
    password = pair.lab.state.passwords[APP]
    login = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{APP}" password="{password}";'
    return pair.config_path(
        user=ADMIN, aliases=ALIASES, added={f"failover.cluster.{ALIASES[1]}.sasl.jaas.config": login}
    )


@pytest.fixture(scope="module")
def results(pair: Pair, scene: Scene, config: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    state = tmp_path_factory.mktemp("state")
    groups = list(scene.groups.values())
    with contextlib.ExitStack() as lasting:
        lasting.enter_context(_acls(pair, *(("ALLOW", kind, "*", "ALL") for kind in ("TOPIC", "GROUP")), *_CLUSTER))
        pair.commit("b", scene.groups["set-back"], scene.places("set-back", 10, 10))
        older = plan(pair, *groups, state=state, config=config)
        _bring_about(pair, scene, lasting)
        # what moves while nobody is a member is execute's to watch for, and a look before this one's to notice
        newer = plan(pair, *groups, state=state, config=config, code=4, more=["--allow-moving-commits"])
        dry = [_executed(pair, made, state, config, "--dry-run", "--format", "json") for made in (older, newer)]
        ran = [_executed(pair, made, state, config, *AT_ONCE) for made in (older, newer)]
        yield Results(by_name(older), by_name(newer), (dry[0], dry[1]), (ran[0], ran[1]))


_CLUSTER = (("ALLOW", "BROKER", "kafka-cluster", "ALL"),)


def _executed(pair: Pair, made: Any, state: Path, config: Path, *options: str) -> dict[str, Any]:
    ran = pair.run_cli("execute", made["id"], *options, state=state, config=config)
    found = by_name(ran.json())
    failed = {name: group for name, group in found.items() if "failed" in str(group)}
    assert failed == {}, f"{failed}"
    assert ran.code == 4, ran.err
    return found


def _bring_about(pair: Pair, scene: Scene, lasting: contextlib.ExitStack) -> None:
    b, group, remote, places = pair.b, scene.groups, scene.remote, scene.places
    pair.commit("b", group["dead"], places("dead", 10, 10))
    b.delete_group(group["dead"])
    b.place(group["empty"], places("empty", 10, 10))
    b.place(group["empty-consumer-protocol"], places("empty-consumer-protocol", 10, 10), protocol="consumer")
    pair.commit("b", group["there-already"], places("there-already", *WANTED.values()))
    pair.commit("b", group["ahead"], places("ahead", 45))
    pair.commit("b", group["set-back"], places("set-back", 5))
    lasting.enter_context(b.member(group["stable"], [remote("stable")]))
    name = "stable-consumer-protocol"
    lasting.enter_context(b.member(group[name], [remote(name)], protocol="consumer"))
    name = "static-member-closed"
    with b.member(group[name], [remote(name)], group_instance_id="batch-1", session_timeout_ms=300_000):
        pass
    for name, protocol, word in (
        ("rebalancing", "classic", "PreparingRebalance"),
        ("reconciling", "consumer", "Reconciling"),
    ):
        lasting.enter_context(_between_owners(pair, group[name], remote(name), protocol, word))
    _join_share_group(pair, group["share"], remote("share"))
    lasting.enter_context(
        _acls(
            pair,
            ("DENY", "GROUP", group["group-not-allowed"], "READ"),
            ("DENY", "GROUP", group["group-hidden"], "ALL"),
            ("DENY", "TOPIC", remote("topic-not-allowed"), "READ"),
            ("DENY", "TOPIC", remote("topic-hidden"), "ALL"),
        )
    )
    b.delete_topic(remote("topic-missing"))
    for name, partitions in (("recreated", 2), ("recreated-smaller", 1)):
        b.delete_topic(remote(name))
        b.create_topic(remote(name), partitions)
        for number in range(partitions):
            pair.produce("b", remote(name), 60, partition=number)
    b.delete_records(remote("truncated"), 0, 35)


@contextlib.contextmanager
def _between_owners(pair: Pair, group: str, topic: str, protocol: str, state: str) -> Iterator[None]:
    """Keeps a group rebalancing: its first member is asked to give partitions up, and does not serve the question."""
    settings = {"group_protocol": "consumer"} if protocol == "consumer" else {"session_timeout_ms": 60_000}
    first, second = (pair.b.consumer(group, **settings) for _ in range(2))
    try:
        first.subscribe([topic], on_revoke=lambda *_: None)
        pair.b.until(lambda: first.poll(0.05) is None and first.assignment(), what="the first member owns partitions")
        second.subscribe([topic])

        def between() -> bool:
            second.poll(0.05)
            with target(pair) as cluster:
                return cluster.describe_groups([group])[group].state == state

        pair.b.until(between, what=f"group {group} is {state}")
        yield
    finally:
        # both leave without waiting for each other
        second.close()
        first.close()


def _join_share_group(pair: Pair, group: str, topic: str) -> None:
    """Makes a group of share consumers by a member's first heartbeat; no client at hand speaks the protocol."""
    member = str(uuid.uuid4())

    def write(out: Writer, _: int) -> None:
        out.string(group)
        out.string(member)
        out.int32(0)  # the epoch of a member that joins
        out.string(None)
        out.strings((topic,))
        out.tags()

    def read(reader: Reader, _: int) -> int:
        reader.int32()
        return reader.int16()

    call: Call[int] = written(76, 1, 1, flexible_from=0, write=write, read=read)

    with plain(pair, "b") as (thread, cluster):

        async def join() -> int:
            async def send(node: int, _: list[str]) -> dict[str, Any]:
                return {group: await cluster.send(node, call)}

            answers: dict[str, Any] = await cluster.spread_groups([group], send)
            return answers[group]  # type: ignore[no-any-return]

        assert thread.run(join()) == 0


@contextlib.contextmanager
def _acls(pair: Pair, *rights: tuple[str, str, str, str]) -> Iterator[None]:
    """Gives or takes rights of APP on the target: (ALLOW or DENY, kind of resource, its name, operation)."""
    from confluent_kafka.admin import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
    )

    def fields(right: tuple[str, str, str, str]) -> tuple[Any, ...]:
        permission, kind, name, operation = right
        pattern = ResourcePatternType.LITERAL
        user = f"User:{APP}"
        return (
            ResourceType[kind],
            name,
            pattern,
            user,
            "*",
            AclOperation[operation],
            AclPermissionType[permission],
        )

    admin = pair.b.admin
    for made in admin.create_acls([AclBinding(*fields(right)) for right in rights], request_timeout=10).values():
        made.result(timeout=15)
    try:
        yield
    finally:
        filters = [AclBindingFilter(*fields(right)) for right in rights]
        for gone in admin.delete_acls(filters, request_timeout=10).values():
            assert len(gone.result(timeout=15)) == 1


def decided(group: Any) -> Found:
    return tuple((p["action"], p["reason"]) for p in group["partitions"])


def became(group: Any) -> Found:
    """Gives what became of each partition in a plan's own words."""
    words = {"committed": "commit", "unchanged": "commit", "refused": "refuse", "skipped": "skip"}
    return tuple((words[p["status"]], p["reason"]) for p in group["partitions"])


def rehearsed(group: Any) -> tuple[int, set[str]]:
    """Gives how many partitions would be written or are there, and why others would not."""
    codes = {code for _, _, code, _ in group["refused"]} | ({group["reason"]} if group["reason"] else set())
    return group["commits"] + group["unchanged"], codes


def of_an_older_plan(state: str) -> Found:
    """Gives what becomes of an older plan: it commits what was there to commit, and refuses what a new one leaves."""
    expected = OLDER.get(state, STATES[state])
    if expected == THERE:
        return DONE
    return tuple(("refuse", code) if action == "skip" else (action, code) for action, code in expected)


@pytest.mark.parametrize("state", STATES)
def test_both_find_the_same(scene: Scene, results: Results, state: str) -> None:
    name = scene.groups[state]
    assert decided(results.older[name]) == DONE
    assert decided(results.newer[name]) == STATES[state]

    expected = of_an_older_plan(state)
    assert became(results.ran[0][name]) == expected
    commits = sum(action == "commit" for action, _ in expected)
    assert rehearsed(results.dry[0][name]) == (commits, {code for action, code in expected if action == "refuse"})

    # the plan made in the state: nothing it commits is refused, and all it refuses stays refused
    assert became(results.ran[1][name]) == STATES[state]


@pytest.mark.parametrize("state", [state for state in STATES if state != "share"])
def test_what_was_refused_was_not_written(pair: Pair, scene: Scene, results: Results, state: str) -> None:
    held = pair.committed("b", scene.groups[state])
    for number, (action, _) in enumerate(STATES[state]):
        tp = TopicPartition(scene.remote(state), number)
        if action == "commit":
            assert held[tp] == (35 if (state, number) == ("truncated", 0) else WANTED[number])
        elif action == "refuse":
            assert tp not in held


def lone(ran: Ran, code: int, reason: str) -> None:
    assert (ran.code, error_object(ran)["code"]) == (code, reason), ran.err


def test_a_live_holder_of_the_lock(pair: Pair, scene: Scene, tmp_path: Path) -> None:
    config, group = pair.config_path(aliases=ALIASES), scene.groups["absent"]
    older = plan(pair, group, state=tmp_path, config=config, code=None)
    me = Claim("claim", uuid.uuid4().hex, "ann", "ops-1", "another-machine", 1, "execute plan of another")
    with target(pair) as cluster:
        log = RunLog(cluster, f"mm2-failover-runs.{ALIASES[0]}.internal")
        assert log.prepare() == ""
        log.append_claim(me)
        try:
            newer = plan(pair, group, state=tmp_path, config=config, code=3)
            assert decided(by_name(newer)[group]) == refused("locked")
            for made in (older, newer):
                lone(pair.run_cli("execute", made["id"], *AT_ONCE, state=tmp_path, config=config), 3, "locked")
        finally:
            log.append_claim(Claim("release", me.id))


def test_both_aliases_lead_to_one_cluster(pair: Pair, scene: Scene, tmp_path: Path) -> None:
    config, group = pair.config_path(aliases=ALIASES), scene.groups["stable"]
    older = plan(pair, group, state=tmp_path, config=config, code=None)
    astray = pair.config_path(aliases=ALIASES, added={f"{ALIASES[0]}.bootstrap.servers": pair.bootstrap("b")})
    newer = plan(pair, group, state=tmp_path, config=astray, code=3)
    assert decided(by_name(newer)[group]) == refused("same-cluster")
    ran = pair.run_cli("execute", newer["id"], *AT_ONCE, state=tmp_path, config=astray)
    assert (ran.code, became(ran.json()["groups"][0])) == (3, refused("same-cluster"))
    # the older plan names the cluster it was made for
    astray = pair.config_path(aliases=ALIASES, added={f"{ALIASES[1]}.bootstrap.servers": pair.bootstrap("a")})
    lone(pair.run_cli("execute", older["id"], *AT_ONCE, state=tmp_path, config=astray), 5, "plan-stale")
