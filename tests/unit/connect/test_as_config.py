"""A Connect cluster's address in place of a configuration file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from failover.cli.entry import root
from failover.cli.frame import Settings
from failover.errors import ConnectUnreachable, CredentialsRefused, UsageError
from tests.unit.connect.fake_connect import CHECKPOINT, SOURCE, FakeConnect

CONFIG = {
    "source.cluster.alias": "us",
    "target.cluster.alias": "eu",
    "source.cluster.bootstrap.servers": "us:1",
    "target.cluster.bootstrap.servers": "eu:1",
    "source.cluster.sasl.jaas.config": "hunter2",
    "topics": "orders",
}


@pytest.fixture(autouse=True)
def running(fake: FakeConnect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILOVER_CONNECT_PASSWORD", raising=False)
    fake.credentials = "me:hunter2"
    fake.add("s", {"connector.class": SOURCE, **CONFIG})
    fake.add("c", {"connector.class": CHECKPOINT, **CONFIG, "groups": "app-.*"})
    fake.add("other", {"connector.class": "io.acme.Sink", "topics": "x"})


def run(fake: FakeConnect, command: str, *arguments: str, user: str = "") -> Result:
    address = "connect+" + fake.url.replace("//", f"//{user}")
    arguments = ("config", command, "--config", address, "--timeout", "2s", *arguments)
    return CliRunner().invoke(root, arguments, obj=Settings(), standalone_mode=False)


@pytest.mark.parametrize("by", ["settings", "address", "environment"])
def test_its_connectors_are_the_configuration(fake, by, monkeypatch):
    user = ""
    sets: tuple[str, ...] = ()
    if by == "address":
        user = "me:hunter2@"
    elif by == "settings":
        sets = ("--set", "failover.connect.user=me", "--set", "failover.connect.password=hunter2")
    else:
        user = "me@"
        monkeypatch.setenv("FAILOVER_CONNECT_PASSWORD", "hunter2")
    result = run(fake, "show", "--format", "json", *sets, user=user)
    assert result.exception is None
    shown = json.loads(result.stdout)
    assert shown["path"] == f"connect+{fake.url}"
    (flow,) = shown["flows"]
    assert (flow["flow"], flow["settings"]["topics"]["value"]) == ("us->eu", "orders")
    assert "hunter2" not in result.output
    assert fake.requests == ["GET /connectors?expand=info&expand=status"]


def test_check_reads_them_too(fake):
    fake.connectors["s"]["config"]["offset-syncs.topic.location"] = "target"
    result = run(fake, "check", "--format", "json", user="me:hunter2@")
    assert result.return_value == 3
    assert "connectors-disagree" in [one["code"] for one in json.loads(result.stdout)["findings"]]


def test_what_goes_wrong_is_told_without_the_password(fake):
    for user, error in (("me:wrong@", CredentialsRefused), ("me@", UsageError)):
        result = run(fake, "show", user=user)
        assert isinstance(result.exception, error)
        assert "hunter2" not in str(result.exception) + result.exception.hint
    fake.url = "http://127.0.0.1:1"
    assert isinstance(run(fake, "show", user="me:hunter2@").exception, ConnectUnreachable)
