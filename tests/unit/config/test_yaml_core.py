from __future__ import annotations

import pytest

from failover.config.yaml_core import load_yaml
from failover.errors import ConfigError


def value(text: str):
    (document,) = load_yaml(text, "f.yaml")
    return document


@pytest.mark.parametrize(
    "text", ["on", "no", "yes", "off", "y", "1:30", "2001-01-01", "010", "+1", "1_000", "1.10", "1e3"]
)
def test_what_only_yaml_1_1_takes_for_other_types_stays_text(text):
    assert value(f"k: {text}") == {"k": text}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("true", True), ("False", False), ("12", 12), ("-3", -3), ("0x10", 16), ("null", None), ("", None)],
)
def test_core_types(text, expected):
    assert value(f"k: {text}")["k"] == expected


def test_lines_merges_and_keys_that_are_no_text():
    document = value("base: &b\n  x: 1\nmine:\n  <<: *b\n  y: 2\ntrue: 3\n9: z\n")
    assert document["mine"] == {"x": 1, "y": 2}
    assert document.lines == {"base": 1, "mine": 3, "true": 6, "9": 7}
    assert document["mine"].lines["y"] == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\na: 2", "f.yaml:2: is no YAML: a is written twice"),
        ("a: 'hunter2\n", "f.yaml:2: is no YAML"),
        ("\ta: 1", "f.yaml:1"),
        ("a: !!python/object/apply:os.getcwd []", "f.yaml:1: is no YAML"),
    ],
)
def test_errors_name_the_line_and_quote_nothing(text, words):
    with pytest.raises(ConfigError) as caught:
        list(load_yaml(text, "f.yaml"))
    assert words in caught.value.message
    assert "hunter2" not in caught.value.message
