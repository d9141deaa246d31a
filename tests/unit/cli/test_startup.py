"""Start-up stays light: what a command does not need is not imported. Modules are counted, not seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CLIENTS = {"aiohttp", "aiokafka", "asyncio", "confluent_kafka", "kafka", "uvloop"}
HEAVY = CLIENTS | {"cryptography", "jgo", "jinja2", "msgspec", "rich", "tabulate", "tenacity", "yaml"}
# click, signal and what these import come before; each of the following costs a millisecond or more
SPARED_BY_HELP = HEAVY | {"difflib", "json", "logging", "pathlib", "secrets", "socket", "ssl", "traceback", "urllib"}
HELP = {
    "failover",
    "failover.cli",
    "failover.cli.entry",
    "failover.cli.frame",
    "failover.cli.params",
    "failover.cli.streams",
    "failover.errors",
}
# What decides, compares and shows is loaded while the clusters are heard, or after.
AFTER_THE_FIRST_BYTE = {
    "aiokafka", "difflib", "email", "failover.checks", "failover.execution", "failover.inventory.comparing",
    "failover.kafka.wire", "failover.planning.build", "failover.planning.drift", "failover.replication",
    "failover.report", "failover.translate.content", "http", "jinja2", "kafka", "rich", "tabulate", "tenacity",
    "urllib.request", "xml", "yaml",
}  # fmt: skip

TOLD = "print(*sorted(sys.modules), file=sys.stderr, flush=True)"
PROBE = f"""
import sys
from failover.cli import main
try:
    main(sys.argv[1:])
finally:
    {TOLD}
"""
# librdkafka begins to connect when its client is made
PROBE_OF_THE_FIRST_BYTE = f"""
import os, sys
import confluent_kafka.admin

class Made:
    def __init__(self, settings):
        {TOLD}
        os._exit(0)

confluent_kafka.admin.AdminClient = Made
from failover.cli import main
main(sys.argv[1:])
"""


def modules(probe: str, *arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", probe, *arguments], capture_output=True, text=True, check=False)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "failover.cli.entry" in loaded, done.stderr
    return loaded


def loaded(*arguments: str) -> set[str]:
    return modules(PROBE, *arguments)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("plan", "--help"), ("execute", "--help")])
def test_help_imports_nothing_of_weight(arguments: tuple[str, ...]) -> None:
    assert loaded(*arguments) & HEAVY == set()


def test_the_list_of_commands_needs_click_and_few_modules() -> None:
    found = loaded("--help")
    assert found & SPARED_BY_HELP == set()
    assert {name for name in found if name.partition(".")[0] == "failover"} == HELP


def test_a_usage_error_contacts_nothing_and_loads_no_client() -> None:
    assert loaded("plan", "--timeout", "soon") & (CLIENTS | {"rich"}) == set()


def test_a_plan_asks_the_clusters_before_it_loads_what_works_on_the_answer(tmp_path: Path) -> None:
    config = tmp_path / "mm2.properties"
    config.write_text(
        "clusters = a, b\na.bootstrap.servers = 127.0.0.1:1\nb.bootstrap.servers = 127.0.0.1:2\na->b.enabled = true\n"
    )
    found = modules(PROBE_OF_THE_FIRST_BYTE, "--config", str(config), "--state-dir", str(tmp_path / "state"), "plan")
    assert "failover.inventory.snapshot" in found
    assert found & AFTER_THE_FIRST_BYTE == set()
