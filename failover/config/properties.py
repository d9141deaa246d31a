"""Reads Java ``.properties`` files as java.util.Properties does, and remembers the line of each entry."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import msgspec

from failover.config.settings import Note, Origin
from failover.errors import ConfigError, ConfigNotFound

# A line with its end, of which Java knows three.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Entry(msgspec.Struct, frozen=True):
    """Is one key and value of a file, escapes resolved; ``line`` is where its key begins, counted from 1."""

    key: str
    value: str
    line: int


class PropertiesDocument(msgspec.Struct, frozen=True):
    """Is a parsed file: every entry in its order, doubles included (the last one counts, as in Java)."""

    path: str
    entries: tuple[Entry, ...]
    notes: tuple[Note, ...] = ()

    def lines(self, key: str) -> tuple[int, ...]:
        """Gives every line on which a key is set."""
        return tuple(entry.line for entry in self.entries if entry.key == key)

    def effective(self) -> dict[str, Entry]:
        """Gives the entry that counts for each key."""
        return {entry.key: entry for entry in self.entries}


def read_properties(path: str | Path) -> PropertiesDocument:
    """Reads a file as MM2 does (Kafka: Utils.loadProps, ISO-8859-1 with Unicode escapes).

    Raises ConfigNotFound if there is no such file, ConfigError if it cannot be read or parsed.
    """
    return parse_properties(read_file(path), str(path))


def read_file(path: str | Path) -> bytes:
    """Gives a file's bytes; raises ConfigNotFound and ConfigError."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise ConfigNotFound(
            f"{path}: no such file", hint="give the path of your mm2.properties with --config"
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"{path}: cannot be read: {reason}", hint="check the path and its permissions") from None


def parse_properties(data: bytes, path: str) -> PropertiesDocument:
    """Parses the bytes of a file called ``path``; raises ConfigError with the line."""
    start = Origin("file", file=path, line=1)
    notes: list[Note] = []
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigError(
            f"{path}: is UTF-16 text, which Java cannot read either", hint="save it as ISO-8859-1 or ASCII"
        )
    if data.startswith(codecs.BOM_UTF8):
        message = "the file begins with a byte order mark, which Java takes for the beginning of the first key"
        notes.append(Note("byte-order-mark", "", message, start, "save the file as UTF-8 without BOM, or as ASCII"))
    if b"\r\n" in data:
        notes.append(Note("encoding", "", "lines end in CR LF, which Java reads like LF", start))
    if b"\0" in data:
        raise ConfigError(f"{path}: is a binary file", hint="give the path of your mm2.properties with --config")
    document = parse_text(data.decode("latin-1"), path)
    return PropertiesDocument(path, document.entries, (*notes, *document.notes))


def parse_text(text: str, path: str) -> PropertiesDocument:
    """Parses text that is decoded already (Java: Properties.load of a Reader); raises ConfigError with the line."""
    reading = _reading()
    entries: list[Entry] = []
    line = 1
    try:
        for element in reading.parse(_without_empty_beginnings(text)):
            if isinstance(element, reading.KeyValue):
                entries.append(Entry(element.key, element.value, line))
            line += _count_lines(element.source)
    except reading.InvalidUEscapeError:
        raise ConfigError(
            f"{path}:{line}: a \\u escape is not followed by four hexadecimal digits",
            hint="in a properties file a backslash is written twice: \\\\",
        ) from None
    return PropertiesDocument(path, tuple(entries), tuple(_duplicates(path, entries)))


def _reading() -> ModuleType:
    """Imports javaproperties.reading without the package around it.

    The package also loads its XML format, whose urllib, http and email modules take longer than this whole package.
    """
    spec = find_spec("javaproperties")
    assert spec is not None  # a dependency
    name = f"{__name__}.javaproperties"
    package = sys.modules.setdefault(name, ModuleType(name))
    package.__path__ = list(spec.submodule_search_locations or ())
    return import_module(f"{name}.reading")


def _without_empty_beginnings(text: str) -> str:
    """Blanks each line that is a lone backslash where an entry may begin.

    To Java such a line adds nothing and the next one begins afresh, so it may be a comment (java.util.Properties,
    measured on Java 17); javaproperties would make the comment part of a key.
    """
    lines = _LINE.findall(text)
    continued = False
    for index, line in enumerate(lines):
        content = line.strip("\r\n").lstrip(" \t\f")
        if not continued and content == "\\":
            # As a file's last line, though, it is an entry without key and value, unless CR LF ends it.
            ends = index == len(lines) - 1 and not line.endswith("\r\n")
            lines[index] = line.replace("\\", "=" if ends else "")
            continue
        comment = not continued and content.startswith(("#", "!"))
        continued = not comment and (len(content) - len(content.rstrip("\\"))) % 2 == 1
    return "".join(lines)


def _count_lines(source: str) -> int:
    return source.replace("\r\n", "\n").replace("\r", "\n").count("\n")


def _duplicates(path: str, entries: Iterable[Entry]) -> Iterable[Note]:
    lines: dict[str, list[int]] = {}
    for entry in entries:
        lines.setdefault(entry.key, []).append(entry.line)
    for key, places in lines.items():
        if len(places) > 1:
            *earlier, last = places
            message = f"{key} is set again; line {', '.join(map(str, earlier))} has no effect"
            yield Note("duplicate", key, message, Origin("file", key, path, last), "keep the one line that is meant")
