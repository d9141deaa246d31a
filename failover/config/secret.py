"""Keeps passwords and keys out of every text: a value that shows itself only when asked to."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MASK: Final = "********"

# Kafka types these settings PASSWORD; the loose words cover providers' and plug-ins' own settings.
# "token.endpoint.url" and "key.converter" are no secrets, "ssl.keystore.key" is one.
_SECRET_KEY: Final = re.compile(
    r"password|passwd|passphrase|secret|jaas\.config$|keystore\.key$|user\.info$|token$"
    r"|(private|api|access)[._-]?key",
    re.IGNORECASE,
)
# A provider is named by whoever declares it, also "secrets"; its class is no secret.
_PROVIDER: Final = re.compile(r"(^|\.)config\.providers\.[^.]+\.class$")
# The user and password that may stand in an address.
_USER_INFO: Final = re.compile(r"(?<=://)[^/?#@\s]+(?=@)")


class Secret:
    """Holds a secret text; ``repr``, ``str`` and ``format`` give a mask, ``reveal`` the text.

    It is deliberately no ``str`` and no Struct: whatever serialises it by accident fails instead of leaking.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Gives the secret itself, to be handed to a client and nowhere else."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a Secret is not serialised")


@lru_cache(maxsize=4096)
def is_secret_key(key: str) -> bool:
    """Tells whether a setting's name says that its value is a password, a key or the like."""
    return _SECRET_KEY.search(key) is not None and _PROVIDER.search(key) is None


def without_user_info(text: str) -> str:
    """Masks the user and password in every address of a text (``https://user:password@host``)."""
    return _USER_INFO.sub(MASK, text)
