"""`failover connect` from the command line to a Connect cluster in this process."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from failover.cli.entry import main
from tests.unit.connect.fake_connect import SOURCE, FakeConnect
from tests.unit.connect.test_strimzi import OLD, calls, cluster
from tests.unit.connect.test_vendors import ARN

__all__ = ["cluster"]

CONFIG = """\
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:1
a->b.enabled = true
a->b.topics = orders.*
"""
Typed = Callable[..., tuple[int, str, str]]


class Facts:
    cluster_id = "target-id"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILOVER_CONFIG", raising=False)
    monkeypatch.setattr("failover.connect.waiting.EVERY", 0.005)
    monkeypatch.setattr("failover.connect.waiting.FAILED_FOR", 0.01)
    (tmp_path / "mm2.properties").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def typed(folder: Path, fake: FakeConnect, capsys: pytest.CaptureFixture[str]) -> Iterator[Typed]:
    """Runs `failover connect …` against the fake; gives exit code, stdout and stderr."""

    def run(*arguments: str, url: str | None = fake.url) -> tuple[int, str, str]:
        where = ["--url", url] if url else []
        with pytest.raises(SystemExit) as ended:
            main(["--state-dir", str(folder / "state"), "connect", *arguments, *where])
        captured = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return code, captured.out, captured.err

    return run  # type: ignore[return-value]


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> type[Facts]:
    """Stands for the flow's target, which a deployment asks for its id."""
    facts = type("Facts", (Facts,), {})

    class Cluster:
        def facts(self) -> type[Facts]:
            return facts

        def close(self) -> None:
            """Has nothing to close."""

    monkeypatch.setattr("failover.cli.connecting.open_cluster", lambda *_, **__: Cluster())
    return facts


def test_deploy_status_stop(typed: Typed, fake: FakeConnect, target):
    code, out, _ = typed("deploy", "--dry-run")
    assert (code, fake.connectors) == (0, {})
    assert "copies every topic from its start" in out
    code, out, err = typed("deploy", "--yes")
    assert code == 0, err
    assert set(fake.connectors) == {"a-b-source", "a-b-checkpoint", "a-b-heartbeat"}
    assert "3 connectors, all running" in out
    assert typed("status")[0] == 0
    assert "Everything is as it should be" not in typed("deploy", "--yes")[1]
    code, out, _ = typed("stop", "--yes")
    assert code == 0
    assert ": done" in out
    assert typed("status")[0] == 4
    fake.add("a-b-source", {**fake.connectors["a-b-source"]["config"], "topics": "other"}, "RUNNING")
    code, out, _ = typed("deploy", "--dry-run", "--format", "json")
    [changed] = [step for step in json.loads(out)["steps"] if step["action"] == "update"]
    assert changed["changes"] == [{"key": "topics", "before": "other", "after": "orders.*"}]


def test_deploy_refuses_a_connect_cluster_that_writes_elsewhere(typed: Typed, fake: FakeConnect, target):
    target.cluster_id = "another"
    code, _, err = typed("deploy", "--yes")
    assert code == 3
    assert "write to cluster target-id, and b is another" in err
    assert not any(request.startswith(("PUT", "POST")) for request in fake.requests)


def test_deploy_says_what_connect_finds_wrong_and_changes_nothing(typed: Typed, fake: FakeConnect, target):
    fake.errors = {"tasks.max": ["Invalid value x"]}
    code, out, _ = typed("deploy", "--yes")
    assert code == 3
    assert "tasks.max: Invalid value x" in out
    assert fake.connectors == {}


def test_deploy_ends_with_4_when_a_task_fails_and_shows_why(typed: Typed, fake: FakeConnect, target, monkeypatch):
    typed("deploy", "--yes")
    fake.fail("a-b-source")
    real = fake.add

    def add_broken(name: str, config: dict[str, str]) -> None:
        real(name, config)
        fake.fail(name)

    monkeypatch.setattr(fake, "add", add_broken)
    code, out, _ = typed("deploy", "--yes", "--set", "a->b.tasks.max=3")
    assert code == 4
    assert "a-b-source task 0 on w:8083: org.apache.kafka.connect.errors.ConnectException: no such topic" in out


@pytest.mark.parametrize("verb", ["deploy", "stop", "pause", "resume", "restart"])
def test_nobody_to_ask_changes_nothing(typed: Typed, fake: FakeConnect, target, verb):
    fake.add_flow()
    code, _, err = typed(verb)
    assert code == 2
    assert "--yes" in err
    assert not any(request.startswith(("PUT", "POST", "PATCH")) for request in fake.requests)


def test_strimzi_is_recognised_and_its_patch_printed(typed: Typed, fake: FakeConnect, folder: Path):
    fake.add_flow(strimzi=True)
    code, out, _ = typed("stop", "--yes")
    assert code == 3
    assert "sourceCluster: a" in out
    assert "state: stopped" in out
    assert set(fake.states().values()) == {"RUNNING"}
    code, out, _ = typed("stop", "--yes", "--by-rest", "--recheck", "0")
    assert (code, set(fake.states().values())) == (0, {"STOPPED"})


def test_failover_replicate_answers_under_strimzi_s_names_and_is_nobody_s(typed: Typed, fake: FakeConnect, target):
    fake.commit = ""
    fake.add_flow(strimzi=True)
    assert typed("stop", "--yes")[0] == 0
    assert set(fake.states().values()) == {"STOPPED"}
    assert not any(one["operator"] for one in json.loads(typed("list", "--format", "json")[1])["connectors"])
    code, _, err = typed("deploy", "--yes")
    assert code == 3
    assert "is failover replicate" in err


def test_an_operator_at_work_is_named_with_the_patch(typed: Typed, fake: FakeConnect):
    fake.add_flow(strimzi=True)
    fake.operator = 5
    code, out, _ = typed("pause", "--yes", "--by-rest", "--recheck", "2s")
    assert code == 6
    assert "Strimzi's operator, or another controller, put it back" in out
    assert "state: paused" in out


def test_kubectl_alone_is_enough(typed: Typed, fake: FakeConnect, cluster: Path):
    code, out, err = typed("stop", "--kubectl", "--yes", "--source", "a", "--target", "b", url=None)
    assert code == 0, err
    assert [call[0] for call in calls(cluster)].count("patch") == 1
    assert "a->b.MirrorSourceConnector" in out
    assert fake.requests == []
    assert typed("status", "a->b.MirrorSourceConnector", "--kubectl", url=None)[0] == 4


def test_a_vendor_s_commands_are_printed(typed: Typed, folder: Path):
    (folder / "mm2.properties").unlink()  # with it both clusters are asked, as they tell the state where no REST does
    code, out, _ = typed("status", url=ARN)
    assert code == 0
    assert "aws kafkaconnect describe-connector" in out
    assert typed("stop", "--yes", url=ARN)[0] == 3


def test_offsets_are_those_of_the_source_connector(typed: Typed, fake: FakeConnect):
    fake.add_flow()
    fake.stored["a-b-source"] = [
        {"partition": {"cluster": "a", "partition": 1, "topic": "t"}, "offset": {"offset": 41}}
    ]
    code, out, _ = typed("offsets", "--format", "json")
    assert code == 0
    assert json.loads(out)["offsets"][0]["connector"] == "a-b-source"
    assert "t-1" in typed("offsets")[1]


class PassingTime:
    """Is a clock that goes only while somebody sleeps."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_watch_restarts_what_fails(typed: Typed, fake: FakeConnect, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("failover.cli.connect_watch.time", PassingTime())
    fake.add_flow()
    fake.fail("a-b-source")
    arguments = ("--interval", "1s", "--for", "10s", "--backoff", "5s")
    code, out, _ = typed("watch", "--restart-failed", *arguments, "--format", "json")
    assert code == 0
    told: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    assert [row["what"] for row in told if row["connector"] == "a-b-source"] == [
        "first seen",
        "will be restarted in 5 s",
        "restarted (time 1)",
        "was FAILED",
    ]
    assert sum(request.startswith("POST") for request in fake.requests) == 1
    assert any("onlyFailed=true" in request for request in fake.requests)


def test_list_shows_the_others_too(typed: Typed, fake: FakeConnect):
    fake.add_flow()
    fake.add("jdbc", {"connector.class": "io.example.Jdbc"})
    assert "jdbc" not in typed("list")[1]
    code, out, _ = typed("list", "--every")
    assert code == 0
    assert "jdbc" in out


def test_the_settings_of_the_file_are_enough(typed: Typed, fake: FakeConnect, folder: Path):
    fake.credentials = "ops:hidden"
    fake.add_flow()
    lines = (f"failover.connect.url = {fake.url}", "failover.connect.user = ops", "failover.connect.password = hidden")
    (folder / "mm2.properties").write_text(CONFIG + "\n".join(lines) + "\n")
    code, out, err = typed("status", url=None)
    assert code == 0, err
    assert "hidden" not in out + err
    code, _, err = typed("status", "--config", str(folder / "none.properties"), url=None)
    assert code == 2


def test_hostile_names_and_errors_reach_no_terminal_as_they_are(typed: Typed, fake: FakeConnect):
    name = "\x1b[2Jcleared\n"
    config = {"connector.class": SOURCE, "source.cluster.alias": "a\x1b", "target.cluster.alias": "b"}
    fake.add(name, config)
    for arguments in (("list",), ("stop", "--yes"), ("resume", "--yes"), ("status", "--format", "json")):
        code, out, err = typed(*arguments, "--source", "a\x1b", "--target", "b")
        assert code == 0
        assert "\x1b" not in out + err
    fake.answer = (400, b'{"message": "\\u001b[2Jcleared"}')
    code, out, err = typed("list")
    assert (code, "\x1b" in err, "cleared" in err) == (3, False, True)


def test_no_address_is_said_with_the_ways_to_give_one(typed: Typed):
    code, _, err = typed("list", url=None)
    assert code == 2
    assert "failover.connect.url" in err


def test_two_flows_on_one_cluster_have_to_be_told_apart(typed: Typed, fake: FakeConnect, folder: Path):
    (folder / "mm2.properties").unlink()
    fake.add_flow()
    fake.add_flow("b", "a")
    code, _, err = typed("status")
    assert code == 2
    assert "a->b, b->a" in err
    assert typed("status", "--source", "b")[0] == 0
    with contextlib.suppress(KeyError):
        fake.connectors["x"] = {"config": {"connector.class": SOURCE}, "state": "RUNNING", "tasks": ["RUNNING"]}
    assert typed("status", "x")[0] == 0


def test_a_resource_as_the_configuration_gives_the_exact_patch(fake: FakeConnect, folder: Path):
    """Which connectors it concerns is known from their names; where they are described, from the resource."""
    from failover.cli.connect import _owned
    from failover.connect.mirrors import mirrors
    from failover.connect.strimzi import reported

    chosen = [one for one in mirrors(reported(OLD)) if one.flow == "a->b"]
    acted = _owned("stop", chosen, [OLD], "c")
    assert acted.patch is not None
    assert acted.patch.resource == "my-mm2"
    assert acted.exit_code == 3


def test_strimzi_s_resource_as_the_configuration_owns_what_it_describes(typed: Typed, fake: FakeConnect, folder: Path):
    """Also where the connectors have names of their own, as those of a KafkaConnect with KafkaConnector resources."""
    import yaml

    fake.add_flow()
    resource = {**OLD, "spec": {**OLD["spec"], "mirrors": OLD["spec"]["mirrors"][1:]}}
    resource["spec"]["clusters"] = [{"alias": alias, "bootstrapServers": f"{alias}:1"} for alias in "ab"]
    (folder / "mirror.yaml").write_text(yaml.safe_dump(resource))
    code, out, err = typed("stop", "--yes", "--config", "mirror.yaml")
    assert code == 3, err
    assert "kubectl patch kafkamirrormaker2s.kafka.strimzi.io my-mm2 --namespace kafka --type json" in out
    assert '"path":"/spec/mirrors/0/sourceConnector/state","value":"stopped"' in out
    assert set(fake.states().values()) == {"RUNNING"}


def test_connectors_kept_as_json_are_deployed_too(typed: Typed, fake: FakeConnect, target, folder: Path):
    config = {
        "connector.class": SOURCE,
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": "127.0.0.1:1",
        "target.cluster.bootstrap.servers": "127.0.0.1:1",
        "topics": "orders.*",
    }
    (folder / "source.json").write_text(json.dumps({"name": "mm2-source", "config": config}))
    code, _, err = typed("deploy", "--yes", "--config", "source.json")
    assert code == 0, err
    assert {name: one["config"]["topics"] for name, one in fake.connectors.items()} == {"mm2-source": "orders.*"}
    made = fake.connectors["mm2-source"]["config"]
    assert made["value.converter"].endswith("ByteArrayConverter")
    assert typed("deploy", "--yes", "--config", "source.json")[0] == 0
