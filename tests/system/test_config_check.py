"""`config check --connect` on real clusters: are they there, are they two, and which rights are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from failover.lab import ADMIN, APP
from tests.system.pair import Pair

JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required"
FILE = "org.apache.kafka.common.config.provider.FileConfigProvider"


def check(pair: Pair, config: Path, *arguments: str, code: int) -> list[dict[str, Any]]:
    ran = pair.run_cli("config", "check", "--connect", "--format", "json", *arguments, config=config)
    assert ran.code == code, ran.out + ran.err
    found: list[dict[str, Any]] = ran.json()["findings"]
    return [one for one in found if one["severity"] != "info"]


@pytest.fixture(scope="module")
def group(mm2: Pair) -> str:
    topic, name = mm2.create_topic("a", mm2.name("t.check")), mm2.name("check")
    mm2.produce("a", topic, 10)
    mm2.commit("a", name, {(topic, 0): 5})
    mm2.wait_mirrored(topic)
    mm2.wait_checkpoint(name, topic, upstream=5)
    return name


def test_with_every_right_there_is_nothing_to_remark(mm2: Pair, group: str) -> None:
    assert check(mm2, mm2.config_path(user=ADMIN), code=0) == []
    text = mm2.run_cli("config", "check", "--connect", config=mm2.config_path()).out
    assert "asked: a, b" in text
    assert text.endswith("next: failover plan\n")


def test_rights_that_are_missing_are_named_with_what_to_grant(mm2: Pair, group: str, tmp_path: Path) -> None:
    password = mm2.lab.state.passwords[APP]
    # The credentials come from a provider's file, and show nowhere.
    (tmp_path / "c.properties").write_text(f'login = {JAAS} username="{APP}" password="{password}";')
    added = {
        "config.providers": "file",
        "config.providers.file.class": FILE,
        "failover.cluster.b.sasl.jaas.config": f"${{file:{tmp_path}/c.properties:login}}",
        "a->b.groups": group,
    }
    config = mm2.config_path(user=ADMIN, added=added)
    found = check(mm2, config, code=3)
    assert {one["code"] for one in found} == {"not-authorized"}
    assert f"b would refuse commits for 1 group: {group}" in [one["message"] for one in found]
    assert "grant READ on topic a.checkpoints.internal" in [one["remedy"] for one in found]
    assert password not in mm2.run_cli("config", "check", "--connect", "-vv", config=config).err


def test_clusters_that_cannot_be_used_are_findings_too(mm2: Pair, group: str) -> None:
    wrong = f'failover.cluster.b.sasl.jaas.config={JAAS} username="{APP}" password="wrong";'
    (refused,) = check(mm2, mm2.config_path(user=ADMIN), "--set", wrong, code=3)
    assert (refused["code"], refused["subject"]) == ("credentials-refused", "b")
    nobody = ("--set", "a.bootstrap.servers=127.0.0.1:1", "--timeout", "2s")
    (silent,) = check(mm2, mm2.config_path(), *nobody, code=3)
    assert (silent["code"], silent["subject"]) == ("cluster-unreachable", "a")
    assert check(mm2, mm2.config_path(), "--source-down", *nobody, code=0) == []


def test_one_cluster_under_two_names_is_recognised_by_its_id(mm2: Pair) -> None:
    other = mm2.bootstrap("a").replace("127.0.0.1", "localhost")
    found = check(mm2, mm2.config_path(), "--set", f"b.bootstrap.servers={other}", code=3)
    (same,) = [one for one in found if one["code"] == "same-cluster"]
    assert same["subject"] == "a and b"
    assert "both have the id" in same["message"]
