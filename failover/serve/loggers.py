"""This package's loggers by name, with levels in Kafka Connect's words."""

from __future__ import annotations

import logging
import time
from typing import Any

_ROOT = "failover"
_OFF = logging.CRITICAL + 10
_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": _OFF,
}


class Loggers:
    """Reads and sets levels; remembers when each was set here."""

    def __init__(self) -> None:
        self._modified: dict[str, int] = {}

    def all(self) -> dict[str, Any]:
        """Gives each logger that has a level of its own, and the package's."""
        names = [
            name
            for name, found in logging.root.manager.loggerDict.items()
            if isinstance(found, logging.Logger) and _is_ours(name) and (found.level or name == _ROOT)
        ]
        return {name: self._shown(name) for name in sorted(names)}

    def one(self, name: str) -> dict[str, Any] | None:
        """Gives a logger's level, its own or inherited; None where there is no such logger."""
        known = _is_ours(name) and isinstance(logging.root.manager.loggerDict.get(name), logging.Logger)
        return self._shown(name) if known else None

    def turn(self, name: str, level: str) -> list[str] | None:
        """Sets a level below a name; gives the loggers that changed, None where there is no such level or logger."""
        number = _LEVELS.get(level.upper())
        if number is None or not _is_ours(name):
            return None
        below = [
            each
            for each, found in logging.root.manager.loggerDict.items()
            if isinstance(found, logging.Logger) and found.level and each.startswith(f"{name}.")
        ]
        now = int(time.time() * 1000)
        for each in (name, *below):
            logging.getLogger(each).setLevel(number)
            self._modified[each] = now
        return sorted((name, *below))

    def _shown(self, name: str) -> dict[str, Any]:
        number = logging.getLogger(name).getEffectiveLevel()
        level = next((word for word, each in _LEVELS.items() if each == number and word != "TRACE"), "OFF")
        return {"level": level, "last_modified": self._modified.get(name)}


def _is_ours(name: str) -> bool:
    # librdkafka's lines may hold what is in a client's configuration, so they are switched by -vv alone.
    return (name == _ROOT or name.startswith(f"{_ROOT}.")) and not name.startswith(f"{_ROOT}.librdkafka")
