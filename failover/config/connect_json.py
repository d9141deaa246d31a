"""MirrorMaker 2's three connectors as Kafka Connect has them: a name and a flat map of texts, as JSON.

One direction makes the configurations that Connect needs of a flow that the dedicated driver would run; the other reads
configurations as Connect, its users and the vendors write them down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from failover.config.flow import FlowConfig
from failover.config.mm2 import CONVERTERS, with_prefix
from failover.config.mm2_keys import (
    CHECKPOINT,
    CONNECTOR_CLASSES,
    CONNECTORS,
    HEARTBEAT,
    ROLES,
    SOURCE,
    connector_defaults,
    is_client_key,
)
from failover.config.settings import Origin, Setting, Settings, make_setting
from failover.errors import ConfigError

BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
"""MM2 hands bytes to Connect; with another converter, also of headers (Connect's default), copies differ."""
_WRAPPERS: Final = ("config", "configs", "connectorConfiguration")
"""Where a connector's settings stand: in Connect, Google's Managed Kafka, Amazon's MSK Connect."""

_SIDES: Final = ("source", "target")
_NOT_SENT: Final = frozenset({"name", "enabled", "config.providers"})


class Connector(msgspec.Struct, frozen=True):
    """Is one connector: its name, which Connect's stored offsets go by, and its configuration without the name."""

    name: str
    settings: Settings

    @property
    def kind(self) -> str | None:
        """Gives ``source``, ``checkpoint`` or ``heartbeat``; None for a connector that is not MM2's."""
        return kind_of(self.settings["connector.class"].trimmed) if "connector.class" in self.settings else None

    def plain(self) -> dict[str, str]:
        """Gives what Connect's REST API takes, the name included and secrets revealed: to be sent, never shown."""
        return {"name": self.name} | {key: self.settings[key].text for key in sorted(self.settings)}

    def shown(self) -> dict[str, str]:
        """Gives the same with secrets masked."""
        return {"name": self.name} | {key: self.settings[key].shown for key in sorted(self.settings)}


def kind_of(class_name: str) -> str | None:
    """Tells which of MM2's connectors a class is; Connect takes the full name, the bare one, and one without suffix."""
    bare = class_name.strip().rpartition(".")[2]
    for kind, full in CONNECTOR_CLASSES.items():
        known = full.rpartition(".")[2]
        if bare in (known, known.removesuffix("Connector")):
            return kind
    return None


def flow_connectors(flow: FlowConfig, names: Mapping[str, str] | None = None) -> list[Connector]:
    """Gives the connectors that do on a Connect cluster what the dedicated driver does for a flow.

    ``names``: a name for each of ``source``, ``checkpoint``, ``heartbeat``; where one is missing, ``A-B-source`` and so
    on. The checkpoint and heartbeat connectors are left out where their ``emit.….enabled`` is off: MM2 3.9 and later
    refuses the former. Providers' references (``${file:…}``) stay as they are: Connect resolves them.
    """
    wanted = {SOURCE: True, CHECKPOINT: _on(flow, CHECKPOINT), HEARTBEAT: _on(flow, HEARTBEAT)}
    return [
        Connector((names or {}).get(kind) or default_name(flow.source.alias, flow.target.alias, kind), _of(flow, kind))
        for kind in CONNECTORS
        if wanted[kind]
    ]


def default_name(source: str, target: str, kind: str) -> str:
    """Gives the name under which a flow's connector is deployed: not Strimzi's form, which an operator would own."""
    return f"{source}-{target}-{kind}"


def _on(flow: FlowConfig, kind: str) -> bool:
    return flow.connectors[kind].boolean(f"emit.{kind}s.enabled")


def _of(flow: FlowConfig, kind: str) -> Settings:
    given = flow.connectors[kind]
    others = {key for other in CONNECTORS for key in connector_defaults(other, (4, 1))}
    foreign = others - set(connector_defaults(kind, (4, 1)))
    chosen: dict[str, Setting] = {}
    for key in given:
        if not given.is_given(key) or key in _NOT_SENT or key in foreign or key.startswith("config.providers."):
            continue
        if not _says_nothing(given, key):
            chosen[key] = given[key]
    for converter in CONVERTERS:
        # The driver's worker converts nothing by itself; a Connect cluster has converters of its own.
        chosen[converter] = flow.worker[converter].named(converter)
    if kind == SOURCE:
        # The driver hands `B.producer.k` to the worker, whose producer copies the records.
        for key, setting in with_prefix(flow.worker, "producer.").items():
            if not is_client_key(key):
                name = f"producer.override.{key}"
                chosen.setdefault(name, setting.named(name))
    return Settings(chosen)


def _says_nothing(given: Settings, key: str) -> bool:
    """Tells whether MM2's clients would read the same without this one of the driver's many copies of a setting."""
    side, _, rest = key.partition(".")
    if side not in _SIDES:
        return False
    if rest.startswith("cluster."):
        name = rest.removeprefix("cluster.")
        return not is_client_key(name) and name != "alias"
    role, _, name = rest.partition(".")
    if role not in ROLES:
        return False
    cluster = f"{side}.cluster.{name}"
    return f"{role}.{name}" not in given and cluster in given and given[cluster].text == given[key].text


def read_connectors(document: Any, where: str) -> list[Connector]:
    """Reads connectors from decoded JSON or YAML, in any of the shapes people keep them in.

    The body of ``POST /connectors`` (``name``, ``config``), the flat map of ``PUT …/config`` and of vendors' files
    (``gcloud … --config-file``), what Google's and Amazon's commands list, a list of any of them, a map of names to
    them, or what ``GET /connectors?expand=info`` answers. ``where`` names the document in errors. Raises ConfigError.
    """
    found = list(_read(document, where))
    if not found:
        raise ConfigError(f"{where}: no connector is in it", hint="it wants connector.class and the connector's keys")
    return found


def _read(document: Any, where: str) -> Iterator[Connector]:
    match document:
        case list():
            for item in document:
                yield from _read(item, where)
        case {"connectors": list(items)}:
            yield from _read(items, where)
        case dict() if wrapper := next((key for key in _WRAPPERS if isinstance(document.get(key), dict)), None):
            config = document[wrapper]
            name = document.get("name") or document.get("connectorName") or config.get("name") or ""
            # Google's names are paths: projects/…/connectors/NAME.
            yield _connector(config, str(name).rpartition("/")[2], where)
        case {"connector.class": _}:
            yield _connector(document, str(document.get("name") or ""), where)
        case dict() if document and all(isinstance(value, dict) for value in document.values()):
            for key, value in document.items():
                inner = value.get("info", value)
                named = any(isinstance(inner.get(wrapper), dict) for wrapper in _WRAPPERS)
                yield from _read(inner if named else {"name": str(key), "config": inner}, where)
        case _:
            raise ConfigError(
                f"{where}: this is no connector's configuration",
                hint='write {"name": …, "config": {"connector.class": …}}, or the flat map of one connector',
            )


def _connector(config: Mapping[Any, Any], name: str, where: str) -> Connector:
    settings: dict[str, Setting] = {}
    lines = getattr(config, "lines", {})
    for key, value in config.items():
        if not isinstance(key, str) or isinstance(value, (dict, list)):
            raise ConfigError(f"{where}: {key}: a connector's settings are flat texts", hint='write "topics": "a,b"')
        if key == "name" or value is None:
            continue
        # YAML and JSON have numbers and booleans where Kafka has texts.
        text = str(value).lower() if isinstance(value, bool) else str(value)
        settings[key] = make_setting(key, text, Origin("file", key, where, lines.get(key)))
    if "connector.class" not in settings:
        raise ConfigError(
            f"{where}: {name or 'a connector'} has no connector.class",
            hint="write connector.class: org.apache.kafka.connect.mirror.MirrorSourceConnector, for example",
        )
    return Connector(name, Settings(settings))
