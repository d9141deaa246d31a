"""Start-up stays light: what a command does not need is not imported. Modules are counted, not seconds."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "aiohttp", "aiokafka", "asyncio", "confluent_kafka", "cryptography", "jgo", "jinja2", "kafka", "msgspec", "rich",
    "tabulate", "tenacity", "uvloop", "yaml",
}  # fmt: skip

PROBE = """
import sys
from failover.cli import main
try:
    main(sys.argv[1:])
finally:
    print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)
"""


def loaded(*arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=False)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("plan", "--help"), ("execute", "--help")])
def test_help_imports_nothing_of_weight(arguments: tuple[str, ...]) -> None:
    assert loaded(*arguments) & HEAVY == set()


def test_a_usage_error_contacts_nothing_and_loads_no_client() -> None:
    assert loaded("plan", "--timeout", "soon") & {"confluent_kafka", "aiokafka", "kafka", "rich"} == set()
