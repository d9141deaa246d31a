from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from failover.errors import LabError, LabUsageError
from failover.lab import process
from failover.lab.down import end_lab
from failover.lab.java import find_java
from failover.lab.lab import Lab
from failover.lab.ports import free_ports
from failover.lab.state import Broker, Cluster, LabOptions, State, read_state, write_state


def sleeper(tmp_path: Path, name: str = "sleeper", mark: str = "none") -> process.Process:
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)", mark]
    started = process.spawn(name, command, log=tmp_path / f"{name}.log")
    deadline = time.monotonic() + 10
    while (tmp_path / f"{name}.log").read_text() != "up\n":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return started


def state(*processes: process.Process, marker: str = "no-such-marker") -> State:
    broker = Broker(alias="primary", node=1, folder=Path("/nowhere"), plaintext=1, controller=2)
    return State(
        marker=marker,
        created="2026-11-05T03:14:07+00:00",
        phase="ready",
        options=LabOptions(),
        java=Path("/nowhere/java"),
        clusters=(Cluster("primary", "AA", (broker,)),),
        passwords={"admin": "secret"},
        processes=processes,
    )


def test_a_process_ends_and_is_then_gone(tmp_path):
    running = sleeper(tmp_path)
    assert process.alive(running)
    assert process.condition(running) == "running"
    process.end(running)
    assert not process.alive(running)
    assert process.condition(running) == "gone"
    assert not process.send(running, signal.SIGTERM)


def test_a_frozen_process_is_told_apart_and_can_be_ended(tmp_path):
    running = sleeper(tmp_path)
    assert process.send(running, signal.SIGSTOP)
    deadline = time.monotonic() + 10
    while process.condition(running) != "frozen":
        assert time.monotonic() < deadline
    process.end(running, grace=5)
    assert not process.alive(running)


def test_a_reused_pid_is_not_signalled(tmp_path):
    running = sleeper(tmp_path)
    other = process.Process("earlier", running.pid, "1")
    assert not process.alive(other)
    assert not process.send(other, signal.SIGKILL)
    process.end(other)
    assert process.alive(running)
    process.end(running)


def test_a_program_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(LabError, match="ghost cannot be started"):
        process.spawn("ghost", ["/no/such/program"], log=tmp_path / "ghost.log")


def test_logs_and_state_are_for_their_owner_alone(tmp_path):
    process.end(sleeper(tmp_path))
    write_state(tmp_path, state())
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("sleeper.log", "lab.json")} == {0o600}


def test_the_state_comes_back_as_written(tmp_path):
    written = state(process.Process("primary/1", 4711, "99"))
    write_state(tmp_path, written)
    assert read_state(tmp_path) == written
    assert read_state(tmp_path / "elsewhere") is None


def test_a_state_that_cannot_be_read_is_a_usage_error(tmp_path):
    (tmp_path / "lab.json").write_text("{")
    with pytest.raises(LabUsageError, match="cannot be read"):
        read_state(tmp_path)


def test_a_lab_whose_processes_are_gone_is_stale_and_down_clears_it(tmp_path):
    write_state(tmp_path, state(process.Process("primary/1", os.getpid(), "1")))
    with pytest.raises(LabUsageError, match="none of its processes runs"):
        Lab.load(tmp_path)
    assert end_lab(tmp_path) == []
    assert read_state(tmp_path) is None


def test_no_lab_is_a_usage_error(tmp_path):
    with pytest.raises(LabUsageError, match="no lab is up"):
        Lab.load(tmp_path)


def test_down_ends_what_is_recorded_and_what_only_bears_the_mark(tmp_path):
    recorded, unrecorded = sleeper(tmp_path, "one"), sleeper(tmp_path, "two", mark="lab-mark-5c1d")
    stranger = sleeper(tmp_path, "three")
    write_state(tmp_path, state(recorded, marker="lab-mark-5c1d"))
    ended = end_lab(tmp_path)
    assert ended == ["one", f"pid {unrecorded.pid}"]
    assert [process.alive(each) for each in (recorded, unrecorded, stranger)] == [False, False, True]
    process.end(stranger)


def test_the_reaper_ends_a_lab_when_its_owner_closes_the_pipe(tmp_path):
    running = sleeper(tmp_path)
    write_state(tmp_path, state(running))
    reaper = subprocess.Popen([sys.executable, "-m", "failover.lab.reaper", str(tmp_path)], stdin=subprocess.PIPE)
    assert process.alive(running)
    reaper.communicate(timeout=30)
    assert not process.alive(running)
    assert read_state(tmp_path) is None


def test_ports_are_distinct_and_below_those_of_outgoing_connections():
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert all(20_000 <= port < 32_700 for port in ports)


def test_java_home_is_taken_and_named_when_unusable(tmp_path):
    with pytest.raises(LabError, match="no usable bin/java"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


@pytest.mark.parametrize(("text", "major"), [("17.0.15", 17), ("25.0.2", 25), ("21-ea", 21)])
def test_java_17_or_newer_in_path_is_taken(tmp_path, text, major):
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{text}\"' >&2\n")
    java.chmod(0o755)
    found = find_java({"PATH": str(tmp_path)})
    assert (found.executable, found.major) == (java, major)


def test_an_old_java_in_path_gives_way_to_the_bundled_one(tmp_path):
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'java version \"1.8.0_402\"' >&2\n")
    java.chmod(0o755)
    found = find_java({"PATH": str(tmp_path)})
    assert found.executable != java
    assert found.major >= 17


@pytest.mark.parametrize("aliases", [("a", "a"), ("a", ""), ("a", "b,c"), ("a->b", "c")])
def test_aliases_that_cannot_stand_in_a_configuration_are_refused(aliases):
    with pytest.raises(LabUsageError, match="two distinct cluster aliases"):
        LabOptions(aliases=aliases)


def test_a_listener_the_lab_lacks_is_named():
    cluster = state().cluster("primary")
    assert cluster.bootstrap() == "127.0.0.1:1"
    with pytest.raises(LabUsageError, match="no sasl listener"):
        cluster.bootstrap("sasl")
    with pytest.raises(LabUsageError, match="no cluster elsewhere"):
        state().cluster("elsewhere")


def test_broker_settings_of_the_user_win(tmp_path):
    from failover.lab.broker import server_properties

    options = LabOptions(settings={"num.partitions": "9"}, authorizer=True)
    cluster = state().cluster("primary")
    text = server_properties(cluster.brokers[0], cluster, options, passwords={}, certificates=None)
    settings = dict(line.split("=", 1) for line in text.splitlines())
    assert settings["num.partitions"] == "9"
    assert settings["super.users"] == "User:ANONYMOUS;User:admin"
    assert settings["process.roles"] == "broker,controller"
    assert settings["auto.create.topics.enable"] == "true"


@pytest.mark.parametrize(("count", "voters"), [(1, 1), (2, 1), (3, 3), (5, 3)])
def test_a_quorum_survives_the_death_of_one_of_three(count, voters):
    from failover.lab.broker import server_properties

    brokers = tuple(Broker("a", node, Path("/x"), 100 + node, 200 + node) for node in range(1, count + 1))
    cluster = Cluster("a", "AA", brokers)
    for broker in brokers:
        text = server_properties(broker, cluster, LabOptions(), passwords={}, certificates=None)
        settings = dict(line.split("=", 1) for line in text.splitlines())
        assert settings["controller.quorum.voters"].count("@") == voters
        assert ("controller" in settings["process.roles"]) == (broker.node <= voters)
        assert settings["offsets.topic.replication.factor"] == str(min(count, 3))


def test_options_survive_the_way_to_disk():
    options = LabOptions(brokers=(3, 1), settings={"a": "b"})
    assert msgspec.json.decode(msgspec.json.encode(options), type=LabOptions) == options
