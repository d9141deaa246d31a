"""The presets of the documentation: complete, and each of their keys means something here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from failover.config.load import load_config
from failover.replication.options import ReplicateOptions, read_options
from failover.replication.unused import unused

PAGE = Path(__file__).parents[3] / "docs" / "presets.md"
PRESETS = dict(re.findall(r"^## ([^\n]+)\n.*?```properties\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
BASE = """clusters = primary, standby
primary.bootstrap.servers = x:1
standby.bootstrap.servers = y:1
primary->standby.enabled = true
"""


def options(tmp_path: Path, text: str) -> ReplicateOptions:
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + text)
    config = load_config(str(path))
    assert unused(config.enabled_flows) == []
    assert [note for note in config.notes if note.code in ("dropped", "unknown-key")] == []
    return read_options(config, config.enabled_flows[0])


def test_there_are_three() -> None:
    assert list(PRESETS) == ["High throughput", "Low latency", "Few resources"]


@pytest.mark.parametrize("name", PRESETS)
def test_each_of_its_keys_is_used(tmp_path: Path, name: str) -> None:
    assert options(tmp_path, PRESETS[name]) != options(tmp_path, "")
    for line in PRESETS[name].splitlines():
        key = line.partition("=")[0].strip()
        assert key.startswith(("primary.", "standby.", "failover.", "emit.", "refresh."))


def test_they_differ_in_what_they_are_for(tmp_path: Path) -> None:
    fast, quick, small = (options(tmp_path, text) for text in PRESETS.values())
    assert fast.buffer_bytes > quick.buffer_bytes > small.buffer_bytes
    assert fast.read.fetch_max_bytes > quick.read.fetch_max_bytes
    assert (quick.read.fetch_min_bytes, quick.refresh_seconds) == (1, 60)
    assert small.refresh_seconds == 1200
