"""What `plan`, `status` and `health` say of connectors where a Connect cluster is configured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from failover.cli.connect_states import tell_stop
from failover.cli.frame import Settings
from failover.cli.looking import on_connect
from failover.config.load import load_config, select_flow
from failover.inventory.positions import Position
from failover.library.connectors import OnConnect
from failover.library.flows import MirrorFlow
from failover.library.open_flow import OpenFlow
from failover.model.names import TopicPartition
from failover.state.folder import StateFolder
from tests.fake_cluster import FakeCluster
from tests.unit.connect.fake_connect import FakeConnect
from tests.unit.connect.test_strimzi import OLD
from tests.unit.connect.test_vendors import ARN, GOOGLE

TEXT = "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n"


class Told:
    """Is a command's settings and configuration, and what it said."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.settings = Settings()
        self.said: list[str] = []
        monkeypatch.setattr(self.settings, "say", self.said.append)
        self.settings.config = (str(path),)
        self.config = load_config([str(path)])
        self.selected = select_flow(self.config)

    def stop(self) -> str:
        tell_stop(self.settings, self.config, self.selected)
        return "\n".join(self.said)

    def asked(self) -> OnConnect:
        mirror = MirrorFlow(self.config, self.selected)
        return on_connect(self.settings, OpenFlow(mirror, StateFolder(self.path.parent), FakeCluster))

    def states(self) -> list[tuple[str, str, str]]:
        return [(one.kind, one.state, one.reason) for one in self.asked().states]


def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str | None) -> Told:
    path = tmp_path / "mm2.properties"
    path.write_text(TEXT + (f"failover.connect.url = {url}\n" if url else ""))
    return Told(path, monkeypatch)


def test_nothing_is_asked_or_said_without_a_connect_cluster(tmp_path, monkeypatch):
    one = told(tmp_path, monkeypatch, None)
    assert one.stop() == ""
    assert one.states() == []


def test_the_command_to_run_before_execute(tmp_path, monkeypatch, fake: FakeConnect):
    fake.add_flow()
    fake.add_flow("b", "a")
    fake.fail("a-b-source")
    one = told(tmp_path, monkeypatch, fake.url)
    said = one.stop()
    assert f"connectors at {fake.url}: a-b-source FAILED, a-b-checkpoint RUNNING, a-b-heartbeat RUNNING" in said
    assert said.endswith("before execute: failover connect stop --source a --target b")
    assert one.states()[0] == (
        "source",
        "RUNNING",
        "org.apache.kafka.connect.errors.ConnectException: no such topic",
    )
    assert not any(request.startswith(("PUT", "POST")) for request in fake.requests)


def test_positions_are_those_that_connect_keeps_of_the_flow_s_source(tmp_path, monkeypatch, fake: FakeConnect):
    fake.add_flow()
    fake.add_flow("b", "a")

    def row(cluster: str, partition: int, at: int | None) -> dict[str, Any]:
        where = {"cluster": cluster, "topic": "orders", "partition": partition}
        return {"partition": where, "offset": None if at is None else {"offset": at}}

    fake.stored["a-b-source"] = [row("a", 0, 41), row("a", 1, None), row("other", 2, 7)]
    fake.stored["b-a-source"] = [row("b", 3, 9)]
    one = told(tmp_path, monkeypatch, fake.url)
    assert one.asked().positions == {TopicPartition("orders", 0): Position(42, -1, "a-b-source")}
    fake.stored["a-b-source"] = [{"said": "by no worker"}]
    assert one.asked().positions == {}
    assert len(one.asked().states) == 3
    assert one.said == []


def test_stopped_connectors_need_no_command(tmp_path, monkeypatch, fake: FakeConnect):
    fake.add_flow()
    for state in fake.connectors.values():
        state.update(state="STOPPED", tasks=[])
    assert "before execute" not in told(tmp_path, monkeypatch, fake.url).stop()


def test_strimzi_s_connectors_want_kubectl(tmp_path, monkeypatch, fake: FakeConnect):
    fake.add_flow(strimzi=True)
    assert "failover connect stop --kubectl --source a" in told(tmp_path, monkeypatch, fake.url).stop()


def test_a_resource_alone_wants_kubectl_too(tmp_path, monkeypatch):
    import yaml

    resource = {**OLD, "spec": {**OLD["spec"], "mirrors": OLD["spec"]["mirrors"][1:]}}
    resource["spec"]["clusters"] = [{"alias": alias, "bootstrapServers": f"{alias}:1"} for alias in "ab"]
    path = tmp_path / "mm2.yaml"
    path.write_text(yaml.safe_dump(resource))
    one = Told(path, monkeypatch)
    assert one.stop() == "before execute: failover connect stop --kubectl --source a --target b"
    assert one.states() == []


@pytest.mark.parametrize("name", [ARN, GOOGLE])
def test_a_vendor_s_service_is_named(tmp_path, monkeypatch, name):
    one = told(tmp_path, monkeypatch, name)
    assert one.stop().endswith("failover connect stop --source a --target b prints the commands")
    assert one.states() == []


def test_a_connect_cluster_that_is_silent_is_said_once_and_stops_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr("failover.library.connectors.PATIENCE", 0.05)
    one = told(tmp_path, monkeypatch, "http://127.0.0.1:1")
    assert one.states() == []
    assert one.states() == []
    assert len(one.said) == 1
    assert "states are not known: no answer from http://127.0.0.1:1" in one.said[0]
