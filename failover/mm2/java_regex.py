"""Java regular expressions, as MirrorMaker 2's filters use them, in Python's syntax.

What both languages write alike passes through; the rest is rewritten, or refused with a reason: a
filter that silently selects other groups than MirrorMaker 2 does is worse than none.
Source of the rules: java.util.regex.Pattern (Java 17).
"""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from functools import lru_cache

_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})[?+]?")
_GROUP_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]*>")
_FLAGS = re.compile(r"([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_PLAIN_GROUPS = ("?:", "?=", "?!", "?<=", "?<!", "?>")

_ONE_CHAR = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CODED_CHAR = {
    "0": (re.compile(r"[0-3]?[0-7]{1,2}"), 8),
    "u": (re.compile(r"[0-9a-fA-F]{4}"), 16),
    "x": (re.compile(r"[0-9a-fA-F]{2}|\{[0-9a-fA-F]+\}"), 16),
}
_VERTICAL = r"\n\x0b\f\r\x85\u2028\u2029"
# What stands between the brackets of a class; the negation is written with the capital letter.
_SETS = {
    "d": r"\d",
    "w": r"\w",
    "s": r"\s",
    "h": r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": _VERTICAL,
}
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": "".join(f"\\{c}" for c in string.punctuation),
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
_CODE_POINT = re.compile(r"\\U[0-9a-f]{8}")
_CATEGORY = re.compile(r"(?:Is|gc=|general_category=)?([LMNPSZC][a-z]?)")
_ASSERTIONS = {"b": r"\b", "B": r"\B", "A": r"\A", "G": r"\A", "z": r"\Z", "Z": rf"(?=(?:\r\n|[{_VERTICAL}])?\Z)"}


class JavaRegexError(ValueError):
    """Says why a Java regular expression is invalid, or cannot be expressed in Python."""


def compile_java_regex(pattern: str) -> re.Pattern[str]:
    """Compiles a Java regular expression; use ``fullmatch`` on it where Java calls ``matches``.

    Raises JavaRegexError.
    """
    translated = to_python(pattern)
    try:
        # Java's \w, \d, \s and (?i) know ASCII only unless told otherwise.
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise JavaRegexError(str(error)) from error


def to_python(pattern: str) -> str:
    """Rewrites a Java regular expression in Python's syntax; raises JavaRegexError."""
    translation = _Translation(pattern)
    result = translation.alternatives()
    if translation.at < len(pattern):
        raise JavaRegexError(f"unmatched ')' at position {translation.at}")
    return result


class _Translation:
    """Walks once over a pattern; ``at`` is the position of the next unread character."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def alternatives(self) -> str:
        """Translates up to the end or the parenthesis that closes the group."""
        out: list[str] = []
        # (?i) holds to the end of its group in Java, across alternatives; Python wants (?i:…) around each.
        switched: list[str] = []
        while self.at < len(self.pattern) and (char := self.pattern[self.at]) != ")":
            if char == "|":
                self.at += 1
                out.append(")" * len(switched) + "|" + "".join(switched))
            elif (flags := self._switched_flags()) is not None:
                switched.append(flags)
                out.append(flags)
            else:
                out.append(self._atom() + self._quantifier())
        return "".join(out) + ")" * len(switched)

    def _switched_flags(self) -> str | None:
        found = _FLAGS.match(self.pattern, self.at + 2) if self.pattern.startswith("(?", self.at) else None
        if found is None or found[3] != ")":
            return None
        self.at = found.end()
        return _scoped_flags(found)

    def _atom(self) -> str:
        char = self._next()
        match char:
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case "." | "^" | "$":
                return char
            case "*" | "+" | "?":
                raise JavaRegexError(f"dangling {char!r} at position {self.at - 1}")
            case "{":
                raise JavaRegexError(f"illegal repetition at position {self.at - 1}")
        return re.escape(char)

    def _quantifier(self) -> str:
        found = _QUANTIFIER.match(self.pattern, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def _group(self) -> str:
        opening = "("
        if self._ahead("?"):
            opening = self._special_group()
        inner = self.alternatives()
        if not self._take(")"):
            raise JavaRegexError("unclosed group")
        return f"{opening}{inner})"

    def _special_group(self) -> str:
        for plain in _PLAIN_GROUPS:
            if self._take(plain):
                return f"({plain}"
        if self._take("?<"):
            name = self._expect(_GROUP_NAME, "a group name")
            return f"(?P<{name}"
        self.at += 1
        found = _FLAGS.match(self.pattern, self.at)
        if found is None:
            raise JavaRegexError(f"unknown group construct at position {self.at}")
        self.at = found.end()
        return _scoped_flags(found)

    def _escape(self) -> str:
        if self._take("Q"):
            return re.escape(self._quoted())
        char = self._next()
        if char in _ASSERTIONS:
            if self._ahead("{"):
                raise JavaRegexError(f"\\{char}{{…}} has no counterpart in Python")
            return _ASSERTIONS[char]
        if char == "R":
            return rf"(?:\r\n|[{_VERTICAL}])"
        if char == "k" and self._take("<"):
            return f"(?P={self._expect(_GROUP_NAME, 'a group name')[:-1]})"
        if char in "123456789":
            if self.at < len(self.pattern) and self.pattern[self.at].isdecimal():
                raise JavaRegexError("a back-reference followed by a digit is ambiguous")
            return f"(?:\\{char})"
        content, negated = self._set_or_char(char)
        return f"[^{content}]" if negated else f"[{content}]"

    def _class(self) -> str:
        """Translates a character class; the opening bracket has been read."""
        negated = self._take("^")
        operands: list[str] = []
        parts: list[str] = []
        others: list[str] = []
        while not self._ahead("]") or not (parts or others or operands):
            if self._take("&&"):
                operands.append(_union(parts, others))
                parts, others = [], []
            elif self._take("["):
                others.append(self._class())
            elif self._take("\\Q"):
                parts += (_class_char(c) for c in self._quoted())
            else:
                self._class_item(parts, others)
        self.at += 1
        if negated and not others and not operands:
            return f"[^{''.join(parts)}]"
        *rest, last = [*operands, _union(parts, others)]
        body = "".join(f"(?={operand})" for operand in rest) + last
        if negated:
            return f"(?:(?!{body})(?s:.))"
        return f"(?:{body})" if rest else body

    def _class_item(self, parts: list[str], others: list[str]) -> None:
        content, negated = self._class_atom()
        if negated:
            others.append(f"[^{content}]")
            return
        is_range = self._ahead("-") and self.pattern[self.at + 1 : self.at + 2] not in ("", "]", "[")
        if is_range and not _is_set(content):
            self.at += 1
            end, end_negated = self._class_atom()
            if end_negated or _is_set(end):
                raise JavaRegexError(f"illegal character range at position {self.at}")
            content = f"{content}-{end}"
        parts.append(content)

    def _class_atom(self) -> tuple[str, bool]:
        char = self._next()
        if char != "\\":
            return _class_char(char), False
        return self._set_or_char(self._next())

    def _set_or_char(self, char: str) -> tuple[str, bool]:
        """Gives what an escape stands for, as the content of a class, and whether that is to be negated."""
        if not (char.isascii() and char.isalnum()):
            return _class_char(char), False
        if char in _ONE_CHAR:
            return _class_char(_ONE_CHAR[char]), False
        if char in _CODED_CHAR:
            digits, base = _CODED_CHAR[char]
            code = int(self._expect(digits, f"the digits of \\{char}").strip("{}"), base)
            if code > sys.maxunicode:
                raise JavaRegexError(f"\\{char}: no such character")
            return _class_char(chr(code)), False
        if char == "c":
            return _class_char(chr(ord(self._next()) ^ 64)), False
        if char.lower() in _SETS:
            return _SETS[char.lower()], char.isupper()
        if char in "pP":
            return self._property(), char == "P"
        raise JavaRegexError(f"\\{char} is not supported")

    def _property(self) -> str:
        name = self._next()
        if name == "{":
            end = self.pattern.find("}", self.at)
            if end < 0:
                raise JavaRegexError("unclosed \\p{")
            name, self.at = self.pattern[self.at : end], end + 1
        if name in _POSIX:
            return _POSIX[name]
        category = _CATEGORY.fullmatch(name)
        content = _category(category[1]) if category else ""
        if not content:
            raise JavaRegexError(f"\\p{{{name}}} is not supported")
        return content

    def _quoted(self) -> str:
        end = self.pattern.find("\\E", self.at)
        end = len(self.pattern) if end < 0 else end
        text, self.at = self.pattern[self.at : end], min(end + 2, len(self.pattern))
        return text

    def _next(self) -> str:
        if self.at >= len(self.pattern):
            raise JavaRegexError("the pattern ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def _ahead(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def _take(self, text: str) -> bool:
        taken = self._ahead(text)
        self.at += len(text) * taken
        return taken

    def _expect(self, wanted: re.Pattern[str], what: str) -> str:
        found = wanted.match(self.pattern, self.at)
        if found is None:
            raise JavaRegexError(f"{what} expected at position {self.at}")
        self.at = found.end()
        return found[0]


def _scoped_flags(found: re.Match[str]) -> str:
    on, off = set(found[1]), set(found[2] or "")
    unknown = (on | off) - set("ims")
    if unknown:
        raise JavaRegexError(f"the flag {min(unknown)!r} has no counterpart in Python")
    on -= off
    return f"(?{''.join(sorted(on))}{'-' if off else ''}{''.join(sorted(off))}:"


def _union(parts: list[str], others: list[str]) -> str:
    pieces = ([f"[{''.join(parts)}]"] if parts else []) + others
    if not pieces:
        raise JavaRegexError("an empty operand of '&&'")
    return pieces[0] if len(pieces) == 1 else f"(?:{'|'.join(pieces)})"


def _class_char(char: str) -> str:
    return char if char.isascii() and char.isalnum() else f"\\U{ord(char):08x}"


def _is_set(content: str) -> bool:
    return len(content) != 1 and _CODE_POINT.fullmatch(content) is None


@lru_cache(maxsize=8)
def _category(name: str) -> str:
    """Gives the content of a class for a Unicode general category; takes a tenth of a second when first asked for."""
    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)).startswith(name):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
