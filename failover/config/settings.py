"""One setting, where it was written, and a mapping of settings that reads them with Kafka's types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import msgspec

from failover.config.secret import MASK, Secret, is_secret_key, without_user_info
from failover.errors import ConfigError

_LIST_SEPARATOR = re.compile(r"\s*,\s*")
# Java's String.trim: every character up to the space, no other white space.
_JAVA_BLANKS = "".join(map(chr, range(0x21)))


class Origin(msgspec.Struct, frozen=True):
    """Says where a setting comes from.

    ``kind``: ``file`` (``key`` as written there, ``line`` counted from 1; also a Connect cluster's address), ``set``
    (``--set``), ``driver`` (MM2's dedicated driver, or Strimzi, fills it in), ``default`` (the connector's own default)
    or ``absent`` (the flow has no such connector).
    """

    kind: Literal["file", "set", "driver", "default", "absent"]
    key: str = ""
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        match self.kind:
            case "file":
                return f"{self.file}:{self.line}" if self.line is not None else self.file
            case "set":
                return "--set"
            case _:
                return self.kind


DEFAULT = Origin("default")
DRIVER = Origin("driver")


class Setting(msgspec.Struct, frozen=True):
    """Is one effective value under its effective key, with its origin; a secret one shows a mask."""

    key: str
    value: str | Secret
    origin: Origin

    @property
    def text(self) -> str:
        """Gives the raw value, secrets revealed: untrimmed, as java.util.Properties gives it to MM2."""
        return self.value.reveal() if isinstance(self.value, Secret) else self.value

    @property
    def trimmed(self) -> str:
        """Gives the value as Kafka's ConfigDef sees it."""
        return self.text.strip(_JAVA_BLANKS)

    @property
    def shown(self) -> str:
        """Gives the value as it may appear in any text."""
        return MASK if isinstance(self.value, Secret) else without_user_info(self.value)

    def named(self, key: str) -> Setting:
        """Gives the same value and origin under another effective key."""
        return make_setting(key, self.text, self.origin, secret=isinstance(self.value, Secret))

    def described(self) -> str:
        """Names the setting for an error or a note: the key as written, then file and line."""
        written = self.origin.key or self.key
        return f"{written} ({self.origin})" if self.origin.kind in ("file", "set") else written


def make_setting(key: str, value: str, origin: Origin, *, secret: bool = False) -> Setting:
    """Makes a setting whose value is hidden if the key, as written or as effective, names a secret."""
    hidden = secret or is_secret_key(key) or is_secret_key(origin.key)
    return Setting(key, Secret(value) if hidden else value, origin)


def split_list(text: str) -> tuple[str, ...]:
    """Splits a list as Kafka's ConfigDef does: blanks around commas go, an empty text is the empty list."""
    trimmed = text.strip(_JAVA_BLANKS)
    return tuple(_LIST_SEPARATOR.split(trimmed)) if trimmed else ()


class Settings(Mapping[str, Setting]):
    """Is an immutable set of effective settings, read with Kafka's types (ConfigDef).

    The reading methods raise ConfigError, naming key, file and line, where MM2 itself would refuse the value.
    """

    __slots__ = ("_defaults", "_given", "_resolve")

    def __init__(
        self,
        given: Mapping[str, Setting],
        defaults: Mapping[str, str] | None = None,
        resolve: Callable[[Setting], Setting] | None = None,
    ) -> None:
        self._given = dict(given)
        self._defaults = dict(defaults or {})
        self._resolve = resolve

    def __getitem__(self, key: str) -> Setting:
        if key in self._given:
            return self._given[key]
        return make_setting(key, self._defaults[key], DEFAULT)

    def __iter__(self) -> Iterator[str]:
        yield from self._given
        yield from (key for key in self._defaults if key not in self._given)

    def __len__(self) -> int:
        return len(self._given.keys() | self._defaults.keys())

    def __repr__(self) -> str:
        return "Settings({" + ", ".join(f"{key!r}: {self[key].shown!r}" for key in self) + "})"

    def is_given(self, key: str) -> bool:
        """Tells whether the operator or the driver sets this key, rather than its default."""
        return key in self._given

    def resolved(self, key: str) -> Setting:
        """Gives the setting with the references in it replaced by their configuration providers, where there are any.

        The reading methods below go by it; the mapping itself gives what is written. Raises ConfigError.
        """
        return self[key] if self._resolve is None else self._resolve(self[key])

    def texts(self) -> dict[str, str]:
        """Gives every value as it is written, references replaced except in connection settings.

        Those are looked up when a client is made, since the files they name need not be on this machine.
        """
        elsewhere = ("source.", "target.", "producer.", "consumer.", "admin.", "ssl.", "sasl.", "config.providers")
        return {key: (self[key] if key.startswith(elsewhere) else self.resolved(key)).text for key in self}

    def text(self, key: str) -> str:
        """Gives a STRING value, trimmed."""
        return self.resolved(key).trimmed

    def strings(self, key: str) -> tuple[str, ...]:
        """Gives a LIST value."""
        return split_list(self.resolved(key).text)

    def boolean(self, key: str) -> bool:
        """Gives a BOOLEAN value: true or false in any case, anything else is an error."""
        setting = self.resolved(key)
        match setting.trimmed.lower():
            case "true":
                return True
            case "false":
                return False
        raise ConfigError(
            f"{setting.described()}: '{setting.shown}' is not a boolean",
            hint="write true or false, with nothing after it",
        )

    def integer(self, key: str) -> int:
        """Gives an INT or LONG value."""
        setting = self.resolved(key)
        if re.fullmatch(r"[+-]?[0-9]+", setting.trimmed) is None:
            raise ConfigError(
                f"{setting.described()}: '{setting.shown}' is not a whole number",
                hint="write digits only, with nothing after them",
            )
        return int(setting.trimmed)

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        """Gives a STRING value that must be one of ``choices``."""
        setting = self.resolved(key)
        if setting.trimmed not in choices:
            raise ConfigError(
                f"{setting.described()}: '{setting.shown}' is not one of {', '.join(choices)}",
                hint=f"write {' or '.join(choices)}, with nothing after it",
            )
        return setting.trimmed


class Note(msgspec.Struct, frozen=True):
    """Is something in a configuration that the operator should know, none of it an error.

    ``code`` is a stable slug: ``dropped`` (MM2 ignores the key), ``deprecated``, ``unknown-key``, ``duplicate``,
    ``encoding``, ``no-provider``, ``not-used`` (MM2 uses it, this tool need not) and more; ``failover explain`` knows
    each. ``remedy`` says what to write instead, "" if nothing needs doing.
    """

    code: str
    key: str
    message: str
    origin: Origin = DEFAULT
    remedy: str = ""

    @property
    def text(self) -> str:
        """Gives the message with its remedy, without the place."""
        return f"{self.message}; {self.remedy}" if self.remedy else self.message

    def __str__(self) -> str:
        where = f"{self.origin}: " if self.origin.kind in ("file", "set") else ""
        return f"{where}{self.text}"
