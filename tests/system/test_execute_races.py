"""What happens between two steps of an execution: members join, answers are lost, brokers go away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from failover.lab.fault import APIS
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from tests.system.executing import commits, put, running, target, write_plan
from tests.system.pair import Pair

AT_ONCE = ("--yes", "--settle", "0", "--format", "json")
COMMIT, FETCH = APIS["offset-commit"], APIS["offset-fetch"]


@pytest.fixture
def topic(pair: Pair) -> str:
    name = pair.create_topic("b", pair.name("race"), 1)
    pair.produce("b", name, 100)
    return name


@pytest.fixture
def proxy(pair: Pair) -> Any:
    yield pair.lab.proxy
    pair.lab.proxy.clear()


def statuses(run: Any) -> list[str]:
    return [p["status"] for g in run["groups"] for p in g["partitions"]]


def test_a_consumer_that_joins_between_recheck_and_commit_wins(
    pair: Pair, topic: str, proxy: Any, tmp_path: Path
) -> None:
    tp, group = TopicPartition(topic, 0), pair.name("joins")
    put(pair, group, {tp: Commit(3)})
    path = write_plan(pair, {group: {tp: 50}})
    rule = proxy.delay(6, where="request", api=COMMIT, times=1)
    with running(pair, "execute", str(path), *AT_ONCE, state=tmp_path, config=pair.lab.proxied_config) as process:
        pair.b.until(lambda: proxy.hits(rule) == 1, what="the commit is on its way")
        with pair.b.member(group, [topic], client_id="early-bird"):
            out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "early-bird" in out
    assert commits(pair, group) == {tp: Commit(3)}


def test_a_consumer_that_goes_on_between_commit_and_read_back_is_success(
    pair: Pair, topic: str, proxy: Any, tmp_path: Path
) -> None:
    tp, group = TopicPartition(topic, 0), pair.name("goes-on")
    path = write_plan(pair, {group: {tp: 50}})
    rule = proxy.delay(8, where="answer", api=COMMIT, times=1)
    with running(pair, "execute", str(path), *AT_ONCE, state=tmp_path, config=pair.lab.proxied_config) as process:
        pair.b.until(lambda: proxy.hits(rule) == 1, what="the commit was written")
        with pair.b.member(group, [topic]) as consumer:
            message = pair.b.until(lambda: consumer.poll(0.5), what="a record")
            assert message.offset() == 50
            consumer.commit(message=message, asynchronous=False)
            out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert '"read_back": 51' in out


def test_an_answer_cut_after_the_write_is_settled_by_reading_back(
    pair: Pair, topic: str, proxy: Any, tmp_path: Path
) -> None:
    tp, group = TopicPartition(topic, 0), pair.name("cut")
    rule = proxy.cut("answer", api=COMMIT, times=1)
    path = write_plan(pair, {group: {tp: 50}})
    ran = pair.run_cli("execute", str(path), *AT_ONCE, config=pair.lab.proxied_config, state=tmp_path)
    assert proxy.hits(rule) == 1
    assert (ran.code, statuses(ran.json())) == (0, ["committed"]), ran.err
    assert commits(pair, group) == {tp: Commit(50, b"m")}


@pytest.mark.parametrize("settled_by", ["show", "resume"])
@pytest.mark.parametrize("written", [True, False])
def test_an_outcome_nobody_can_tell_is_unknown_and_settled_later(  # noqa: PLR0917 - fixtures and rows of the table
    pair: Pair, topic: str, proxy: Any, tmp_path: Path, settled_by: str, written: bool
) -> None:
    tp, group = TopicPartition(topic, 0), pair.name("unknown")
    path = write_plan(pair, {group: {tp: 50}})
    rule = proxy.hold("answer" if written else "request", api=COMMIT, times=1)
    with running(
        pair, "execute", str(path), *AT_ONCE, "--timeout", "4", state=tmp_path, config=pair.lab.proxied_config
    ) as process:
        pair.b.until(lambda: proxy.hits(rule) == 1, what="the commit is on its way")
        proxy.close()
        out, err = process.communicate(timeout=90)
    assert (process.returncode, '"unknown"' in out) == (7, True), err
    assert (group in pair.b.groups()) is written
    (folder,) = tmp_path.glob("executions/*")
    silent = pair.run_cli("show", folder.name, "--timeout", "3", config=pair.lab.proxied_config, state=tmp_path)
    assert silent.code == 7
    proxy.clear()
    if settled_by == "show":
        shown = pair.run_cli("show", folder.name, "--format", "json", config=pair.lab.proxied_config, state=tmp_path)
        assert (shown.code, statuses(shown.json())) == (0, ["committed" if written else "failed"])
        if written:
            return
    resumed = pair.run_cli("execute", "--resume", folder.name, *AT_ONCE, state=tmp_path)
    assert (resumed.code, statuses(resumed.json())) == (0, ["committed"]), resumed.err
    assert commits(pair, group) == {tp: Commit(50, b"m")}


def test_a_broker_that_restarts_in_the_middle(breakable: Pair, tmp_path: Path) -> None:
    topic = breakable.create_topic("b", breakable.name("restart"), 1)
    breakable.produce("b", topic, 100)
    tp = TopicPartition(topic, 0)
    wanted = {breakable.name("restart"): {tp: 50} for _ in range(1500)}
    path = write_plan(breakable, wanted)
    with running(breakable, "execute", str(path), *AT_ONCE, state=tmp_path, config=breakable.lab.config) as process:
        breakable.b.until(
            lambda: any(b'"answer"' in j.read_bytes() for j in tmp_path.glob("executions/*/journal.ndjson")),
            what="the first groups are written",
            every=0.005,
        )
        breakable.lab.restart("b")
        out, err = process.communicate(timeout=120)
    assert process.returncode in (0, 7, 8), err
    if process.returncode == 0:
        assert '"outcome": "done"' in out
    else:
        (folder,) = tmp_path.glob("executions/*")
        resumed = breakable.run_cli("execute", "--resume", folder.name, *AT_ONCE, state=tmp_path)
        assert (resumed.code, set(statuses(resumed.json()))) == (0, {"committed"}), resumed.err
    assert all(commits(breakable, group) == {tp: Commit(50, b"m")} for group in list(wanted)[::100])


def test_coordinators_that_move_in_the_middle(three: Pair, tmp_path: Path) -> None:
    """The target is the side with three brokers; one of them leaves while groups are written."""
    topic = three.create_topic("a", three.name("moves"), 3)
    three.produce("a", topic, 300)
    places = [TopicPartition(topic, number) for number in range(3)]
    wanted = {three.name("moves"): dict.fromkeys(places, 50) for _ in range(1500)}
    path = write_plan(three, wanted, back=True)
    arguments = ("execute", str(path), *AT_ONCE, "--source", "b", "--target", "a")
    with running(three, *arguments, state=tmp_path, config=three.lab.config) as process:
        three.a.until(
            lambda: any(b'"answer"' in j.read_bytes() for j in tmp_path.glob("executions/*/journal.ndjson")),
            what="the first groups are written",
            every=0.005,
        )
        three.lab.stop("a/2")
        out, err = process.communicate(timeout=120)
    try:
        assert process.returncode in (0, 7, 8), err
        if process.returncode != 0:
            (folder,) = tmp_path.glob("executions/*")
            ran = three.run_cli("execute", "--resume", folder.name, *arguments[2:], state=tmp_path)
            out, code = ran.out, ran.code
            assert code == 0, ran.err
        assert '"outcome": "done"' in out
        with target(three, alias="a") as cluster:
            found = cluster.committed(list(wanted))
        assert {group: held for group, held in found.items() if held != dict.fromkeys(places, Commit(50, b"m"))} == {}
    finally:
        three.lab.restart("a/2")
