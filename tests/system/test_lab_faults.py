"""Faults the lab makes on purpose, on brokers of its own: they are killed, frozen and restarted here."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time

import pytest
from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as Place

from failover.errors import LabUsageError
from failover.lab import LabOptions, end_lab, process, up
from failover.lab.fault import api_key
from failover.lab.state import read_state

UP = """
import sys
from pathlib import Path
from failover.lab import LabOptions, up
up(Path(sys.argv[1]), LabOptions(quick=True))
"""


def test_a_killed_cluster_is_silent_and_comes_back_with_its_data(breakable):
    topic = breakable.create_topic("a", "kept", 2)
    breakable.produce("a", topic, 40)
    breakable.commit("a", "kept-group", {(topic, 0): 7})
    breakable.lab.kill("a")
    with pytest.raises(KafkaException):
        breakable.admin("a").list_topics(timeout=1)
    breakable.lab.restart("a")
    assert breakable.ends("a", topic) == {0: (0, 20), 1: (0, 20)}
    breakable.a.until(lambda: breakable.committed("a", "kept-group") == {(topic, 0): 7}, what="the commit is there")


def test_a_frozen_broker_keeps_connections_and_answers_once_thawed(breakable):
    breakable.lab.freeze("b/1")
    try:
        with pytest.raises(KafkaException):
            breakable.admin("b").list_topics(timeout=1)
        assert process.condition(breakable.lab.running("b/1")) == "frozen"
    finally:
        breakable.lab.thaw("b/1")
    breakable.b.until(lambda: breakable.b.topics() is not None, what="it answers again")


def test_a_commit_cut_before_its_answer_was_made_all_the_same(breakable):
    topic = breakable.create_topic("b", "doubt")
    breakable.produce("b", topic, 10)
    proxied = breakable.bootstrap("b", "proxy")
    consumer = breakable.b.consumer("doubt-group", bootstrap_servers=proxied)
    rule = breakable.lab.proxy.cut("answer", api=api_key("offset-commit"))
    try:
        # librdkafka may commit again over a new connection: then the caller never learns of the cut
        with contextlib.suppress(KafkaException):
            consumer.commit(offsets=[Place(topic, 0, 5)], asynchronous=False)
    finally:
        consumer.close()
    assert breakable.lab.proxy.hits(rule) == 1
    assert breakable.committed("b", "doubt-group") == {(topic, 0): 5}
    breakable.lab.proxy.clear()


def test_a_closed_proxy_leaves_the_direct_listener_alone(breakable):
    broker = breakable.lab.brokers("b/1")[0]
    breakable.lab.proxy.close(broker.proxy)
    try:
        with pytest.raises(KafkaException):
            breakable.b.consumer("x", bootstrap_servers=breakable.bootstrap("b", "proxy")).list_topics(timeout=1)
        assert "__consumer_offsets" in breakable.b.topics()
    finally:
        breakable.lab.proxy.clear()


def test_a_second_lab_in_the_same_folder_is_refused(breakable):
    with pytest.raises(LabUsageError, match="a lab is up already"):
        up(breakable.lab.folder, LabOptions(quick=True))


def test_status_and_faults_from_the_command_line(breakable):
    shown = breakable.run_cli("lab", "status", "--format", "json", state=breakable.folder)
    assert (shown.code, shown.err) == (0, "")
    assert {row["name"]: row["state"] for row in shown.json()["processes"]} == {
        "a/1": "running",
        "b/1": "running",
        "proxy": "running",
    }
    unknown = breakable.run_cli("lab", "fault", "kill", "c", state=breakable.folder)
    assert (unknown.code, unknown.out) == (2, "")
    assert unknown.err.splitlines() == ["error: the lab has no cluster c", "hint: it has: a, b"]
    nowhere = breakable.run_cli("lab", "status")
    assert nowhere.code == 2
    assert nowhere.err.startswith("error: no lab is up\nhint: ")


def test_traffic_from_the_command_line_leaves_groups_where_it_was_told(breakable):
    arguments = ["lab", "traffic", "--topic", "told", "--partitions", "2", "--count", "400", "--rate", "0"]
    arguments += ["--transaction", "40", "--aborts", "0.5", "--compression", "zstd", "--group", "late:30"]
    shown = breakable.run_cli(*arguments, "--format", "json", state=breakable.folder)
    assert shown.code == 0, shown.err
    [written] = shown.json()["written"]
    assert written["records"] == 400
    everything, committed = breakable.a.read("told"), breakable.a.read("told", isolation="read_committed")
    assert sum(map(len, everything.values())) == 400
    assert sum(map(len, committed.values())) == 400 - written["aborted"] < 400
    ends = breakable.ends("a", "told")
    assert breakable.committed("a", "late") == {("told", p): max(start, end - 30) for p, (start, end) in ends.items()}


def test_down_ends_what_a_killed_up_had_started(tmp_path):
    folder = tmp_path / "lab"
    starter = subprocess.Popen([sys.executable, "-c", UP, str(folder)])
    deadline = time.monotonic() + 60
    while True:
        state = read_state(folder)
        if state is not None and len(state.processes) == 2:
            break
        assert time.monotonic() < deadline
        time.sleep(0.01)
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    state = read_state(folder)
    assert state is not None
    started = state.processes
    assert all(process.alive(each) for each in started)
    assert sorted(end_lab(folder)) == ["primary/1", "standby/1"]
    assert not any(process.alive(each) for each in started)
    assert not (folder / "brokers").exists()
