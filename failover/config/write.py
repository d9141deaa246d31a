"""Settings as the text of a properties file, with or without the secrets among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from failover.config.providers import references
from failover.config.secret import Secret
from failover.config.settings import Origin, Setting, make_setting

SECRETS_FILE: Final = "/etc/kafka/mm2-secrets.properties"
_FILE_PROVIDER: Final = "org.apache.kafka.common.config.provider.FileConfigProvider"
_MADE: Final = Origin("set")


def without_secrets(
    settings: Iterable[Setting], path: str, name: Callable[[str], str] = str
) -> tuple[list[Setting], list[str]]:
    """Replaces each literal secret by a reference into the properties file ``path``; gives the keys it has to have.

    ``name`` gives the key there of a setting's key.
    """
    found: list[Setting] = []
    keys: list[str] = []
    for setting in settings:
        if isinstance(setting.value, Secret) and setting.text and not references(setting.text):
            keys.append(name(setting.key))
            found.append(Setting(setting.key, f"${{file:{path}:{keys[-1]}}}", setting.origin))
        else:
            found.append(setting)
    return found, keys


def file_provider() -> list[Setting]:
    """Gives the declaration of the provider that such references name."""
    return [
        make_setting("config.providers", "file", _MADE),
        make_setting("config.providers.file.class", _FILE_PROVIDER, _MADE),
    ]


def with_providers(entries: Iterable[Setting]) -> list[Setting]:
    """Adds the file provider to what is declared already."""
    by_key = {setting.key: setting for setting in entries}
    for setting in file_provider():
        present = by_key.get(setting.key)
        if present is None:
            by_key[setting.key] = setting
        elif setting.key == "config.providers" and "file" not in [name.strip() for name in present.text.split(",")]:
            by_key[setting.key] = make_setting(setting.key, f"{present.text}, file", _MADE)
    return list(by_key.values())


def properties_text(entries: Iterable[Setting]) -> str:
    """Writes settings as a properties file that Java reads back unchanged; secrets are written as they are."""
    lines = []
    previous = ""
    for setting in sorted(entries, key=_rank):
        owner = _owner(setting.key)
        if previous and owner != previous:
            lines.append("")
        previous = owner
        lines.append(f"{_escaped(setting.key, key=True)} = {_escaped(setting.text)}")
    return "\n".join(lines) + "\n"


def _rank(setting: Setting) -> int:
    """Puts what concerns the whole file first, then clusters, flows, and this tool's own settings."""
    owner = _owner(setting.key)
    if "->" in owner:
        return 3
    return {"clusters": 0, "config": 1, "failover": 4}.get(owner, 2)


def _owner(key: str) -> str:
    first = key.partition(".")[0]
    return first if "->" in first or first in ("failover", "config", "clusters") else f"cluster {first}"


def _escaped(text: str, *, key: bool = False) -> str:
    written = []
    for index, char in enumerate(text):
        if char == "\\" or (key and char in "=: #!") or (char == " " and index == 0):
            written.append("\\" + char)
        elif char in "\t\n\r\f":
            written.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[char])
        elif " " <= char <= "~":
            written.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass").hex()
            written.append("".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)))
    return "".join(written)
