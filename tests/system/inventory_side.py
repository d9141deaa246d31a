"""The look at a pair's two clusters, and the real clusters behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from failover.config.clients import ClientSettings
from failover.config.load import load_config, select_flow
from failover.inventory.flow import flow_of
from failover.inventory.selection import Selection
from failover.inventory.snapshot import take_snapshot
from failover.kafka.admin import KafkaCluster
from failover.model.snapshot import Snapshot
from tests.system.pair import Pair
from tests.system.wire_side import address


@contextmanager
def cluster(
    pair: Pair, alias: str, settings: ClientSettings | None = None, *, timeout: float = 10
) -> Iterator[KafkaCluster]:
    found = KafkaCluster(alias, settings or ClientSettings(address(pair.bootstrap(alias))), timeout=timeout)
    try:
        yield found
    finally:
        found.close()


def look(
    pair: Pair,
    *groups: str,
    config: Path | None = None,
    timeouts: Mapping[str, float] | None = None,
    aliases: tuple[str, str] | None = None,
    create: bool = False,
    **options: Any,
) -> Snapshot:
    """Takes a snapshot of the pair's flow for these groups, of all without any."""
    loaded = load_config([str(config or pair.lab.config)])
    selected = select_flow(loaded, *(aliases or (pair.source, pair.target)))
    opened: list[KafkaCluster] = []

    def open_cluster(alias: str) -> KafkaCluster:
        settings = selected.source_client() if alias == selected.source else selected.target_client()
        opened.append(KafkaCluster(alias, settings, timeout=(timeouts or {}).get(alias, 10)))
        return opened[-1]

    try:
        return take_snapshot(
            flow_of(loaded, selected),
            open_cluster,
            Selection(groups=groups, create=create),
            now=lambda: datetime.now(UTC),
            **options,
        )
    finally:
        for each in opened:
            each.close()
