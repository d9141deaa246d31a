"""Java regular expressions, judged by what a real Java answers for the same patterns and names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from failover.mm2.java_regex import JavaRegexError, compile_java_regex

MEASURED = json.loads((Path(__file__).parent / "java_regex.json").read_text(encoding="utf-8"))

# What Java accepts and this tool refuses rather than guess.
REFUSED = {
    "(?x)a b": "flag 'x'",
    "(?u)a": "flag 'u'",
    "(?d)a": "flag 'd'",
    "[a&&]": "empty operand",
    ".(?<=a|bb)": "fixed-width",
    r"\p{javaLowerCase}": "not supported",
    r"\p{IsLatin}": "not supported",
    "a{3}{2}": "illegal repetition",
}


@pytest.mark.parametrize("case", MEASURED["patterns"], ids=lambda case: repr(case["pattern"]))
def test_the_same_names_match_as_in_java(case):
    pattern = case["pattern"]
    if case["matches"] is None or pattern in REFUSED:
        with pytest.raises(JavaRegexError, match=REFUSED.get(pattern)):
            compile_java_regex(pattern)
        return
    compiled = compile_java_regex(pattern)
    assert [name for name in MEASURED["names"] if compiled.fullmatch(name)] == case["matches"]


def test_what_is_refused_says_why():
    with pytest.raises(JavaRegexError, match=r"unmatched '\)' at position 1"):
        compile_java_regex("a)b")
    with pytest.raises(JavaRegexError, match="dangling '\\*' at position 0"):
        compile_java_regex("*.orders")
    with pytest.raises(JavaRegexError, match="unclosed group"):
        compile_java_regex("(a")
    with pytest.raises(JavaRegexError, match="ambiguous"):
        compile_java_regex(r"(a)\11")
    with pytest.raises(JavaRegexError, match=r"\\b"):
        compile_java_regex(r"\b{g}a")
    with pytest.raises(JavaRegexError, match="no such character"):
        compile_java_regex(r"\x{110000}")
