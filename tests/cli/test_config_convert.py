"""`failover config convert`, as a user types it."""

from __future__ import annotations

import json

import pytest
import yaml
from click.testing import CliRunner, Result

from failover.cli.entry import root
from failover.cli.frame import Settings
from failover.config.load import load_config
from failover.errors import FlowAmbiguous, UsageError
from tests.unit.config.test_strimzi import OAUTH, SCRAM, V1BETA2

FILE = """\
clusters = primary, standby
primary.bootstrap.servers = p1:9092
primary.security.protocol = SASL_PLAINTEXT
primary.sasl.mechanism = PLAIN
primary.sasl.jaas.config = x.PlainLoginModule required username="mm2" password="hunter2";
standby.bootstrap.servers = s1:9092
standby.offset.flush.interval.ms = 10000
primary->standby.enabled = true
topics = orders
tasks.max = 8
failover.state.dir = /tmp/x
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILOVER_CONFIG", raising=False)
    (tmp_path / "mm2.properties").write_text(FILE)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["config", "convert", *arguments], obj=Settings(), standalone_mode=False)


def test_to_properties_keeps_secrets_back_and_says_where_they_belong():
    result = run("--to", "properties", "--secrets-file", "/s/mm2.properties")
    assert result.return_value == 0
    assert "hunter2" not in result.output
    assert result.stdout.startswith(
        "clusters = primary, standby\n\nconfig.providers = file\n"
        "config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider\n\n"
        "primary.bootstrap.servers = p1:9092\n"
    )
    assert "primary.sasl.jaas.config = ${file:/s/mm2.properties:primary.sasl.jaas.config}\n" in result.stdout
    assert result.stderr == "note: /s/mm2.properties has to hold these secrets: primary.sasl.jaas.config\n"


def test_to_connect_gives_bodies_and_says_what_stays_behind():
    result = run("--to", "connect")
    bodies = json.loads(result.stdout)
    assert [body["name"] for body in bodies] == [
        f"primary-standby-{kind}" for kind in ("source", "checkpoint", "heartbeat")
    ]
    assert bodies[0]["config"]["topics"] == "orders"
    assert "hunter2" not in result.output
    assert "/etc/kafka/mm2-secrets.properties:primary.sasl.jaas.config}" in result.stdout
    for words in (
        "has to hold these secrets: primary.sasl.jaas.config",
        "the Connect workers have to declare config.providers: file",
        "which no connector can carry: offset.flush.interval.ms=10000",
        "settings of this tool stay behind: failover.state.dir",
    ):
        assert words in result.stderr


def test_one_connector_flat_in_yaml_as_vendors_take_it(folder):
    result = run("--to", "connect", "--connector", "source", "--yaml")
    flat = yaml.safe_load(result.stdout)
    assert flat["connector.class"].endswith(".MirrorSourceConnector")
    assert flat["tasks.max"] == "8"
    (folder / "source.yaml").write_text(result.stdout)
    assert load_config(folder / "source.yaml").enabled_flows[0].topics == ("orders",)


def test_to_strimzi():
    result = run("--to", "strimzi", "--api-version", "v1beta2")
    resource = yaml.safe_load(result.stdout)
    assert (resource["apiVersion"], resource["kind"]) == ("kafka.strimzi.io/v1beta2", "KafkaMirrorMaker2")
    assert resource["spec"]["clusters"][0]["authentication"]["username"] == "mm2"
    assert "hunter2" not in result.output
    assert "kubectl create secret generic primary-login --from-file=password=FILE" in result.stderr


def test_secrets_are_written_to_a_file_of_the_owners_only(folder):
    result = run("--to", "properties", "--with-secrets", "-o", "out.properties")
    out = folder / "out.properties"
    assert result.return_value == 0
    assert "hunter2" not in result.output
    assert out.stat().st_mode & 0o777 == 0o600
    config = load_config(out)
    assert config.clusters["primary"].client().sasl == load_config("mm2.properties").clusters["primary"].client().sasl


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--to", "properties", "--with-secrets"], UsageError),
        (["--to", "strimzi", "--with-secrets", "-o", "x"], UsageError),
        (["--to", "strimzi", "--yaml"], UsageError),
        (["--to", "properties", "-o", "no/such/folder"], UsageError),
        (["--to", "connect", "--source", "standby"], FlowAmbiguous),
    ],
)
def test_what_cannot_be_done_is_said(arguments, error):
    result = run(*arguments)
    assert isinstance(result.exception, error)
    assert result.exception.hint


def test_what_only_this_tool_reads_of_a_strimzi_login_is_said_and_known_to_check(folder):
    resource = V1BETA2.replace(SCRAM, OAUTH)
    (folder / "mirror.yaml").write_text(resource)
    result = run("--config", "mirror.yaml", "--to", "properties", "-o", "made.properties")
    assert result.return_value == 0
    assert "primary: sasl.oauth.truststore.certificates is read by this tool alone" in result.stderr
    assert 'oauth.ssl.truststore.location="PATH"' in result.stderr
    arguments = ["--config", "made.properties", "config", "check", "--format", "json"]
    checked = CliRunner().invoke(root, arguments, obj=Settings(), standalone_mode=False)
    codes = {finding["code"] for finding in json.loads(checked.stdout)["findings"]}
    assert "unknown-key" not in codes
