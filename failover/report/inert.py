r"""Text from outside made harmless: group and topic names, client ids, hosts, metadata, errors of brokers.

Kafka puts no limit on what a group name, a client id or a commit's metadata holds, so any of them
may carry terminal escapes, newlines, right-to-left overrides, HTML or a spreadsheet formula. What
cannot be printed is shown as a visible escape (``\x1b``); what a format would read as its own
syntax is quoted for it.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_MARKDOWN = {
    **{ord(c): f"\\{c}" for c in "*_~[]#!$"},
    **{ord(c): f"&#{ord(c)};" for c in "\\|<>&`"},
}
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_NOT_IN_JSON = re.compile(r"[^\x20-\x7e\n]")


@lru_cache(maxsize=65536)
def inert_line(text: str) -> str:
    """Shows everything unprintable as an escape: control, format, bidi and newline characters, surrogates."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    number = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def inert_csv(text: str) -> str:
    """Keeps a spreadsheet from taking a cell for a formula: an apostrophe goes before it."""
    line = inert_line(text)
    return f"'{line}" if line.lstrip().startswith(_FORMULA) or text[:1] in ("\t", "\r") else line


def inert_markdown(text: str) -> str:
    """Writes prose that may quote outside text: no markup, no HTML, no table cell ends in it."""
    return inert_line(text).translate(_MARKDOWN)


def markdown_code(text: str) -> str:
    """Writes a name as a code span, in which nothing is a link, a mention, markup or HTML.

    A pipe would end a table's cell even there, so it is shown as an escape.
    """
    line = inert_line(text).replace("|", "\\x7c")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") or not line.strip() else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def inert_json(document: str) -> str:
    """Writes every unprintable character of a JSON document as a JSON escape; its meaning stays the same.

    Outside its strings JSON is plain ASCII, so what is replaced stands inside a string.
    """
    return _NOT_IN_JSON.sub(_json_escape, document)


def ascii_json(document: str) -> str:
    """Writes a JSON document in ASCII alone; its meaning stays the same."""
    return _NOT_ASCII.sub(_utf16_escape, document)


def _json_escape(match: re.Match[str]) -> str:
    char = match.group()
    return char if char.isprintable() else _utf16_escape(match)


def _utf16_escape(match: re.Match[str]) -> str:
    char = match.group()
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
