"""Finds and loads the configuration, and picks the flow a command works on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from failover.config.flow import Config, FlowConfig, SelectedFlow
from failover.config.properties import PropertiesDocument
from failover.config.resolve import aliases_in, file_notes, resolve
from failover.config.settings import Note, Origin, Setting, make_setting
from failover.errors import ConfigError, ConfigNotFound, FlowAmbiguous, UnknownAlias, UsageError

if TYPE_CHECKING:
    from failover.config.documents import Document, Running

DEFAULT_FILE = "mm2.properties"


class Loaded(msgspec.Struct, frozen=True):
    """Is what was read before it is resolved: the documents by their paths, and ``--set``.

    ``raw`` has the settings of an mm2.properties file with ``--set`` over them, or ``--set`` alone.
    """

    paths: tuple[str, ...]
    documents: tuple[object, ...]
    raw: Mapping[str, Setting]
    secrets_dir: str = ""

    @property
    def shown(self) -> str:
        """Names what was read, without what may be a password in an address."""
        from failover.config.documents import address_shown, is_address

        return ", ".join(address_shown(path) if is_address(path) else path for path in self.paths)

    @property
    def properties(self) -> PropertiesDocument | None:
        """Gives the mm2.properties file, None where the configuration is of another form."""
        (first, *_) = self.documents
        return first if isinstance(first, PropertiesDocument) else None


def find_config(paths: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Gives the paths to load: ``paths``, then ``$FAILOVER_CONFIG``, then ``./mm2.properties``.

    Raises ConfigNotFound if there is none.
    """
    environ = os.environ if environ is None else environ
    if paths:
        return tuple(paths)
    if path := environ.get("FAILOVER_CONFIG", ""):
        return (path,)
    if not Path(DEFAULT_FILE).is_file():
        raise ConfigNotFound(
            f"no configuration: neither --config nor $FAILOVER_CONFIG is given and there is no ./{DEFAULT_FILE}",
            hint="give the path of your mm2.properties with --config",
        )
    return (DEFAULT_FILE,)


def load_config(
    paths: str | Path | Sequence[str] = (),
    overrides: Sequence[str] = (),
    *,
    environ: Mapping[str, str] | None = None,
    secrets_dir: str = "",
    running: Running | None = None,
) -> Config:
    """Loads the configuration and resolves it by MM2's rules.

    ``paths`` is a path, or what ``find_config`` takes: an mm2.properties file, a Strimzi resource, or the connectors of
    a flow. ``overrides`` are ``KEY=VALUE`` texts that count as if written last in an mm2.properties file.
    ``secrets_dir`` holds what a Strimzi resource only names; ``running`` asks a Connect cluster for its connectors.
    Only the files themselves are read: certificates and providers' files are, and connection settings are checked,
    when a client is asked for. Raises ConfigNotFound and ConfigError.
    """
    return resolve_loaded(read(paths, overrides, environ=environ, secrets_dir=secrets_dir, running=running))


def read(
    paths: str | Path | Sequence[str] = (),
    overrides: Sequence[str] = (),
    *,
    environ: Mapping[str, str] | None = None,
    secrets_dir: str = "",
    running: Running | None = None,
) -> Loaded:
    """Reads the configuration without resolving it; as ``load_config``."""
    given = (str(paths),) if isinstance(paths, (str, Path)) else paths
    found = find_config(given, environ)
    typed = _typed(overrides)
    documents = tuple(_read(path, typed, running) for path in found)
    raw: dict[str, Setting] = {}
    for path, document in zip(found, documents, strict=True):
        if not isinstance(document, PropertiesDocument):
            continue
        if len(found) > 1:
            raise ConfigError(
                f"{len(found)} configurations were given and {path} is an mm2.properties file",
                hint="such a file is given alone; --set KEY=VALUE adds to it",
            )
        for key, entry in document.effective().items():
            raw[key] = make_setting(key, entry.value, Origin("file", key, document.path, entry.line))
    raw |= typed
    own = raw.get("failover.secrets.dir")
    return Loaded(found, documents, raw, secrets_dir or ("" if own is None else own.trimmed))


def resolve_loaded(loaded: Loaded) -> Config:
    """Makes the configuration of what was read; raises ConfigError."""
    document = loaded.properties
    if document is not None:
        return resolve(document, loaded.raw, loaded.secrets_dir)
    from failover.config.connectors import resolve_connectors
    from failover.config.strimzi import Resource

    resources = [one for one in loaded.documents if isinstance(one, Resource)]
    connectors = [connector for one in loaded.documents if isinstance(one, list) for connector in one]
    if resources and (connectors or len(resources) > 1):
        raise ConfigError("a Strimzi resource is given alone", hint="it names all connectors; take the others out")
    where = loaded.shown
    if not resources:
        return resolve_connectors(connectors, where, loaded.raw, secrets_dir=loaded.secrets_dir)
    (resource,) = resources
    raw = dict(loaded.raw)
    if resource.version is not None:
        raw.setdefault("failover.mm2.version", resource.version)
    config = resolve_connectors(
        resource.connectors, where, raw, worker=resource.worker, secrets_dir=loaded.secrets_dir, strimzi=True
    )
    return msgspec.structs.replace(config, notes=(*resource.notes, *config.notes))


def notes_of(loaded: Loaded) -> tuple[Note, ...]:
    """Gives the notes about an mm2.properties file that can be told although the file cannot be resolved."""
    document = loaded.properties
    if document is None or not aliases_in(loaded.raw):
        return () if document is None else document.notes
    return file_notes(document, loaded.raw, {})


def _typed(overrides: Sequence[str]) -> dict[str, Setting]:
    raw = {}
    for override in overrides:
        key, equals, value = override.partition("=")
        key = key.strip()
        if not key or not equals:
            # The text may be a secret without its key, so it is not shown.
            raise UsageError("--set wants KEY=VALUE", hint="for example --set failover.state.dir=/var/lib/failover")
        raw[key] = make_setting(key, value, Origin("set", key))
    return raw


def _read(path: str, typed: Mapping[str, Setting], running: Running | None) -> Document:
    # Looked at first, so that the usual file costs neither json nor yaml.
    if path.lower().endswith(".properties"):
        from failover.config.properties import read_properties

        return read_properties(path)
    from failover.config.documents import read_document

    return read_document(path, typed, running)


def select_flow(
    config: Config, source: str | None = None, target: str | None = None, *, allow_reverse: bool = False
) -> SelectedFlow:
    """Gives the one enabled flow that fits ``source`` and ``target``; either may be left out if only one flow fits.

    With ``allow_reverse`` B->A also fits where only A->B is enabled; ``reversed`` then says so. Raises UnknownAlias
    with near names, FlowAmbiguous naming the enabled flows.
    """
    for alias in (source, target):
        if alias is not None and alias not in config.clusters:
            raise _unknown_alias(config, alias)
    if source is not None and source == target:
        raise FlowAmbiguous(f"source and target are both '{source}'", hint="name two different clusters")
    fitting = [flow for flow in config.enabled_flows if _fits(flow, source, target)]
    if len(fitting) == 1:
        return SelectedFlow(fitting[0], fitting[0].source.alias, fitting[0].target.alias)
    reverse = [flow for flow in config.enabled_flows if _fits(flow, target, source)]
    if not fitting and len(reverse) == 1:
        flow = reverse[0]
        if allow_reverse:
            return SelectedFlow(flow, flow.target.alias, flow.source.alias, reversed=True)
        raise FlowAmbiguous(
            f"{flow.target.alias}->{flow.source.alias} is not enabled, only {flow.name} is",
            hint=f"use --source {flow.source.alias} --target {flow.target.alias}",
        )
    names = ", ".join(flow.name for flow in (fitting or reverse or config.enabled_flows))
    if fitting or reverse:
        raise FlowAmbiguous(f"several flows fit: {names}", hint="choose one with --source and --target")
    if names:
        wanted = f"{source or '*'}->{target or '*'}"
        raise FlowAmbiguous(f"no enabled flow fits {wanted}; enabled: {names}", hint="choose one of these")
    example = "->".join(list(config.clusters)[:2])
    raise FlowAmbiguous(f"{config.path}: no flow is enabled", hint=f"set {example}.enabled=true")


def _fits(flow: FlowConfig, source: str | None, target: str | None) -> bool:
    return source in (None, flow.source.alias) and target in (None, flow.target.alias)


def _unknown_alias(config: Config, alias: str) -> UnknownAlias:
    import difflib

    near = difflib.get_close_matches(alias, config.clusters, n=3)
    known = f"clusters: {', '.join(config.clusters)}"
    hint = f"did you mean {' or '.join(near)}? ({known})" if near else known
    return UnknownAlias(f"{config.path} has no cluster '{alias}'", hint=hint)
