"""The page for people in trouble: each code it names is explained, each metric is served."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from failover.report.explain import entries
from failover.serve.metrics import Metrics
from tests.unit.serve.scenes import NOW, board, flow

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text("utf-8")
METRIC = re.compile(r"`((?:failover|kafka)_\w+)")


def codes() -> set[str]:
    """Gives the codes in tables that have a column of them, those in brackets of output, and those to be explained."""
    found = set(re.findall(r"^[^|]*\[([a-z0-9-]+)\]$", PAGE, re.MULTILINE))
    found |= set(re.findall(r"`failover explain ([a-z-]+)`", PAGE))
    for table in re.findall(r"^\|.*?(?:\n(?!\|)|\Z)", PAGE, re.MULTILINE | re.DOTALL):
        head, _, *rows = table.strip().splitlines()
        names = [cell.strip() for cell in head.strip("|").split("|")]
        if "code" in names:
            for row in rows:
                found |= set(re.findall(r"`([^`]+)`", row.strip("|").split("|")[names.index("code")]))
    return found


def test_the_page_names_codes() -> None:
    assert {"identity-loop", "glob-pattern", "config-drift", "credentials-refused"} <= codes()
    assert len(codes()) > 40


@pytest.mark.parametrize("code", sorted(codes()))
def test_a_code_is_explained(code: str) -> None:
    assert code in entries()


def test_metrics_are_served(tmp_path: Path) -> None:
    served = Metrics(board(tmp_path, flow()), clock=lambda: NOW).render()
    names = set(METRIC.findall(PAGE))
    assert len(names) > 10
    assert {name for name in names if f"\n{name}{{" not in served} == set()
