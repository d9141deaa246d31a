"""What each code, verdict and column means, what to do about it, and an example."""

from __future__ import annotations

from typing import NamedTuple


class Explanation(NamedTuple):
    """Is the entry of one word. ``kind``: reason, finding, error, verdict, precision, proof, outcome, column, state,
    topic (the replicator does not copy it) or seed.
    """

    word: str
    kind: str
    title: str
    meaning: str
    todo: str
    example: str


def entries() -> dict[str, Explanation]:
    """Gives every entry by its word."""
    from failover.report.explain_columns import COLUMNS
    from failover.report.explain_config import CONFIG
    from failover.report.explain_errors import ERRORS
    from failover.report.explain_findings import FINDINGS
    from failover.report.explain_reasons import REASONS
    from failover.report.explain_replicator import REPLICATOR
    from failover.report.explain_status import STATUS
    from failover.report.explain_words import WORDS

    return {
        word: Explanation(word, *rest)
        for table in (COLUMNS, STATUS, REPLICATOR, CONFIG, ERRORS, FINDINGS, WORDS, REASONS)
        for word, rest in table.items()
    }


def find_word(typed: str) -> Explanation | None:
    """Finds an entry as people type it: ``LAG AFTER``, ``lag_after`` and ``lag-after`` are one word."""
    return entries().get("-".join(typed.strip().lower().replace("_", " ").split()))


def near_words(typed: str) -> list[str]:
    """Gives the words closest to a mistyped one."""
    from difflib import get_close_matches

    return get_close_matches(typed.lower().replace("_", "-"), entries(), 3, 0.5)


def explain_text(entry: Explanation, *, width: int = 100) -> str:
    """Writes one entry for a terminal."""
    from failover.report.table import labelled

    lines = [f"{entry.word} ({entry.kind}): {entry.title}", ""]
    for label, text in (("MEANS", entry.meaning), ("TO DO", entry.todo), ("EXAMPLE", entry.example)):
        lines += labelled(label, text, width=width)
    return "\n".join(lines) + "\n"


def words_text(*, width: int = 100) -> str:
    """Lists every word there is, by kind."""
    from failover.report.table import labelled

    kinds: dict[str, list[str]] = {}
    for entry in entries().values():
        kinds.setdefault(entry.kind, []).append(entry.word)
    lines = [
        line
        for kind, words in sorted(kinds.items())
        for line in labelled(f"{kind}:", ", ".join(sorted(words)), width=width, indent=11)
    ]
    return "\n".join(lines) + "\n"
