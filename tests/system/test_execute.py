"""execute, show, history, verify and rollback on a real broker."""

from __future__ import annotations

import contextlib

import msgspec
import pytest

from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.planning.fingerprint import fingerprint
from failover.planning.plan_file import encode_plan
from tests.system.executing import commits, make_plan, put, running, write_plan
from tests.system.pair import Pair

ODD = Commit(3, b"\xff\x00odd", 0)
AT_ONCE = ("--yes", "--settle", "0", "--format", "json")


@pytest.fixture
def topic(pair: Pair) -> str:
    name = pair.create_topic("b", pair.name("execute"), 2)
    pair.produce("b", name, 200)
    return name


def statuses(run: dict) -> dict[str, list[str]]:
    return {g["group"]: [p["status"] for p in g["partitions"]] for g in run["groups"]}


def test_there_and_back(pair: Pair, topic: str, tmp_path):
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    old, new = pair.name("old"), pair.name("new")
    put(pair, old, {first: ODD})
    path = write_plan(pair, {old: {first: 50, second: 60}, new: {first: 40}})

    ran = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path)
    assert ran.code == 0, ran.err
    run = ran.json()
    assert (run["kind"], run["outcome"]) == ("failover.execution", "done")
    assert run["groups"][0]["partitions"][0]["before"] == {
        "offset": 3,
        "metadata": b"\xff\x00odd".decode(errors="replace"),
        "leader_epoch": 0,
        "metadata_base64": "/wBvZGQ=",
    }
    assert commits(pair, old) == {first: Commit(50, b"m"), second: Commit(60, b"m")}
    assert commits(pair, new) == {first: Commit(40, b"m")}

    again = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path)
    assert again.code == 5
    assert again.json()["error"]["code"] == "plan-stale"

    history = pair.run_cli("history", "--format", "json", state=tmp_path).json()
    assert [(row["id"], row["outcome"], row["committed"]) for row in history["runs"]] == [(run["id"], "done", 3)]
    assert pair.run_cli("show", run["id"], "--format", "json", state=tmp_path).json()["groups"] == run["groups"]

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


def test_an_active_group_is_left_and_done_with_wait_once_it_is_free(pair: Pair, topic: str, tmp_path):
    tp, busy, free = TopicPartition(topic, 0), pair.name("busy"), pair.name("free")
    path = write_plan(pair, {busy: {tp: 50}, free: {tp: 60}})
    with contextlib.ExitStack() as started:
        with pair.b.member(busy, [topic], client_id="app-7"):
            ran = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path)
            assert ran.code == 4
            assert statuses(ran.json()) == {busy: ["refused"], free: ["committed"]}
            assert "app-7" in ran.json()["groups"][0]["message"]
            assert commits(pair, busy) == {}
            arguments = ("execute", str(path), *AT_ONCE, "--wait", "60")
            process = started.enter_context(running(pair, *arguments, state=tmp_path, config=pair.lab.config))
            journals = tmp_path / "executions"
            pair.b.until(
                lambda: sum(b"group-active" in j.read_bytes() for j in journals.glob("*/journal.ndjson")) == 2,
                what="the second execution waits",
            )
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert commits(pair, busy) == {tp: Commit(50, b"m")}
    assert commits(pair, free) == {tp: Commit(60, b"m")}
    assert '"unchanged"' in out


def test_consumers_that_came_back_are_verified_and_not_rolled_back(pair: Pair, topic: str, tmp_path):
    tp, group = TopicPartition(topic, 0), pair.name("returning")
    ran = pair.run_cli("execute", str(write_plan(pair, {group: {tp: 50}})), *AT_ONCE, state=tmp_path)
    run = ran.json()["id"]
    with pair.b.member(group, [topic]) as consumer:
        begun = consumer.poll(20)
        while begun is None or begun.partition() != 0:
            begun = consumer.poll(20)
        assert begun.offset() == 50
        consumer.commit(begun, asynchronous=False)
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


def test_a_client_with_manual_assignment_is_found_out(pair: Pair, topic: str, tmp_path):
    tp, group = TopicPartition(topic, 0), pair.name("manual")
    put(pair, group, {tp: Commit(3)})
    run = pair.run_cli("execute", str(write_plan(pair, {group: {tp: 50}})), *AT_ONCE, state=tmp_path).json()["id"]
    put(pair, group, {tp: Commit(70)})
    verified = pair.run_cli("verify", run, "--format", "json", state=tmp_path)
    assert (verified.code, verified.json()["groups"][0]["partitions"][0]["verdict"]) == (6, "overwritten")


def test_nobody_to_ask_and_no_yes_writes_nothing(pair: Pair, topic: str, tmp_path):
    group = pair.name("asked")
    path = write_plan(pair, {group: {TopicPartition(topic, 0): 5}})
    ran = pair.run_cli("execute", str(path), "--settle", "0", state=tmp_path)
    assert ran.code == 2
    assert group not in pair.b.groups()


def test_a_plan_for_another_cluster_is_refused_whole(pair: Pair, topic: str, tmp_path):
    group = pair.name("astray")
    made = make_plan(pair, {group: {TopicPartition(topic, 0): 5}})
    other = msgspec.structs.replace(made, target=msgspec.structs.replace(made.target, cluster_id="another"))
    path = tmp_path / "plan.json"
    path.write_bytes(encode_plan(msgspec.structs.replace(other, fingerprint=fingerprint(other))))
    ran = pair.run_cli("execute", str(path), *AT_ONCE, state=tmp_path)
    assert ran.code == 5
    assert "another" in ran.json()["error"]["message"]
    assert group not in pair.b.groups()
