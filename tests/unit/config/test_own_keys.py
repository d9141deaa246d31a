"""The list of this tool's own settings against what the documentation and the code name."""

from __future__ import annotations

import re
from pathlib import Path

import failover
from failover.config.mm2_keys import OWN_KEYS

ROOT = Path(failover.__file__).parent


def named(text: str) -> set[str]:
    found = {match.rstrip(".") for match in re.findall(r"failover\.([a-z0-9]+(?:\.[a-z0-9.-]+)+)", text)}
    return {key for key in found if not is_something_else(*key.split("."))}


def is_something_else(first: str, second: str, *_: str) -> bool:
    """Modules, and names of groups and topics, look like settings."""
    module = (ROOT / first / f"{second}.py").exists() or (ROOT / first / second).is_dir()
    return module or first in ("cluster", "source", "replicate") or (first, second) == ("checkpoint", "primary-standby")


def test_every_setting_that_is_documented_is_known():
    pages = [*(ROOT.parent / "docs").rglob("*.md"), ROOT.parent / "README.md"]
    found = set().union(*(named(page.read_text()) for page in pages))
    assert found - OWN_KEYS == set()
    assert "state.dir" in found


def test_every_setting_that_is_known_is_read_somewhere():
    code = "\n".join(path.read_text() for path in ROOT.rglob("*.py") if path.name != "mm2_keys.py")
    parts = {key: key if f'"{key}"' in code or f"failover.{key}" in code else key.partition(".")[2] for key in OWN_KEYS}
    assert [key for key, part in parts.items() if f'"{part}"' not in code and f"failover.{key}" not in code] == []
