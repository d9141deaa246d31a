"""The connectors of a running Connect cluster, as configuration."""

from __future__ import annotations

from collections.abc import Mapping

from failover.config.mm2 import with_prefix
from failover.config.settings import Origin, Setting, Settings, make_setting


def running_connectors(address: str, typed: Mapping[str, Setting], *, timeout: float = 30.0) -> list[dict[str, object]]:
    """Asks a Connect cluster (``connect+https://HOST:PORT``) for the configurations of its connectors.

    ``typed``: what ``--set`` said, ``failover.connect.`` settings among it. ``timeout``: the longest accepted silence,
    in seconds. Raises ConfigError, UsageError and what ConnectClient raises.
    """
    from failover.connect.access import ConnectAccess, find_access
    from failover.connect.client import ConnectClient

    # As the file's own address, so that the user and authorities typed with --set go with it.
    url = make_setting("connect.url", address, Origin("set", "--config"))
    access = find_access(Settings({**with_prefix(typed, "failover."), "connect.url": url}), timeout=timeout)
    assert isinstance(access, ConnectAccess)  # an address with connect+ before it is no vendor's name
    with ConnectClient(access) as client:
        found = client.connectors()
    return [{"name": name, "config": one.info.config} for name, one in found.items() if one.info is not None]
