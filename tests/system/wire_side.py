"""A wire client on one side of a pair."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from failover.config.clients import ClientSettings, SaslSettings, TlsSettings
from failover.config.secret import Secret
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.thread import WireThread
from tests.system.pair import Pair


def address(bootstrap: str) -> tuple[tuple[str, int], ...]:
    return tuple((host, int(port)) for host, port in (one.rsplit(":", 1) for one in bootstrap.split(",")))


def secured(pair: Pair, alias: str, *, user: str, mechanism: str, password: str | None = None) -> ClientSettings:
    """Gives the settings of a side's SASL_SSL listener; ``password`` replaces the right one."""
    settings = pair.lab.client_settings(alias, user=user, mechanism=mechanism)
    return ClientSettings(
        address(settings["bootstrap.servers"]),
        "SASL_SSL",
        SaslSettings(mechanism, user, Secret(password or settings["sasl.password"])),
        TlsSettings(ca_pem=Path(settings["ssl.ca.location"]).read_text()),
    )


@contextmanager
def wire(settings: ClientSettings, *, alias: str, silence: float = 10) -> Iterator[tuple[WireThread, WireCluster]]:
    with WireThread() as thread:
        cluster = WireCluster(settings, alias=alias, silence=silence)
        try:
            thread.run(cluster.open())
            yield thread, cluster
        finally:
            thread.run(cluster.close())


@contextmanager
def plain(pair: Pair, alias: str, *, silence: float = 10) -> Iterator[tuple[WireThread, WireCluster]]:
    with wire(ClientSettings(address(pair.bootstrap(alias))), alias=alias, silence=silence) as both:
        yield both
