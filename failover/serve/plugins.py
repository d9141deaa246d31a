"""The three connector plug-ins: their settings, and whether values given for them can be used. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from failover import __version__
from failover.config.mm2_keys import (
    ASSUMED_VERSION,
    CONNECTOR_CLASSES,
    CONNECTORS,
    connector_defaults,
    is_connector_key,
)
from failover.config.mm2_together import refused_together
from failover.config.secret import MASK, is_secret_key
from failover.config.settings import DEFAULT, Settings, make_setting
from failover.errors import ConfigError
from failover.serve.shapes import TYPE, Json

_REQUIRED = ("name", "connector.class", "source.cluster.alias")
_TARGET = {"target.cluster.alias": "target"}
_CHOICES = {"offset-syncs.topic.location": ("source", "target")}
_LISTS = ("topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude")


def plugins() -> list[Json]:
    """Gives what ``GET /connector-plugins`` answers."""
    return [{"class": CONNECTOR_CLASSES[kind], "type": TYPE, "version": __version__} for kind in CONNECTORS]


def definitions(kind: str) -> list[Json]:
    """Gives what ``GET /connector-plugins/{p}/config`` answers."""
    required = [_definition(key, None) for key in _REQUIRED]
    defaults = {**_TARGET, **connector_defaults(kind, ASSUMED_VERSION)}
    return required + [_definition(key, default) for key, default in defaults.items() if is_connector_key(key)]


def validate(kind: str, given: Mapping[str, str | None]) -> Json:
    """Gives what ``PUT /connector-plugins/{p}/config/validate`` answers: each setting with what is wrong with it."""
    configs = []
    together = refused_together(
        kind, {key: value for key, value in given.items() if value is not None}, ASSUMED_VERSION
    )
    for definition in definitions(kind):
        key = str(definition["name"])
        value = given.get(key) if key in given else definition["default_value"]
        errors = _errors(definition, None if value is None else str(value))
        errors += [together[key]] if key in together else []
        shown = MASK if value is not None and is_secret_key(key) else value
        configs.append(
            {
                "definition": definition,
                "value": {
                    "name": key,
                    "value": shown,
                    "recommended_values": [],
                    "errors": errors,
                    "visible": True,
                },
            }
        )
    return {
        "name": CONNECTOR_CLASSES[kind],
        "error_count": sum(1 for config in configs if config["value"]["errors"]),
        "groups": ["Common"],
        "configs": configs,
    }


def _definition(key: str, default: str | None) -> Json:
    return {
        "name": key,
        "type": _type(key, default),
        "required": default is None,
        "default_value": default,
        "importance": "HIGH" if default is None else "MEDIUM",
        "documentation": "",
        "group": "Common" if default is None else None,
        "width": "NONE",
        "display_name": key,
        "dependents": [],
        "order": -1,
    }


def _type(key: str, default: str | None) -> str:
    if key in _LISTS:
        return "LIST"
    if key.endswith(".class") and key != "connector.class":
        return "CLASS"
    if default in ("true", "false"):
        return "BOOLEAN"
    if default is not None and default.lstrip("-").isdigit():
        if key.endswith(".topic.replication.factor"):
            return "SHORT"
        return "LONG" if key.endswith((".ms", ".seconds", "lag.max")) else "INT"
    return "STRING"


def _errors(definition: Mapping[str, Any], value: str | None) -> list[str]:
    key = str(definition["name"])
    if value is None:
        return [f'Missing required configuration "{key}" which has no default value.'] if definition["required"] else []
    settings = Settings({key: make_setting(key, value, DEFAULT)})
    try:
        if definition["type"] == "BOOLEAN":
            settings.boolean(key)
        elif definition["type"] in ("INT", "LONG", "SHORT"):
            settings.integer(key)
        elif key in _CHOICES:
            settings.choice(key, _CHOICES[key])
    except ConfigError as error:
        return [error.message]
    return []
