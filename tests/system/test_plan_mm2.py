"""plan and execute beside the real MirrorMaker 2: groups of every kind, judged by Kafka's own tool."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from failover.lab import MirrorOptions
from failover.lab.side import Protocol
from failover.model.names import TopicPartition
from tests.system.executing import running
from tests.system.pair import Pair
from tests.system.typed import AT_ONCE, by_name, findings, named, offsets, one_error, plan, told_by_kafka, world

FREE = {
    # name: where the group stands on the source
    "classic": {0: 200, 1: 77},
    "consumer": {0: 150, 1: 200},
    "empty": {0: 120, 1: 50},
    "pending": {0: 60, 1: 60},
}
HELD: dict[str, Protocol] = {"busy": "classic", "busy848": "consumer", "static": "classic", "static848": "consumer"}


class Scene(NamedTuple):
    """Is one topic of 200 records in each of two partitions, and groups by what they are."""

    pair: Pair
    topic: str
    remote: str
    groups: dict[str, str]
    state: Path


@pytest.fixture(scope="module")
def scene(mm2: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    from confluent_kafka import TopicPartition as Place

    topic = mm2.create_topic("a", mm2.name("t.plan"), 2)
    mm2.produce("a", topic, 400)
    remote = mm2.wait_mirrored(topic)
    groups = {kind: mm2.name(f"plan.{kind}") for kind in (*FREE, *HELD)}
    for kind, places in FREE.items():
        protocol: Protocol = "consumer" if kind == "consumer" else "classic"
        mm2.a.place(groups[kind], {(topic, p): offset for p, offset in places.items()}, protocol=protocol)
    for kind in HELD:
        mm2.commit("a", groups[kind], {(topic, 0): 100})
    mm2.b.place(groups["empty"], {(remote, 0): 5})
    producer = mm2.a.producer(transactional_id=groups["pending"], transaction_timeout_ms=300_000)
    producer.init_transactions(20)
    with contextlib.ExitStack() as members:
        with mm2.a.member(groups["pending"], [topic]) as consumer:
            producer.begin_transaction()
            producer.send_offsets_to_transaction([Place(topic, 0, 90)], consumer.consumer_group_metadata(), 20)
        for kind, protocol in HELD.items():
            options: dict[str, Any] = {"client_id": f"app-{kind}"}
            if kind.startswith("static"):
                options["group_instance_id"] = "pod-0"
            if kind == "static":
                # Its process goes, and it stays listed for its whole session. By the newer protocol the brokers decide
                # how long that is, here a few seconds: too short to be looked at in peace, so that one stays.
                with mm2.b.member(groups[kind], [remote], protocol=protocol, session_timeout_ms="300000", **options):
                    pass
            else:
                members.enter_context(mm2.b.member(groups[kind], [remote], protocol=protocol, **options))
        for kind, places in FREE.items():
            mm2.wait_checkpoint(groups[kind], topic, 0, upstream=places[0])
        yield Scene(mm2, topic, remote, groups, tmp_path_factory.mktemp("plan-mm2"))
        producer.abort_transaction(20)


def wanted(scene: Scene, kind: str) -> dict[tuple[str, int], int]:
    """Gives where a group belongs: the mirror copied each partition record for record."""
    return {(scene.remote, partition): offset for partition, offset in FREE[kind].items()}


def test_one_plan_tells_every_group_as_it_is(scene: Scene) -> None:
    made = plan(scene.pair, *scene.groups.values(), state=scene.state, code=4)
    found = {kind: by_name(made)[name] for kind, name in scene.groups.items()}
    for kind in FREE:
        group = found[kind]
        assert (kind, group["verdict"], group["reasons"]) == (kind, "ready", [])
        assert offsets(group) == wanted(scene, kind)
        assert {p["precision"] for p in group["partitions"]} == {"exact"}
        assert [p["reread_max"] for p in group["partitions"]] == [0, 0]
        assert group["subscribe"] == [scene.remote, scene.topic]
    assert {kind: (found[kind]["exists"], found[kind]["state"]) for kind in FREE} == {
        "classic": (False, "Dead"),
        "consumer": (False, "Dead"),
        "empty": (True, "Empty"),
        "pending": (False, "Dead"),
    }
    assert offsets(found["empty"], "target_committed") == {(scene.remote, 0): 5}
    for kind, protocol in HELD.items():
        group = found[kind]
        assert (group["verdict"], group["reasons"], group["type"]) == ("refused", ["group-active"], protocol)
        assert [member["client_id"] for member in group["members"]] == [f"app-{kind}"]
        assert offsets(group) == {}
    assert (found["busy"]["state"], found["busy848"]["state"]) == ("Stable", "Stable")
    assert [found[kind]["members"][0]["group_instance_id"] for kind in ("static", "static848")] == ["pod-0", "pod-0"]
    pending = findings(made)["offsets-pending"]
    assert scene.groups["pending"] in pending["subject"]
    assert offsets(found["pending"], "source_committed") == wanted(scene, "pending")
    # group sync is off in this mirror
    assert "mm2-group-sync" not in findings(made)
    assert made["summary"]["groups"] == {"ready": 4, "partial": 0, "refused": 4, "nothing": 0, "not_planned": 0}


def test_refused_members_are_named_on_the_screen_and_nothing_is_committed(scene: Scene, tmp_path: Path) -> None:
    held = [scene.groups[kind] for kind in HELD]
    ran = scene.pair.run_cli("plan", *named(held), state=tmp_path)
    assert ran.code == 3
    for kind in HELD:
        assert f"app-{kind}" in ran.out
    assert "pod-0" in ran.out
    assert "next: stop the members on b, then failover plan" in ran.out
    before = {group: scene.pair.committed("b", group) for group in held}
    ran = scene.pair.run_cli("execute", *named(held), "--yes", "--settle", "0", state=tmp_path)
    assert ran.code == 3, ran.err
    assert "REFUSED, nothing was written" in ran.out
    for kind in HELD:
        assert f"app-{kind}" in ran.out
    assert {group: scene.pair.committed("b", group) for group in held} == before


def test_what_is_committed_agrees_with_kafka_consumer_groups(scene: Scene) -> None:
    names = list(scene.groups.values())
    made = plan(scene.pair, *names, state=scene.state, code=4)
    ran = scene.pair.run_cli("execute", *AT_ONCE, state=scene.state)
    assert ran.code == 4, ran.err
    assert f"plan {made['id']}" in ran.err
    run = ran.json()
    assert (run["plan_id"], run["outcome"]) == (made["id"], "partial")
    for kind in FREE:
        assert offsets(by_name(run)[scene.groups[kind]], "read_back") == wanted(scene, kind)
    found = told_by_kafka(scene.pair, "b", names)
    assert found == {scene.groups[kind]: wanted(scene, kind) for kind in FREE}
    again = plan(scene.pair, *(scene.groups[kind] for kind in FREE), state=scene.state)
    assert {p["reason"] for group in again["groups"] for p in group["partitions"]} == {"already-there"}
    assert again["summary"]["partitions"] == {"commit": 0, "skip": 8, "refuse": 0}


def test_a_mistyped_name_is_an_error_with_near_names_and_creates_nothing(scene: Scene, tmp_path: Path) -> None:
    right = scene.groups["classic"]
    wrong = right.replace("classic", "clasic")
    before = world(scene.pair)
    for arguments in (["plan"], ["plan", "--source-down"], ["execute", "--yes"], ["execute", "--dry-run"]):
        said = one_error(scene.pair.run_cli(*arguments, "--group", wrong, state=tmp_path), 2, tmp_path)
        assert f"group {wrong}" in said
        assert right in said.partition("hint: did you mean")[2]
    assert world(scene.pair) == before


def test_group_sync_that_moves_commits_is_told_and_never_taken_for_a_client(pair: Pair, tmp_path: Path) -> None:
    topic, group = pair.create_topic("a", pair.name("sync.moving")), pair.name("sync.group")
    off = MirrorOptions(topics=topic, groups=group, checkpoint_seconds=1, refresh_seconds=1, flush_seconds=1)
    on = msgspec.structs.replace(off, sync_group_offsets=True)
    with pair.mirror(on, aliases=("gs", "gt")) as config:
        target = TopicPartition(f"gs.{topic}", 0)

        def produce() -> int:
            pair.produce("a", topic, 60)
            pair.wait_mirrored(topic, flow="gs")
            return pair.ends("a", topic)[0][1]

        def moved() -> int:
            return pair.committed("b", group).get(target, -1)

        def followed(to: int) -> None:
            """Waits until MirrorMaker 2 itself moved the target's commit."""
            pair.b.until(lambda: moved() == to, what=f"MirrorMaker 2 moves {group} to {to}", seconds=90)

        def consumed() -> None:
            end = produce()
            pair.commit("a", group, {(topic, 0): end})
            followed(end)

        # once by the configuration, and once by a configuration that does not know of it: two looks tell
        unaware, apart = pair.config_path(aliases=("gs", "gt"), options=off), tmp_path / "apart"
        consumed()
        made = plan(pair, group, state=tmp_path, config=config)
        plan(pair, group, state=apart, config=unaware)
        assert (by_name(made)[group]["verdict"], by_name(made)[group]["reasons"]) == ("ready", [])
        assert findings(made)["mm2-group-sync"]["severity"] == "error"
        consumed()
        ran = pair.run_cli("plan", "--group", group, state=tmp_path, config=config)
        assert (ran.code, "commits-moving" in ran.out) == (0, False)
        assert "MM2 group sync is ON: stop MM2 before consumers start." in ran.out
        made = plan(pair, group, state=apart, config=unaware)
        assert (by_name(made)[group]["verdict"], by_name(made)[group]["reasons"]) == ("ready", [])
        assert findings(made)["mm2-group-sync"]["severity"] == "error"
        assert "moved to MM2's checkpoints" in findings(made)["mm2-group-sync"]["message"]

        # it moves the commit while execute watches: not past the plan, so the plan stays right
        end = produce()
        pair.lab.freeze("mm2-gs-gt")
        pair.commit("a", group, {(topic, 0): end})
        arguments = ("execute", "--group", group, "--yes", "--settle", "6", "--format", "json")
        own = tmp_path / "own"
        with running(pair, *arguments, state=own, config=config) as process:
            journals = own / "executions"
            pair.b.until(lambda: list(journals.glob("*/journal.ndjson")), what="the execution begins")
            pair.lab.thaw("mm2-gs-gt")
            followed(end)
            assert process.poll() is None
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, out + err
        assert json.loads(out)["groups"][0]["partitions"][0]["status"] == "unchanged"
        assert moved() == end
