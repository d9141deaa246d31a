"""`failover config check`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from failover.cli.entry import root
from failover.cli.frame import Settings
from failover.errors import ConfigError, ConfigNotFound

GOLDEN = Path(__file__).parent / "golden" / "config_check.txt"
# A file as they circulate in forums: old and misspelt names, blanks round = and commas, comments behind values.
FILE = """\
clusters = primary , standby
primary.bootstrap.servers = p1:9092 , p2:9092
standby.bootstrap.servers = s1:9092
primary->standby.enabled = true
primary->standby.topics = orders , pay-*
topics = .*
topic.blacklist = tmp.*
groups.blacklist = test-.*
task.max = 4
tasks.max = 8   # eight
sync.topics.configs.enabled = true
producer.batch.size = 1000
standby.ssl.key.password = ${file:/etc/mm2:hunter2}
refresh.topics.interval.seconds = 5
refresh.topics.interval.seconds = 10
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILOVER_CONFIG", raising=False)
    (tmp_path / "mm2.properties").write_text(FILE)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["config", "check", *arguments], obj=Settings(), standalone_mode=False)


def test_a_file_as_people_have_them(folder):
    result = run()
    assert result.return_value == 3
    assert result.stdout == GOLDEN.read_text()
    assert "hunter2" not in result.output


def test_json_has_findings_in_the_form_of_a_plans(folder):
    result = run("--format", "json", "--set", "tasks.max=8")
    value = json.loads(result.stdout)
    assert (result.return_value, value["path"], value["flows"]) == (4, "mm2.properties", ["primary->standby"])
    assert value["findings"][0] == {
        "code": "glob-pattern",
        "severity": "warning",
        "subject": "primary->standby.topics (line 5)",
        "message": "'pay-*' looks like a shell pattern; MM2 takes it for a regular expression, where * repeats what "
        "stands before it: it does not match 'pay-x'",
        "remedy": "write pay-.*",
    }


def test_a_good_file_exits_with_0_and_says_what_comes_next(folder):
    good = "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n"
    (folder / "mm2.properties").write_text(good + "offset-syncs.topic.location=target")
    result = run()
    assert result.return_value == 0
    assert result.stdout == (
        "mm2.properties: nothing to remark\nflows: a->b\n\n"
        "next: failover config check --connect (tries the clusters and the rights there)\n"
    )


def test_what_cannot_be_resolved_hides_nothing_else(folder):
    text = FILE.replace("primary->standby.enabled = true", "primary->standby.enabled = true  # now").replace(
        "# eight", ""
    )
    (folder / "mm2.properties").write_text(text)
    result = run("--format", "json")
    codes = [finding["code"] for finding in json.loads(result.stdout)["findings"]]
    assert result.return_value == 3
    assert codes[0] == "config-invalid"
    assert {"trailing-comment", "unknown-key", "dropped", "duplicate"} <= set(codes)


def test_what_cannot_be_read_is_no_finding(folder):
    assert isinstance(run("--config", "none").exception, ConfigNotFound)
    (folder / "x.json").write_text("{")
    assert isinstance(run("--config", "x.json").exception, ConfigError)


RESOURCE = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  version: 4.1.0
  target: {alias: standby, bootstrapServers: "s1:9092"}
  mirrors:
    - source:
        alias: primary
        bootstrapServers: p1:9092
        authentication: {type: plain, username: mm2, passwordSecret: {secretName: login, password: pw}}
      sourceConnector: {config: {offset-syncs.topic.location: target}}
      checkpointConnector: {config: {offset-syncs.topic.location: target}}
"""


def test_a_strimzi_resource_with_its_secrets(folder):
    (folder / "mirror.yaml").write_text(RESOURCE)
    missing = run("--config", "mirror.yaml")
    assert missing.return_value == 3
    assert "kubectl get secret login -o yaml > DIR/login.yaml" in missing.stdout
    (folder / "secrets" / "login").mkdir(parents=True)
    (folder / "secrets" / "login" / "pw").write_text("hunter2")
    complete = run("--config", "mirror.yaml", "--secrets-dir", "secrets")
    assert (complete.return_value, "hunter2" in complete.output) == (0, False)
    assert complete.stdout.startswith("mirror.yaml: 1 remark\nflows: primary->standby\n")


def test_hostile_text_comes_out_inert(folder):
    (folder / "mm2.properties").write_text(FILE.replace("task.max", r"\u001b[2Jtask.max"))
    result = run()
    assert "\x1b" not in result.stdout
    assert "\\x1b[2Jtask.max" in result.stdout
