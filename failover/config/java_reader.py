"""Reads single settings of a Java client: trimmed, with the place they were written at for whatever is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

from failover.config.secret import Secret
from failover.config.settings import Setting
from failover.errors import ConfigError


class ClientReader:
    """Reads the client properties of the cluster ``alias``.

    ``own_prefix`` is what an operator puts before a key to give this tool a value of its own.
    """

    def __init__(self, properties: Mapping[str, Setting], alias: str, *, own_prefix: str | None = None) -> None:
        self.properties = properties
        self.alias = alias
        self._own_prefix = f"failover.cluster.{alias}." if own_prefix is None else own_prefix

    def value(self, key: str) -> str:
        """Gives a trimmed value, empty if not set."""
        setting = self.properties.get(key)
        return setting.trimmed if setting is not None else ""

    def secret(self, key: str) -> Secret | None:
        """Gives a value that stays hidden, None if it is not set or empty."""
        text = self.value(key)
        return Secret(text) if text else None

    def milliseconds(self, key: str) -> float | None:
        """Gives a time in seconds, None if it is not set."""
        return None if (number := self._number(key)) is None else number / 1000

    def fraction(self, key: str, *, low: float, high: float, default: float) -> float:
        """Gives a number within [low, high]."""
        number = self._number(key)
        if number is None:
            return default
        if not low <= number <= high:
            raise ConfigError(f"{self.where(key)}: {number:g} is not within {low:g} to {high:g}", hint="correct it")
        return number

    def boolean(self, key: str) -> bool:
        """Gives a BOOLEAN, false if it is not set."""
        text = self.value(key).lower()
        if text not in ("", "true", "false"):
            raise ConfigError(f"{self.where(key)}: '{text}' is not a boolean", hint="write true or false")
        return text == "true"

    def _number(self, key: str) -> float | None:
        text = self.value(key)
        if not text:
            return None
        if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) is None:
            raise ConfigError(f"{self.where(key)}: '{text}' is no number", hint="write digits, nothing after them")
        return float(text)

    def where(self, key: str) -> str:
        """Names a setting for an error: as it was written with its place, or as it would be written."""
        setting = self.properties.get(key)
        return setting.described() if setting is not None else f"{self.alias}.{key}"

    def own(self, key: str) -> str:
        """Gives the key under which an operator gives this tool a value of its own."""
        return f"{self._own_prefix}{key}"

    def refuse_class(self, key: str, hint: str) -> NoReturn:
        """Raises the error of a Java class that would have to run here."""
        raise ConfigError(f"{self.where(key)}: {self.value(key)} is a Java class and cannot be used here", hint=hint)
