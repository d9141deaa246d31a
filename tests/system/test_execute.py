"""execute, show, history, verify, rollback and evict on a real broker."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.planning.fingerprint import fingerprint
from failover.planning.plan_file import encode_plan
from tests.system.executing import commits, make_plan, put, running, write_plan
from tests.system.pair import Pair

# what a Java broker keeps: any text, a NUL included (bytes that are no UTF-8 become U+FFFD in it)
ODD = Commit(3, "ödd\x00\n".encode(), 0)
AT_ONCE = ("--yes", "--settle", "0", "--format", "json")


@pytest.fixture
def topic(pair: Pair) -> str:
    name = pair.create_topic("b", pair.name("execute"), 2)
    pair.produce("b", name, 200)
    return name


def statuses(run: Any) -> dict[str, list[str]]:
    return {g["group"]: [p["status"] for p in g["partitions"]] for g in run["groups"]}


def test_there_and_back(pair: Pair, topic: str, tmp_path: Path) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    old, new = pair.name("old"), pair.name("new")
    put(pair, old, {first: ODD})
    path = write_plan(pair, {old: {first: 50, second: 60}, new: {first: 40}})

    dry = pair.run_cli("execute", str(path), "--dry-run", "--format", "json", state=tmp_path)
    assert (dry.code, [g["commits"] for g in dry.json()["groups"]]) == (0, [2, 1])
    assert commits(pair, old) == {first: ODD}

    ran = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path)
    assert ran.code == 0, ran.err
    run = ran.json()
    assert (run["kind"], run["outcome"], run["warnings"]) == ("failover.execution", "done", [])
    before = run["groups"][0]["partitions"][0]["before"]
    assert (before["offset"], before["metadata"], before["leader_epoch"]) == (3, ODD.metadata.decode(), 0)
    assert commits(pair, old) == {first: Commit(50, b"m"), second: Commit(60, b"m")}
    assert commits(pair, new) == {first: Commit(40, b"m")}

    again = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path)
    assert (again.code, again.json()["error"]["code"]) == (5, "plan-stale")

    history = pair.run_cli("history", "--local", "--format", "json", state=tmp_path).json()
    assert [(row["id"], row["outcome"], row["committed"]) for row in history["runs"]] == [(run["id"], "done", 3)]
    shown = pair.run_cli("show", run["id"], "--format", "json", state=tmp_path)
    assert (shown.code, shown.json()["groups"]) == (0, run["groups"])

    verified = pair.run_cli("verify", run["id"], "--format", "json", state=tmp_path)
    assert verified.code == 0, verified.err
    assert {p["verdict"] for g in verified.json()["groups"] for p in g["partitions"]} == {"held"}

    # on another machine, from the record's file alone
    record = tmp_path / "executions" / run["id"] / "execution.json"
    back = pair.run_cli("rollback", str(record), "--yes", "--format", "json", state=tmp_path / "elsewhere")
    assert back.code == 0, back.err
    assert back.json()["undoes"] == run["id"]
    assert commits(pair, old) == {first: ODD}
    assert commits(pair, new) == {}
    assert new not in pair.b.groups()


def test_another_machine_knows_what_was_done_by_the_topic_alone(pair: Pair, topic: str, tmp_path: Path) -> None:
    tp, group, other = TopicPartition(topic, 0), pair.name("shared"), pair.name("shared")
    path = write_plan(pair, {group: {tp: 50}, other: {tp: 60}})
    here, there = tmp_path / "here", tmp_path / "there"
    first = pair.run_cli("execute", str(path), *AT_ONCE, "--group", group, state=here)
    assert first.code == 0, first.err
    put(pair, group, {tp: Commit(90)})  # its consumers went on
    second = pair.run_cli("execute", str(path), *AT_ONCE, state=there)
    assert second.code == 0, second.err
    assert statuses(second.json()) == {group: ["unchanged"], other: ["committed"]}
    assert second.json()["continues"] == [first.json()["id"]]
    assert commits(pair, group)[tp].offset == 90
    third = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path / "third")
    assert (third.code, third.json()["error"]["code"]) == (5, "plan-stale")

    history = pair.run_cli("history", "-n", "500", "--format", "json", state=there).json()["runs"]
    (row,) = [row for row in history if row["id"] == first.json()["id"]]
    assert row["elsewhere"] != ""
    shown = pair.run_cli("show", first.json()["id"], "--format", "json", state=tmp_path / "third")
    assert (shown.code, shown.json()["groups"][0]["partitions"][0]["written"]) == (0, 50)
    back = pair.run_cli("rollback", second.json()["id"], "--yes", "--format", "json", state=tmp_path / "third")
    assert (back.code, statuses(back.json())) == (0, {other: ["committed"]})
    assert other not in pair.b.groups()
    undone = pair.run_cli("execute", str(path), *AT_ONCE, state=here)
    assert undone.code == 5
    assert "rolled back" in undone.json()["error"]["message"]


def test_the_topic_can_be_renamed_and_switched_off(pair: Pair, topic: str, tmp_path: Path) -> None:
    tp, own = TopicPartition(topic, 0), pair.name("mm2-ops-runs")
    named = pair.config_path(added={"failover.runs.topic": own})
    path = write_plan(pair, {pair.name("renamed"): {tp: 5}})
    assert pair.run_cli("execute", str(path), *AT_ONCE, config=named, state=tmp_path).code == 0
    assert pair.b.partitions(own) == [0]
    assert pair.b.topic_config(own)["message.timestamp.type"] == "LogAppendTime"
    before = pair.b.ends(own)
    off = pair.config_path(added={"failover.runs.topic": "off"})
    path = write_plan(pair, {pair.name("off"): {tp: 5}})
    assert pair.run_cli("execute", str(path), *AT_ONCE, config=off, state=tmp_path).code == 0
    assert pair.b.ends(own) == before


def test_an_active_group_is_left_and_done_with_wait_once_it_is_free(pair: Pair, topic: str, tmp_path: Path) -> None:
    tp, busy, free = TopicPartition(topic, 0), pair.name("busy"), pair.name("free")
    path = write_plan(pair, {busy: {tp: 50}, free: {tp: 60}})
    journals = tmp_path / "executions"
    with contextlib.ExitStack() as started:
        with pair.b.member(busy, [topic], client_id="app-7"):
            ran = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path)
            assert ran.code == 4
            assert statuses(ran.json()) == {busy: ["refused"], free: ["committed"]}
            assert "app-7" in ran.json()["groups"][0]["message"]
            assert commits(pair, busy) == {}
            arguments = ("execute", str(path), *AT_ONCE, "--wait", "60")
            process = started.enter_context(running(pair, *arguments, state=tmp_path, config=pair.lab.config))
            pair.b.until(
                lambda: sum(b"group-active" in j.read_bytes() for j in journals.glob("*/journal.ndjson")) == 2,
                what="the second execution waits",
            )
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert commits(pair, busy) == {tp: Commit(50, b"m")}
    assert commits(pair, free) == {tp: Commit(60, b"m")}
    assert '"unchanged"' in out


def test_the_second_operator_is_refused_while_the_first_one_works(pair: Pair, topic: str, tmp_path: Path) -> None:
    tp, busy = TopicPartition(topic, 0), pair.name("held")
    path = write_plan(pair, {busy: {tp: 50}})
    with pair.b.member(busy, [topic]):
        arguments = ("execute", str(path), *AT_ONCE, "--wait", "120")
        with running(pair, *arguments, state=tmp_path / "first", config=pair.lab.config) as first:
            pair.b.until(
                lambda: any(b"left" in j.read_bytes() for j in tmp_path.glob("first/executions/*/journal.ndjson")),
                what="the first execution waits",
            )
            second = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path / "second")
            assert (second.code, second.json()["error"]["code"]) == (3, "locked")
            assert f"(process {first.pid})" in second.json()["error"]["message"]
            forced = pair.run_cli("execute", str(path), *AT_ONCE, "--ignore-lock", state=tmp_path / "second")
            assert forced.code == 3
            assert statuses(forced.json()) == {busy: ["refused"]}
            first.kill()
            first.wait()
        # its process is known to be gone on this machine: nobody has to wait for its time to end
        third = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path / "third")
        assert (third.code, statuses(third.json())) == (3, {busy: ["refused"]})


def test_ctrl_c_leaves_a_stated_position_that_is_resumed(pair: Pair, topic: str, tmp_path: Path) -> None:
    tp, group = TopicPartition(topic, 0), pair.name("stopped")
    path = write_plan(pair, {group: {tp: 50}})
    arguments = ("execute", str(path), "--yes", "--settle", "60", "--format", "json")
    with running(pair, *arguments, state=tmp_path, config=pair.lab.config) as process:
        pair.b.until(lambda: list(tmp_path.glob("executions/*/journal.ndjson")), what="it began")
        pair.b.until(
            lambda: any(b"started" in j.read_bytes() for j in tmp_path.glob("executions/*/journal.ndjson")),
            what="it watches",
        )
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    (folder,) = tmp_path.glob("executions/*")
    assert f"failover execute --resume {folder.name}" in err
    assert group not in pair.b.groups()
    resumed = pair.run_cli("execute", "--resume", folder.name, *AT_ONCE, state=tmp_path)
    assert (resumed.code, resumed.json()["id"]) == (0, folder.name), resumed.err
    assert commits(pair, group) == {tp: Commit(50, b"m")}


def test_consumers_that_came_back_are_verified_and_not_rolled_back(pair: Pair, topic: str, tmp_path: Path) -> None:
    tp, group = TopicPartition(topic, 0), pair.name("returning")
    ran = pair.run_cli("execute", str(write_plan(pair, {group: {tp: 50}})), *AT_ONCE, state=tmp_path)
    run = ran.json()["id"]
    with pair.b.member(group, [topic]) as consumer:
        begun = consumer.poll(20)
        while begun is None or begun.partition() != 0:
            begun = consumer.poll(20)
        assert begun.offset() == 50
        consumer.commit(message=begun, asynchronous=False)
        verified = pair.run_cli("verify", run, "--for", "20", "--format", "json", state=tmp_path)
        assert verified.code == 0, verified.err
        assert verified.json()["groups"][0]["partitions"][0]["verdict"] == "advanced"
        assert verified.json()["verified"]["groups"][0]["seen"] is True
        active = pair.run_cli("rollback", run, "--yes", "--format", "json", state=tmp_path)
        assert (active.code, active.json()["groups"][0]["reasons"]) == (3, ["group-active"])
    # they left again; the journal remembers that they were there
    assert pair.run_cli("verify", run, state=tmp_path).code == 0
    refused = pair.run_cli("rollback", run, "--yes", "--format", "json", state=tmp_path)
    assert refused.code == 3
    assert "went on from 50 to 51" in refused.json()["groups"][0]["message"]
    assert commits(pair, group)[tp].offset == 51


def test_a_client_with_manual_assignment_is_found_out(pair: Pair, topic: str, tmp_path: Path) -> None:
    tp, group = TopicPartition(topic, 0), pair.name("manual")
    put(pair, group, {tp: Commit(3)})
    run = pair.run_cli("execute", str(write_plan(pair, {group: {tp: 50}})), *AT_ONCE, state=tmp_path).json()["id"]
    put(pair, group, {tp: Commit(70)})
    verified = pair.run_cli("verify", run, "--format", "json", state=tmp_path)
    assert (verified.code, verified.json()["groups"][0]["partitions"][0]["verdict"]) == (6, "overwritten")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_static_member_left_behind_is_evicted(pair: Pair, topic: str, tmp_path: Path, protocol: Any) -> None:
    tp, group = TopicPartition(topic, 0), pair.name("static")
    options = {} if protocol == "consumer" else {"session_timeout_ms": 45_000}
    with pair.b.member(group, [topic], protocol=protocol, group_instance_id="batch-1", client_id="batch", **options):
        pass  # closed, and a static member stays until its session is over
    path = write_plan(pair, {group: {tp: 50}})
    refused = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path)
    assert refused.code == 3
    assert "batch-1" in refused.json()["groups"][0]["message"]
    evicted = pair.run_cli("evict", "--group", group, "--static-only", "--yes", "--format", "json", state=tmp_path)
    assert evicted.code == 0, evicted.out + evicted.err
    assert [one["group_instance_id"] for one in evicted.json()["members"]] == ["batch-1"]
    done = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path)
    assert (done.code, commits(pair, group)) == (0, {tp: Commit(50, b"m")})
    assert pair.run_cli("show", evicted.json()["id"], state=tmp_path).code == 0


def test_a_live_client_that_is_evicted_joins_again(pair: Pair, topic: str, tmp_path: Path) -> None:
    group = pair.name("alive")
    with pair.b.member(group, [topic], client_id="app-9") as consumer:
        evicted = pair.run_cli("evict", "--group", group, "--yes", "--format", "json", state=tmp_path)
        assert [one["client_id"] for one in evicted.json()["members"]] == ["app-9"]
        pair.b.until(lambda: consumer.poll(0.05) is None and consumer.assignment(), what="the client has joined again")


def test_nobody_to_ask_and_no_yes_contacts_nothing(pair: Pair, topic: str, tmp_path: Path) -> None:
    group = pair.name("asked")
    path = write_plan(pair, {group: {TopicPartition(topic, 0): 5}})
    ran = pair.run_cli("execute", str(path), "--settle", "0", state=tmp_path)
    assert (ran.code, group in pair.b.groups()) == (2, False)


def test_a_plan_for_another_cluster_is_refused_whole(pair: Pair, topic: str, tmp_path: Path) -> None:
    group = pair.name("astray")
    made = make_plan(pair, {group: {TopicPartition(topic, 0): 5}})
    other = msgspec.structs.replace(made, target=msgspec.structs.replace(made.target, cluster_id="another"))
    path = tmp_path / "plan.json"
    path.write_bytes(encode_plan(msgspec.structs.replace(other, fingerprint=fingerprint(other))))
    ran = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path)
    assert ran.code == 5
    assert "another" in ran.json()["error"]["message"]
    assert group not in pair.b.groups()
