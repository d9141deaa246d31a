"""Strimzi's resource, in both of its versions: found, patched with a guard, read for states; kubectl as a program."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from failover.connect.acting import by_patch
from failover.connect.kubectl import Kubectl
from failover.connect.mirrors import mirrors
from failover.connect.strimzi import find_place, flows, patch_for, reported, snippet
from failover.errors import ConfigError, ConnectorNotFound, ConnectRefused, UsageError
from tests.unit.connect.test_waiting import Time

OLD = yaml.safe_load("""
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {name: my-mm2, namespace: kafka}
spec:
  connectCluster: b
  clusters: [{alias: a}, {alias: b}, {alias: c}]
  mirrors:
  - {sourceCluster: c, sourceConnector: {}}
  - sourceCluster: a
    targetCluster: b
    sourceConnector: {tasksMax: 2}
    checkpointConnector: {}
status:
  connectors:
  - name: a->b.MirrorSourceConnector
    type: source
    connector: {state: RUNNING, worker_id: w}
    tasks: [{id: 0, state: RUNNING, worker_id: w}]
  - {name: broken}
""")
NEW = yaml.safe_load("""
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {name: newer}
spec:
  target: {alias: b}
  mirrors:
  - {source: {alias: a}, sourceConnector: {}, checkpointConnector: {}}
""")

KUBECTL = """#!{python}
import json, os, sys
folder = {folder!r}
with open(os.path.join(folder, "calls.json"), "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if os.path.exists(os.path.join(folder, "forbidden")):
    sys.exit("Error from server (Forbidden): kafkamirrormaker2s is forbidden: User cannot patch")
resource = os.path.join(folder, "resource.json")
if sys.argv[1] == "get":
    print(json.dumps({{"items": [json.load(open(resource))]}}))
else:
    changed = json.load(open(resource))
    for row in changed["status"]["connectors"]:
        row.update(connector={{"state": "STOPPED", "worker_id": "w"}}, tasks=[])
    json.dump(changed, open(resource, "w"))
    print("kafkamirrormaker2.kafka.strimzi.io/my-mm2 patched")
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Is a folder with a kubectl in PATH that keeps one resource there."""
    program = tmp_path / "kubectl"
    program.write_text(KUBECTL.format(python=sys.executable, folder=str(tmp_path)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    resource = json.loads(json.dumps(OLD))
    resource["status"]["connectors"].append(
        {"name": "a->b.MirrorCheckpointConnector", "connector": {"state": "RUNNING"}, "tasks": []}
    )
    (tmp_path / "resource.json").write_text(json.dumps(resource))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def calls(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "calls.json").read_text().splitlines()]


@pytest.mark.parametrize(
    ("resource", "index", "guard"),
    [(OLD, 1, "/spec/mirrors/1/sourceCluster"), (NEW, 0, "/spec/mirrors/0/source/alias")],
)
def test_a_flow_is_found_and_its_patch_makes_sure_that_the_list_is_the_same(resource: Any, index, guard):
    place = find_place([resource], "a", "b")
    assert place.index == index
    patch = patch_for(place, {"source", "checkpoint", "heartbeat"}, "stop")
    assert list(patch.operations) == [
        {"op": "test", "path": guard, "value": "a"},
        {"op": "add", "path": f"/spec/mirrors/{index}/sourceConnector/state", "value": "stopped"},
        {"op": "add", "path": f"/spec/mirrors/{index}/checkpointConnector/state", "value": "stopped"},
    ]
    assert patch.command[:4] == ("kubectl", "patch", "kafkamirrormaker2s.kafka.strimzi.io", place.name)
    assert json.loads(patch.command[-1]) == list(patch.operations)
    assert ("--namespace" in patch.command) == (resource is OLD)


def test_a_flow_that_is_nowhere_or_twice_is_said():
    with pytest.raises(ConfigError, match="describes x->b") as raised:
        find_place([OLD], "x", "b")
    assert "c->b, a->b" in raised.value.hint
    with pytest.raises(UsageError, match="my-mm2, newer"):
        find_place([OLD, NEW], "a", "b")
    assert flows({"kind": "KafkaMirrorMaker2"}) == []


def test_without_the_resource_the_entry_is_written_out():
    written = yaml.safe_load(snippet("a", "b", {"source", "checkpoint"}, "pause"))
    [entry] = written["spec"]["mirrors"]
    assert entry["sourceConnector"] == entry["checkpointConnector"] == {"state": "paused"}


def test_states_are_those_the_operator_saw_last():
    found = mirrors(reported(OLD))
    assert [(one.name, one.state) for one in found] == [
        ("a->b.MirrorSourceConnector", "RUNNING"),
        ("a->b.MirrorCheckpointConnector", "UNKNOWN"),
        ("c->b.MirrorSourceConnector", "UNKNOWN"),
    ]
    assert all(one.operator for one in found)


def test_kubectl_is_told_by_arguments_and_waited_for(cluster: Path):
    kubectl = Kubectl(namespace="kafka; rm -rf /")
    chosen = [one for one in mirrors(kubectl.connectors()) if one.flow == "a->b"]
    patch = patch_for(kubectl.place("a", "b"), {"source", "checkpoint"}, "stop")
    said: list[str] = []
    acted = by_patch(kubectl, None, chosen, "stop", patch, wait=5, say=said.append, clock=Time().clock)
    assert (acted.outcome, acted.exit_code) == ("done", 0)
    assert said == ["kafkamirrormaker2.kafka.strimzi.io/my-mm2 patched"]
    made = calls(cluster)
    assert made[0][:4] == ["get", "kafkamirrormaker2s.kafka.strimzi.io", "--namespace", "kafka; rm -rf /"]
    [patched] = [call for call in made if call[0] == "patch"]
    assert msgspec.json.decode(patched[patched.index("--patch") + 1]) == list(patch.operations)


def test_what_kubernetes_refuses_is_refused(cluster: Path):
    (cluster / "forbidden").touch()
    with pytest.raises(ConnectRefused, match="is forbidden"):
        Kubectl().connectors()


def test_no_kubectl_and_no_resource(cluster: Path):
    with pytest.raises(UsageError, match="no no-such-program in PATH"):
        Kubectl(program="no-such-program").connectors()
    (cluster / "kubectl").write_text(f"#!{sys.executable}\nprint('{{\"items\": []}}')\n")
    with pytest.raises(ConnectorNotFound, match="no KafkaMirrorMaker2"):
        Kubectl().connectors()
