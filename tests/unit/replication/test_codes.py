"""Every code by which the replicator and `seed` name a cause is explained."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import failover.replication
from failover.replication.seed_rule import Code
from failover.replication.topics import CODES
from failover.report.explain import find_word

FOLDER = Path(failover.replication.__file__).parent
_PLACES = {
    "TopicFault": (2, "code"),
    "_refused": (1, "reason"),
    "SeedPartition": (3, "reason"),
    "replace": (9, "reason"),
}


def given() -> set[str]:
    """The words that calls give as a code, wherever they stand as they are."""
    found = set()
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            at, name = _PLACES.get(called, (99, ""))
            words = [*node.args[at : at + 1], *(keyword.value for keyword in node.keywords if keyword.arg == name)]
            found |= {word.value for word in words if isinstance(word, ast.Constant) and isinstance(word.value, str)}
    return found


def test_each_is_explained():
    words = given()
    assert {"loop", "name-collision", "policy-failed", "unreplicated-tail", "recreated", "unreadable"} <= words
    words |= {*get_args(Code), *CODES.values(), "unavailable", "broker-error", "position-unknown", "two-writers"}
    assert not [word for word in sorted(words) if find_word(word) is None]
