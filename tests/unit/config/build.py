"""Makes configurations from text."""

from __future__ import annotations

from pathlib import Path

from failover.config.flow import Config
from failover.config.load import load_config

PAIR = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""


def load(tmp_path: Path, text: str, *overrides: str) -> Config:
    """Loads a file with this text."""
    path = tmp_path / "mm2.properties"
    path.write_text(text, encoding="latin-1")
    return load_config([str(path)], overrides)
