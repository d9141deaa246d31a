from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import failover.errors
from failover.checks.find import CHECKS
from failover.mm2.fields import DecodeError
from failover.model import Precision, Proof
from failover.model.execution import Now, Outcome, Status
from failover.model.plan import Action, Verdict
from failover.planning.decide import COMMIT_CODES, REFUSE_CODES, SKIP_CODES
from failover.planning.group_rules import GROUP_CODES
from failover.report.explain import entries, explain_text, find_word, near_words, words_text
from failover.report.history_text import HEADERS as HISTORY
from failover.report.phrases import PHRASES
from failover.report.plan_csv import COLUMNS as CSV
from failover.report.plan_rows import HEADERS
from failover.report.status_text import GROUPS, PARTITIONS
from failover.report.translation_text import HEADERS as TRANSLATED
from failover.report.verify_text import LOOKED_HEADERS

ROOT = Path(failover.errors.__file__).parent

# The stable codes of the plan's reasons and findings; others may be added, none changes its meaning.
# fmt: off
STABLE = [
    "translated", "at-log-end", "raised-to-log-start", "local-topic", "already-there", "would-rewind",
    "no-checkpoint", "source-never-committed", "source-offset-expired", "not-mirrored", "topic-missing",
    "partition-missing", "older-than-first-sync", "group-active", "group-state-unknown", "group-unknown",
    "group-type-unsupported", "commits-moving", "beyond-log-end", "target-recreated", "two-sources", "same-cluster",
    "not-authorized", "target-unavailable", "below-precision", "locked", "source-active", "source-degraded",
    "group-excluded", "checkpoint-stale", "offsets-pending", "offsets-expire", "rollback-limited", "mm2-group-sync",
    "min-isr-unsatisfiable", "partition-uncovered", "naming-mismatch", "mirror-stalled", "rewound-upstream",
    "subscription-changes", "local-topic-missing", "local-topic-uncovered", "partition-count-differs",
    "acl-missing", "streams-state", "clock-skew", "authorizer-missing", "lock-unavailable", "two-writers",
    "position-unknown", "source-recreated", "source-truncated", "this-tool", "consumed-here", "mm2-group-sync",
    "unknown", "excluded", "share", "streams", "no-mirrored-topic", "newer-than-checkpoints",
]
# fmt: on


def error_codes() -> set[str]:
    def below(kind: type[failover.errors.FailoverError]) -> set[str]:
        return {kind.code}.union(*(below(sub) for sub in kind.__subclasses__() if sub.__module__ == "failover.errors"))

    return below(failover.errors.FailoverError)


def finding_codes() -> set[str]:
    """Every code that a check or the planner gives a finding: the first argument of ``Finding``."""
    found = set()
    for path in (*(ROOT / "checks").glob("*.py"), *(ROOT / "planning").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                first = node.args[0] if node.args else next(k.value for k in node.keywords if k.arg == "code")
                assert isinstance(first, ast.Constant)
                found.add(str(first.value))
    return found


@pytest.mark.parametrize(
    "words",
    [
        STABLE,
        [*COMMIT_CODES, *SKIP_CODES, *REFUSE_CODES, *GROUP_CODES],
        list(PHRASES),
        [*Verdict, *Action, *Precision, *Proof, *Status, *Outcome, *Now],
        [h for h in HEADERS if h != "GROUP"],
        [
            "NOW",
            "AFTER",
            "LOG END",
            "PROOF",
            "SKIP",
            "UNKNOWN",
            "LOSS",
            "NOT IN",
            "GROUPS",
            "ASKED",
            "SOURCE",
            "RE-READ",
            "SAME",
            "FAILED",
        ],
        ["reread", "reread_max", "position_after", "unreplicated", "auto.offset.reset", "standing-commit"],
        list(CSV),
        [*PARTITIONS, *GROUPS, *TRANSLATED, *LOOKED_HEADERS, *HISTORY],
        ["ACTION", "NOW", "BEFORE", "PLANNED", "READ BACK", "STATUS", "WRITTEN", "ALLOWED", "VERIFIED", "OUTCOME"],
        ["up", "degraded", "down", "denied", "not-asked", "at-least", "at-most"],
        ["Empty", "Dead", "Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Unknown"],
        [*sorted(error_codes()), DecodeError.code],
        sorted(finding_codes()),
    ],
    ids=[
        "stable",
        "reasons",
        "phrases",
        "values",
        "columns",
        "screens",
        "fields",
        "csv",
        "tables",
        "execution",
        "states",
        "group states",
        "errors",
        "findings",
    ],
)
def test_every_word_in_use_is_explained(words: Any):
    assert words
    missing = [str(word) for word in words if find_word(str(word)) is None]
    assert not missing


def test_findings_are_found_in_the_source():
    assert len(finding_codes()) >= len(CHECKS)
    assert {"mm2-group-sync", "position-unknown"} <= finding_codes()


def test_entries_are_complete_and_fit_the_screen():
    for word, entry in entries().items():
        assert entry.word == word
        assert entry.title, word
        assert entry.meaning, word
        assert entry.todo, word
        text = explain_text(entry)
        assert max(map(len, text.splitlines())) <= 100
        assert word in text


def test_words_as_people_type_them():
    for typed in ("LAG AFTER", "lag_after", " lag-after "):
        found = find_word(typed)
        assert found is not None
        assert found.word == "lag-after"
    assert find_word("would-rewnd") is None
    assert near_words("would-rewnd")[0] == "would-rewind"
    assert all(word in words_text().replace("\n", " ") for word in entries())
