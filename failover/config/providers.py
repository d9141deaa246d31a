"""Configuration providers: ``${provider:path:key}`` in a value, replaced when the value is needed and not before.

Kafka's own three are read here (``file``, ``env``, ``directory``), and Strimzi's Kubernetes secrets from a folder. What
a provider gives is a secret, whatever the setting is called. Sources: ConfigTransformer, FileConfigProvider,
EnvVarConfigProvider, DirectoryConfigProvider; MM2 hands references on to whoever reads the value (KAFKA-14653).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from failover.config.settings import Setting, make_setting, split_list
from failover.errors import ConfigError

# Kafka: ConfigTransformer.DEFAULT_PATTERN.
REFERENCE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")

_KAFKA = "org.apache.kafka.common.config.provider."
_STRIMZI = "io.strimzi.kafka."
FILE, ENV, DIRECTORY, SECRET = "file", "env", "directory", "secret"
KINDS: Final[Mapping[str, str]] = {
    f"{_KAFKA}FileConfigProvider": FILE,
    f"{_KAFKA}EnvVarConfigProvider": ENV,
    f"{_KAFKA}DirectoryConfigProvider": DIRECTORY,
    f"{_STRIMZI}EnvVarConfigProvider": ENV,
    f"{_STRIMZI}KubernetesSecretConfigProvider": SECRET,
}
USUAL_NAMES: Final[Mapping[str, str]] = {
    "file": f"{_KAFKA}FileConfigProvider",
    "env": f"{_KAFKA}EnvVarConfigProvider",
    "dir": f"{_KAFKA}DirectoryConfigProvider",
    "directory": f"{_KAFKA}DirectoryConfigProvider",
    "secrets": f"{_STRIMZI}KubernetesSecretConfigProvider",
    "strimzifile": f"{_KAFKA}FileConfigProvider",
    "strimzienv": f"{_KAFKA}EnvVarConfigProvider",
    "strimzidir": f"{_KAFKA}DirectoryConfigProvider",
    "strimzisecrets": f"{_STRIMZI}KubernetesSecretConfigProvider",
}
"""What a name means to a connector whose worker, not its own configuration, declares the providers."""


def references(text: str) -> tuple[str, ...]:
    """Gives the provider names of all ``${provider:path:key}`` in a value."""
    return tuple(match.group(1) for match in REFERENCE.finditer(text))


class Provider(msgspec.Struct, frozen=True):
    """Is one declared provider: its Java class and its parameters, the ``param.`` prefix removed."""

    class_name: str
    parameters: Mapping[str, str] = {}


class Providers(msgspec.Struct, frozen=True):
    """Is what resolves the references of one cluster's settings.

    ``strict``: a reference to a provider that is not declared is an error, since a Connect worker that is not seen here
    may declare it; otherwise it stays literal, as in Kafka. ``secrets_dir`` holds Kubernetes secrets as folders
    (``NAME/KEY``) or manifests (``NAME.yaml``).
    """

    declared: Mapping[str, Provider] = {}
    strict: bool = False
    secrets_dir: str = ""

    def resolve(self, setting: Setting, own_key: str = "") -> Setting:
        """Gives the setting with its references replaced; the same one if there are none.

        ``own_key`` is the setting of this tool to be offered instead. Raises ConfigError naming the setting and never
        what the provider gave.
        """
        if "${" not in setting.text:
            return setting
        found = False

        def replace(match: re.Match[str]) -> str:
            nonlocal found
            value = self._value(match, setting, own_key)
            found = found or value is not None
            return match.group() if value is None else value

        text = REFERENCE.sub(replace, setting.text)
        return make_setting(setting.key, text, setting.origin, secret=True) if found else setting

    def _value(self, match: re.Match[str], setting: Setting, own_key: str) -> str | None:
        name, path, key = match.group(1), match.group(2) or "", match.group(3)
        provider = self.declared.get(name)
        instead = f"--set {own_key}=…" if own_key else "--set"
        if provider is None:
            if not self.strict:
                return None
            raise ConfigError(
                f"{setting.described()} takes its value from the configuration provider '{name}', "
                "and it is not known what that is",
                hint=f"say so with --set config.providers={name} --set config.providers.{name}.class=…, "
                f"or give the value with {instead}",
            )
        kind = KINDS.get(provider.class_name)
        if kind is None:
            raise ConfigError(
                f"{setting.described()} takes its value from the configuration provider '{name}', and "
                f"{provider.class_name or 'its class, which is not given,'} cannot be asked here",
                hint=f"give the value itself with {instead}",
            )
        try:
            return _READERS[kind](_Question(provider, path, key, self.secrets_dir))
        except (OSError, ValueError, LookupError) as error:
            raise ConfigError(
                f"{setting.described()}: the configuration provider '{name}' gives no value: {_reason(error)}",
                hint=self._hint(kind, path, instead),
            ) from None

    def _hint(self, kind: str, path: str, instead: str) -> str:
        if kind != SECRET:
            return f"is it there, and readable for this user? Or give the value with {instead}"
        namespace, _, name = path.rpartition("/")
        folder = self.secrets_dir or "DIR"
        option = f" -n {namespace}" if namespace else ""
        where = f"kubectl get secret {name}{option} -o yaml > {folder}/{name}.yaml"
        return f"{where}; then --secrets-dir {folder}" if not self.secrets_dir else where


NO_PROVIDERS: Final = Providers()


class _Question(NamedTuple):
    provider: Provider
    path: str
    key: str
    secrets_dir: str


class Resolved(Mapping[str, Setting]):
    """Is settings whose references are replaced when one is asked for, so that an unused one is never looked up."""

    def __init__(self, raw: Mapping[str, Setting], providers: Providers, own_prefix: str = "") -> None:
        self._raw, self._providers, self._own_prefix = raw, providers, own_prefix

    def __getitem__(self, key: str) -> Setting:
        own_key = f"{self._own_prefix}{key}" if self._own_prefix else ""
        return self._providers.resolve(self._raw[key], own_key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


def declared_in(settings: Mapping[str, Setting]) -> dict[str, Provider]:
    """Gives the providers that ``config.providers`` and ``config.providers.NAME.…`` declare."""
    names = split_list(settings["config.providers"].text) if "config.providers" in settings else ()
    found = {}
    for name in names:
        prefix = f"config.providers.{name}."
        own = {key[len(prefix) :]: setting.trimmed for key, setting in settings.items() if key.startswith(prefix)}
        parameters = {key.removeprefix("param."): text for key, text in own.items() if key.startswith("param.")}
        found[name] = Provider(own.get("class", ""), parameters)
    return found


def _from_file(asked: _Question) -> str:
    from failover.config.properties import parse_text

    # FileConfigProvider opens the file as UTF-8 text, where MM2's own file is ISO-8859-1.
    entries = parse_text(_allowed(asked).read_bytes().decode("utf-8"), asked.path).effective()
    if asked.key not in entries:
        raise LookupError(f"{asked.path} has no key {asked.key}")
    return entries[asked.key].value


def _from_environment(asked: _Question) -> str:
    if asked.path:
        raise LookupError("${env:NAME} takes no path")
    pattern = asked.provider.parameters.get("allowlist.pattern")
    if pattern and re.fullmatch(pattern, asked.key) is None:
        raise LookupError(f"{asked.key} is not in its allowlist.pattern")
    if asked.key not in os.environ:
        raise LookupError(f"the environment has no variable {asked.key}")
    return os.environ[asked.key]


def _from_directory(asked: _Question) -> str:
    if "/" in asked.key or asked.key in (".", ".."):
        raise LookupError("the key is no file name")
    return (_allowed(asked) / asked.key).read_bytes().decode("utf-8")


def _from_secret(asked: _Question) -> str:
    from failover.config.secrets_dir import secret_value

    if not asked.secrets_dir:
        raise LookupError(f"it is in the Kubernetes secret {asked.path}, key {asked.key}")
    return secret_value(Path(asked.secrets_dir).expanduser(), asked.path, asked.key)


_READERS: Final[Mapping[str, Callable[[_Question], str]]] = {
    FILE: _from_file,
    ENV: _from_environment,
    DIRECTORY: _from_directory,
    SECRET: _from_secret,
}


def _allowed(asked: _Question) -> Path:
    """Gives the path unless the provider's ``allowed.paths`` (Kafka 3.8) keeps it out."""
    place = Path(asked.path)
    allowed = asked.provider.parameters.get("allowed.paths", "")
    if allowed:
        roots = [Path(root.strip()).resolve() for root in allowed.split(",")]
        if not any(place.resolve().is_relative_to(root) for root in roots):
            raise LookupError(f"{asked.path} is not below its allowed.paths")
    return place


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror or type(error).__name__}"
    if isinstance(error, UnicodeDecodeError):
        return "it is no UTF-8 text"
    return str(error.args[0]) if error.args else type(error).__name__
