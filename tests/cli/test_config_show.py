"""`failover config show`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from failover.cli.entry import root
from failover.cli.frame import Settings
from failover.errors import ConfigNotFound, UnknownAlias

GOLDEN = Path(__file__).parent / "golden" / "config_show.txt"
FILE = """\
# Two sites
clusters = primary, standby, archive
primary.bootstrap.servers = p1:9092, p2:9092
standby.bootstrap.servers = s1:9092
archive.bootstrap.servers = a1:9092

primary.security.protocol = SASL_SSL
primary.sasl.mechanism = SCRAM-SHA-512
primary.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="mm2" password="hunter2";
primary.consumer.isolation.level = read_committed
failover.cluster.primary.sasl.jaas.config = x.ScramLoginModule required username="tool" password="hunter2";

primary->standby.enabled = true
primary->standby.groups = pay.*, \\
    orders
archive->standby.enabled = true
topics = orders
sync.group.offsets.enabled = true
producer.batch.size = 1000
topics = orders, payments
failover.state.dir = /var/lib/failover
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILOVER_CONFIG", raising=False)
    (tmp_path / "mm2.properties").write_text(FILE)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["config", "show", *arguments], obj=Settings())


def test_the_table_is_the_golden_one(folder):
    result = run("--source", "primary", "--set", "offset.lag.max=1")
    assert result.exit_code == 0
    assert result.stdout == GOLDEN.read_text()
    assert all(len(line) <= 100 for line in result.stdout.splitlines())
    assert result.stderr == ""


def test_every_format_hides_every_secret(folder):
    for arguments in ([], ["-v"], ["--format", "json"], ["--format", "yaml"]):
        result = run(*arguments, "--set", "standby.ssl.key.password=hunter2")
        assert result.exit_code == 0
        assert "hunter2" not in result.output
        assert "********" in result.stdout


def test_json_tells_value_origin_and_line_of_each_setting(folder):
    shown = json.loads(run("--format", "json").stdout)
    assert [cluster["alias"] for cluster in shown["clusters"]] == ["primary", "standby", "archive"]
    flows = {flow["flow"]: flow for flow in shown["flows"]}
    assert len(flows) == 6
    assert [name for name, flow in flows.items() if flow["enabled"]] == ["primary->standby", "archive->standby"]
    flow = flows["primary->standby"]
    file = "mm2.properties"
    groups = {
        "value": "pay.*, orders",
        "origin": "file",
        "written": "primary->standby.groups",
        "file": file,
        "line": 15,
    }
    assert flow["settings"]["groups"] == groups
    assert flow["settings"]["offset.lag.max"] == {"value": "100", "origin": "default"}
    assert flow["settings"]["source.cluster.alias"] == {"value": "primary", "origin": "driver"}
    assert flow["connectors"]["checkpoint"]["name"]["value"] == "MirrorCheckpointConnector"
    assert flow["worker"]["offset.storage.topic"]["value"] == "mm2-offsets.primary.internal"
    assert shown["clusters"][0]["settings"]["consumer.isolation.level"]["line"] == 11
    assert shown["failover"]["state.dir"]["value"] == "/var/lib/failover"
    assert [(note["code"], note["line"]) for note in shown["notes"]] == [("dropped", 20), ("duplicate", 21)]


def test_yaml_says_the_same_as_json(folder):
    assert yaml.safe_load(run("--format", "yaml").stdout) == json.loads(run("--format", "json").stdout)


def test_the_worker_is_shown_on_request(folder):
    assert "FLOW primary->standby, worker" not in run().stdout
    assert "FLOW primary->standby, worker" in run("-v").stdout


def test_a_flow_chosen_backwards_is_said_on_stderr(folder):
    result = run("--source", "standby", "--target", "archive")
    assert result.exit_code == 0
    assert "FLOW archive->standby" in result.stdout
    assert "standby->archive is not enabled" in result.stderr


def test_control_characters_of_the_file_come_out_inert(folder):
    (folder / "mm2.properties").write_text(FILE + "topics = \\u001b[31mred\\nnext\n")
    result = run()
    assert "\x1b" not in result.stdout
    assert "\nnext" not in result.stdout


def test_errors_are_those_of_the_configuration(folder, tmp_path, monkeypatch):
    assert isinstance(run("--source", "primry").exception, UnknownAlias)
    (folder / "mm2.properties").unlink()
    assert isinstance(run().exception, ConfigNotFound)
