"""Parses the JAAS login-module syntax of ``sasl.jaas.config``."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from failover.config.secret import Secret
from failover.errors import ConfigError

_CONTROL_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_NAMED_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SPACE: Final = re.compile(r"(?:[\x00-\x20]+|//[^\r\n]*|/\*.*?\*/)+", re.DOTALL)
# What java.io.StreamTokenizer joins to a word. A word that begins with a digit, '.' or '-' it takes for a number,
# and Kafka then refuses the value: such values have to be quoted.
# (Said by what is not in a word, since a class with a wide range takes 10 ms to compile.)
_WORD: Final = re.compile(r"[^\x00-#%-@\[-^`{-\x9f][^\x00-#%-,/:-@\[-^`{-\x9f]*")
_OCTAL: Final = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")


class LoginModule(msgspec.Struct, frozen=True):
    """Is one login module with its options, each a secret since any of them may be one."""

    name: str
    control_flag: str
    options: dict[str, Secret]

    @property
    def short_name(self) -> str:
        """Gives the class name without its package, which vendors change (shading)."""
        return self.name.rpartition(".")[2]


class _Token(NamedTuple):
    kind: str  # word, string, or the character itself
    text: str


def parse_jaas(text: str, *, where: str) -> LoginModule:
    """Parses ``Module flag key="value" … ;`` (Kafka: JaasConfig and JaasContext, which want exactly one module).

    ``where`` names the setting for the ConfigError raised on bad syntax, which never shows the text itself.
    """
    tokens = _tokenize(text, where)
    if not tokens:
        raise _bad(where, "names no login module")
    if tokens[0].kind != "word":
        raise _bad(where, "does not begin with the class name of a login module")
    if len(tokens) < 2 or tokens[1].text.lower() not in _CONTROL_FLAGS:
        raise _bad(where, f"has none of {', '.join(_CONTROL_FLAGS)} after its login module")
    options: dict[str, Secret] = {}
    rest = tokens[2:]
    while rest and rest[0].kind != ";":
        key, equals, value = rest[0], rest[1:2], rest[2:3]
        if key.kind not in ("word", "string"):
            raise _bad(where, f"has '{key.kind}' where the name of option {len(options) + 1} should stand")
        if not equals or equals[0].kind != "=" or not value or value[0].kind not in ("word", "string"):
            # The name is safe to show only if it is one: after a missing quote it may be a piece of a password.
            raise _bad(where, f"has no value for option {len(options) + 1}")
        options[key.text] = Secret(value[0].text)
        rest = rest[3:]
    if not rest:
        raise _bad(where, "does not end with a semicolon")
    if len(rest) > 1:
        raise _bad(where, "has more than one login module")
    return LoginModule(tokens[0].text, tokens[1].text.lower(), options)


def _tokenize(text: str, where: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        if space := _SPACE.match(text, position):
            position = space.end()
        elif text[position] in "\"'":
            value, position = _quoted(text, position, where)
            tokens.append(_Token("string", value))
        elif word := _WORD.match(text, position):
            tokens.append(_Token("word", word.group()))
            position = word.end()
        elif text[position] in "=;":
            tokens.append(_Token(text[position], text[position]))
            position += 1
        else:
            raise _bad(where, f"needs quotes around the value at column {position + 1}")
    return tokens


def _quoted(text: str, start: int, where: str) -> tuple[str, int]:
    """Reads a quoted string with the escapes of java.io.StreamTokenizer; gives it and where it ends."""
    quote, position = text[start], start + 1
    characters: list[str] = []
    while position < len(text) and text[position] not in "\r\n":
        character = text[position]
        position += 1
        if character == quote:
            return "".join(characters), position
        if character == "\\" and position < len(text):
            if octal := _OCTAL.match(text, position):
                character, position = chr(int(octal.group(), 8)), octal.end()
            else:
                character = _NAMED_ESCAPES.get(text[position], text[position])
                position += 1
        characters.append(character)
    raise _bad(where, f"has a quote that is not closed (column {start + 1})")


def _bad(where: str, what: str) -> ConfigError:
    return ConfigError(
        f"{where} {what}",
        hint='write it as: …LoginModule required username="…" password="…"; (in the file each backslash twice)',
    )
