"""Reads one ``--config`` of any form: an mm2.properties file, connectors in JSON or YAML, a Strimzi resource."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from failover.config.connect_json import Connector, read_connectors
from failover.config.properties import PropertiesDocument, parse_properties, read_file
from failover.config.settings import Setting
from failover.config.strimzi import Resource, find_resources, read_resource
from failover.errors import ConfigError

Document: TypeAlias = "PropertiesDocument | list[Connector] | Resource"
Running: TypeAlias = Callable[[str, Mapping[str, Setting]], Any]
"""Asks a Connect cluster at an address, with the ``failover.`` settings of ``--set``, for what
``GET /connectors?expand=info`` answers."""


def is_address(path: str) -> bool:
    """Tells whether a ``--config`` is the address of a Connect cluster."""
    return path.startswith(("connect+", "http://", "https://"))


def address_shown(path: str) -> str:
    """Gives an address without what may be a password in it."""
    parts = urlsplit(path)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def read_document(path: str, overrides: Mapping[str, Setting], running: Running | None) -> Document:
    """Reads one configuration; raises ConfigNotFound, ConfigError, and what asking a Connect cluster raises."""
    if is_address(path):
        if not path.startswith("connect+"):
            raise ConfigError(f"{address_shown(path)}: is no file", hint=f"write connect+{address_shown(path)}")
        if running is None:
            raise ConfigError(f"{address_shown(path)}: cannot be asked here", hint="give a file")
        return read_connectors(running(path, overrides), address_shown(path))
    data = read_file(path)
    if path.lower().endswith((".yaml", ".yml")):
        return _of_yaml(_decoded(data, path), path)
    if path.lower().endswith(".json") or data.lstrip()[:1] in (b"{", b"["):
        return _of_json(_decoded(data, path), path)
    if b"\napiVersion:" in b"\n" + data and b"\nkind:" in data.replace(b"\r", b"\n"):
        return _of_yaml(_decoded(data, path), path)
    return parse_properties(data, path)


def _of_yaml(text: str, path: str) -> Document:
    from failover.config.yaml_core import load_yaml

    return _of_documents([document for document in load_yaml(text, path) if document is not None], path)


def _of_json(text: str, path: str) -> Document:
    try:
        # Numbers stay as they are written: 1.10 is a text to Kafka.
        document = json.loads(text, parse_float=str, object_pairs_hook=lambda pairs: _object(pairs, path))
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{path}:{error.lineno}: is no JSON: {error.msg}", hint="is a comma or a quotation mark missing?"
        ) from None
    except RecursionError:
        raise ConfigError(f"{path}: is nested too deeply", hint="a connector's configuration is flat") from None
    return _of_documents([document], path)


def _of_documents(documents: Sequence[Any], path: str) -> Document:
    resources = list(find_resources(documents))
    if len(resources) > 1:
        names = ", ".join(str(one.get("metadata", {}).get("name", "?")) for one in resources)
        raise ConfigError(f"{path}: there are several KafkaMirrorMaker2 resources: {names}", hint="give one of them")
    if resources:
        return read_resource(resources[0], path)
    if not documents:
        raise ConfigError(f"{path}: is empty", hint="give the configuration of a connector")
    found = documents[0] if len(documents) == 1 else list(documents)
    if all(isinstance(one, dict) and "kind" in one and "apiVersion" in one for one in documents):
        found = _kafka_connectors(documents, path)
    return read_connectors(found, path)


def _kafka_connectors(documents: Sequence[Any], path: str) -> list[dict[str, Any]]:
    """Gives the connectors of Strimzi's ``KafkaConnector`` resources in the shape that Connect's REST API has."""
    flat = [item for one in documents for item in (one["items"] if isinstance(one.get("items"), list) else [one])]
    found = []
    for one in flat:
        spec = one.get("spec")
        if one.get("kind") == "KafkaConnector" and isinstance(spec, dict):
            config = spec.get("config") or {}
            config["connector.class"] = spec.get("class")
            if spec.get("tasksMax") is not None:
                config.setdefault("tasks.max", spec["tasksMax"])
            found.append({"name": one.get("metadata", {}).get("name"), "config": config})
    if not found:
        kinds = ", ".join(sorted({str(one.get("kind")) for one in flat}))
        raise ConfigError(
            f"{path}: holds no KafkaMirrorMaker2 and no KafkaConnector, only {kinds}",
            hint="give the resource that does",
        )
    return found


def _object(pairs: list[tuple[str, Any]], path: str) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ConfigError(f"{path}: {twice} is written twice in one object", hint="keep the one that is meant")
    return found


def _decoded(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is no UTF-8 text", hint="save it as UTF-8") from None


def stem(path: str) -> str:
    """Gives a connector's name where its file gives none: the file's own."""
    return Path(path).stem
