"""A running Connect cluster as configuration, and back into one file: the real worker, over https with a password."""

from __future__ import annotations

from pathlib import Path

from failover.config.load import load_config
from failover.lab.connect import connect_settings
from tests.system.pair import Pair
from tests.system.test_connect import OnConnect


def test_what_was_deployed_is_read_back_and_means_the_same(connect: Pair, tmp_path: Path) -> None:
    deployed = OnConnect(connect, "cfg")
    connect.produce("a", connect.create_topic("a", f"{deployed.stem}.t"), 10)  # without a topic there is no task
    assert deployed.run("connect", "deploy", "--yes").code == 0
    try:
        settings = connect_settings(connect.lab)
        password = settings.pop("failover.connect.password")
        url = settings.pop("failover.connect.url")
        options = ["--config", f"connect+{url}", "--source", deployed.source, "--target", deployed.target]
        options += [text for key, value in settings.items() for text in ("--set", f"{key}={value}")]

        shown = connect.run_cli("config", "show", "--format", "json", *options, FAILOVER_CONNECT_PASSWORD=password)
        assert shown.code == 0, shown.err
        (flow,) = shown.json()["flows"]
        assert flow["flow"] == deployed.flow
        assert flow["settings"]["topics"]["file"] == f"connect+{url}"

        checked = connect.run_cli("config", "check", "--connect", *options, FAILOVER_CONNECT_PASSWORD=password)
        assert checked.code in (0, 4), checked.out + checked.err  # 4: Connect may not have made all its topics yet
        assert f"asked: {deployed.source}, {deployed.target}" in checked.out
        assert password not in shown.out + shown.err + checked.out + checked.err

        path = tmp_path / "mm2.properties"
        converted = connect.run_cli(
            "config", "convert", "--to", "properties", "-o", str(path), *options, FAILOVER_CONNECT_PASSWORD=password
        )
        assert converted.code == 0, converted.err
        written = {flow.name: flow for flow in load_config(deployed.config).enabled_flows}[deployed.flow]
        (read,) = load_config(path).enabled_flows
        for kind, key in (("source", "topics"), ("checkpoint", "groups"), ("source", "replication.policy.class")):
            assert read.connectors[kind].text(key) == written.connectors[kind].text(key)
        assert (read.client("source"), read.client("target")) == (written.client("source"), written.client("target"))
    finally:
        deployed.run("connect", "stop", "--yes")
