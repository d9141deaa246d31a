"""Commands of Kafka's own tools, with names from outside quoted for a shell. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLAIN_WORD = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


def shell(word: str) -> str:
    """Quotes a word for a POSIX shell; one with unprintable characters as ``$'…'``, which bash, ksh and zsh read."""
    if _PLAIN_WORD.fullmatch(word):
        return word
    if word.isprintable():
        return "'" + word.replace("'", "'\"'\"'") + "'"
    body = "".join(_shell_escape(char) for char in word)
    return f"$'{body}'"


def tool(name: str, servers: Sequence[str], *words: str) -> str:
    """Writes a command of Kafka's own tools; ``servers``: where the cluster's brokers listen."""
    return " ".join([f"{name}.sh", "--bootstrap-server", shell(",".join(servers) or "HOST:PORT"), *words])


def _shell_escape(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    if char.isprintable():
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
