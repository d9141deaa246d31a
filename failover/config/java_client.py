"""Turns Java client settings into connection settings, by the table of ``failover.config.client_table``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, cast, get_args

from failover.config.client_table import row_of
from failover.config.clients import CLIENT_ID, ClientSettings, SecurityProtocol
from failover.config.java_reader import ClientReader
from failover.config.mm2_keys import is_client_key
from failover.config.settings import Note, Setting
from failover.errors import ConfigError

# Kafka: ClientUtils and Utils.HOST_PORT_PATTERN; a leading PROTOCOL:// is allowed and means nothing.
_HOST_PORT: Final = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")


def is_own_client_key(key: str) -> bool:
    """Tells whether ``failover.cluster.<alias>.`` may stand before a key: MM2's connection settings and client.id."""
    return key == "client.id" or is_client_key(key)


def read_client(
    properties: Mapping[str, Setting],
    *,
    alias: str,
    client_id: str | None = None,
) -> ClientSettings:
    """Gives the connection settings that Java client properties mean, for the cluster ``alias``.

    ``client_id``: this tool's own, since the one among the properties is MM2's. Reads trust and key stores, contacts
    nothing. Raises ConfigError naming the setting and what to write instead, before any connection.
    """
    reader = ClientReader(properties, alias)
    protocol = _protocol(reader)
    bootstrap = _bootstrap(reader)
    sasl = tls = None
    if protocol.startswith("SASL_"):
        from failover.config.java_sasl import read_sasl

        sasl = read_sasl(reader)
    if protocol.endswith("SSL"):
        from failover.config.java_tls import read_tls

        tls = read_tls(reader)
    return ClientSettings(bootstrap, protocol, sasl, tls, client_id or CLIENT_ID)


def client_notes(properties: Mapping[str, Setting], alias: str) -> Iterable[Note]:
    """Gives a note for each TLS or SASL setting that MM2 uses and this tool does not."""
    for key, setting in properties.items():
        row = row_of(key)
        if not is_client_key(key) or (row is not None and row.treatment != "left"):
            continue
        message = f"{setting.origin.key or key} is not used to connect to {alias}"
        yield Note("not-used", key, f"{message}: {row.reason}" if row else message, setting.origin)


def _protocol(reader: ClientReader) -> SecurityProtocol:
    protocol = (reader.value("security.protocol") or "PLAINTEXT").upper()
    known = get_args(SecurityProtocol)
    if protocol not in known:
        raise ConfigError(
            f"{reader.where('security.protocol')}: '{protocol}' is not a security protocol",
            hint=f"write one of {', '.join(known)}, with nothing after it",
        )
    return cast(SecurityProtocol, protocol)


def _bootstrap(reader: ClientReader) -> tuple[tuple[str, int], ...]:
    servers = [server.strip() for server in reader.value("bootstrap.servers").split(",") if server.strip()]
    if not servers:
        raise ConfigError(
            f"cluster '{reader.alias}' has no bootstrap.servers",
            hint=f"set {reader.alias}.bootstrap.servers=host:port",
        )
    pairs = []
    for server in servers:
        match = _HOST_PORT.fullmatch(server)
        if match is None or not match.group(1) or not 0 < int(match.group(2)) < 65536:
            raise ConfigError(
                f"{reader.where('bootstrap.servers')}: '{server}' is not host:port",
                hint="write host:port, several separated by commas, with nothing after them",
            )
        pairs.append((match.group(1), int(match.group(2))))
    return tuple(pairs)
