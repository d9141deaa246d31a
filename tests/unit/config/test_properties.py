from __future__ import annotations

from pathlib import Path

import pytest

from failover.config.properties import parse_properties, read_properties
from failover.errors import ConfigError, ConfigNotFound


def values(text: str | bytes) -> dict[str, str]:
    data = text if isinstance(text, bytes) else text.encode("latin-1")
    return {key: entry.value for key, entry in parse_properties(data, "f").effective().items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1", {"a": "1"}),
        ("a: 1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a\t=\f1", {"a": "1"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=1", {"": "1"}),
        ("a=1  ", {"a": "1  "}),
        ("a==1", {"a": "=1"}),
        ("a= =1", {"a": "=1"}),
        ("  a=1", {"a": "1"}),
        ("# a=1\n! b=2\n\n  \nc=3", {"c": "3"}),
        ("a=1 # no comment", {"a": "1 # no comment"}),
        ("a=x,\\\n   y", {"a": "x,y"}),
        ("a=x\\\n# y", {"a": "x# y"}),
        ("a=x\\\\\nb=y", {"a": "x\\", "b": "y"}),
        ("a=x\\", {"a": "x"}),
        ("\\\n# no key\n  \\\r\n \\\r! nor this\\\nb=2", {"b": "2"}),
        ("a=1\n\\", {"a": "1", "": ""}),
        ("a=1\n\\\n", {"a": "1", "": ""}),
        ("a=1\n\\\r\n", {"a": "1"}),
        (r"a\=b=1", {"a=b": "1"}),
        (r"a\ b=1", {"a b": "1"}),
        (r"A->B.enabled=true", {"A->B.enabled": "true"}),
        (r"a=\t\n\q\"", {"a": '\t\nq"'}),
        (r"a=\u00e9\u20AC", {"a": "é€"}),
        (b"a=\xe9", {"a": "é"}),
        (b"a=\xc3\xa9", {"a": "Ã©"}),
        ("a=1\rb=2\r\nc=3\n", {"a": "1", "b": "2", "c": "3"}),
        ("a=x\\\r\n  y", {"a": "xy"}),
    ],
)
def test_java_syntax(text, expected):
    assert values(text) == expected


def test_lines_count_continuations_and_every_line_end():
    document = parse_properties(b"# one\r\na=1,\\\r\n  2\r\n\r\nb=3\rc=4\n", "f")
    assert {entry.key: entry.line for entry in document.entries} == {"a": 2, "b": 5, "c": 6}


def test_the_last_double_counts_and_is_noted_with_its_lines():
    document = parse_properties(b"a=1\nb=2\na=3\n\na=4\n", "f.properties")
    assert document.effective()["a"].value == "4"
    assert document.lines("a") == (1, 3, 5)
    (note,) = document.notes
    assert note.code == "duplicate"
    assert str(note) == "f.properties:5: a is set again; line 1, 3 has no effect; keep the one line that is meant"


def test_a_double_is_noted_without_its_value():
    document = parse_properties(b"x.password=hunter2\nx.password=hunter3\n", "f")
    assert "hunter" not in repr(document.notes)


def test_byte_order_mark_and_crlf_are_read_and_noted():
    document = parse_properties(b"\xef\xbb\xbfclusters=a\r\n", "f")
    # As in Java, the mark belongs to the first key.
    assert document.effective()["\xef\xbb\xbfclusters"].value == "a"
    assert [note.code for note in document.notes] == ["byte-order-mark", "encoding"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a=1\nb=\\\n  \\u12", "f:2: a \\u escape"),
        ("a=1".encode("utf-16"), "UTF-16"),
        (b"\x00\x01\x02", "binary"),
    ],
)
def test_what_java_cannot_read_is_an_error_with_its_place(data, words):
    with pytest.raises(ConfigError) as caught:
        parse_properties(data, "f")
    assert words in caught.value.message
    assert caught.value.hint


def test_missing_file_and_folder(tmp_path: Path):
    with pytest.raises(ConfigNotFound) as missing:
        read_properties(tmp_path / "none.properties")
    assert missing.value.exit_code == 2
    with pytest.raises(ConfigError) as folder:
        read_properties(tmp_path)
    assert "cannot be read" in folder.value.message
