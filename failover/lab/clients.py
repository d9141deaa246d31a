"""Short-lived Kafka clients for the lab's own work: readiness, users, topics."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from failover.errors import LabError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_LOG = logging.getLogger(__name__)
# librdkafka prints its lines to stderr unless it is given a logger; the lab's clients are there
# to wait for brokers that do not answer yet
SILENT = logging.getLogger("failover.lab.librdkafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def admin_client(bootstrap: str, settings: Mapping[str, Any] | None = None) -> AdminClient:
    """Returns an AdminClient that reconnects quickly and prints nothing."""
    from confluent_kafka.admin import AdminClient

    return AdminClient(client_settings(bootstrap, settings), logger=SILENT)


def client_settings(bootstrap: str, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns librdkafka settings for a cluster of the lab."""
    return {
        "bootstrap.servers": bootstrap,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "socket.connection.setup.timeout.ms": 5000,
        "broker.address.family": "v4",
        **(settings or {}),
    }


def wait_broker(admin: AdminClient, node: int, *, seconds: float, alive: Callable[[], None]) -> None:
    """Waits until the broker that ``admin`` is bootstrapped with lists itself as a member of its cluster.

    Another broker lists a dead one until its session is over, so each is asked itself. ``alive``
    raises when waiting has become pointless. Raises LabError after ``seconds``.
    """
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + seconds
    while True:
        alive()
        try:
            if node in admin.list_topics(timeout=0.5).brokers:
                return
        except KafkaException as failure:
            _LOG.debug("broker %d does not answer yet: %s", node, failure)
        if time.monotonic() > deadline:
            raise LabError(
                f"broker {node} does not answer after {seconds:.0f} s", hint="its broker.log in the lab's folder"
            )
        time.sleep(0.05)


def wait_coordinator(bootstrap: str, *, seconds: float) -> None:
    """Waits until a group coordinator answers; Kafka creates ``__consumer_offsets`` at the first question.

    Asked by raw requests: an answer that comes after librdkafka's own time limit aborts the whole
    process (an assertion in 2.16.1), and a coordinator that is just being made answers late.
    Raises LabError after ``seconds``.
    """
    from failover.config.clients import ClientSettings
    from failover.kafka.wire.cluster import WireCluster
    from failover.kafka.wire.groups import describe_groups
    from failover.kafka.wire.thread import WireThread

    addresses = [place.rpartition(":") for place in bootstrap.split(",")]
    settings = ClientSettings(tuple((host, int(port)) for host, _, port in addresses))
    deadline = time.monotonic() + seconds

    async def ask() -> str:
        async with WireCluster(settings, alias=bootstrap, silence=seconds) as cluster:
            while True:
                fault = (await describe_groups(cluster, ["lab-ready"]))["lab-ready"].fault
                if fault is None or time.monotonic() > deadline:
                    return "" if fault is None else str(fault)
                await asyncio.sleep(0.05)

    thread = WireThread()
    try:
        failure = thread.run(ask())
    finally:
        thread.close()
    if failure:
        raise LabError(f"no group coordinator answers after {seconds:.0f} s: {failure}")


def add_scram_users(admin: AdminClient, passwords: Mapping[str, str]) -> None:
    """Stores users for SCRAM-SHA-512 and SCRAM-SHA-256."""
    from confluent_kafka.admin import (
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialAlteration,
        UserScramCredentialUpsertion,
    )

    # Kafka takes a user once a request
    for mechanism in (ScramMechanism.SCRAM_SHA_512, ScramMechanism.SCRAM_SHA_256):
        info = ScramCredentialInfo(mechanism, 4096)
        wanted: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, info, password.encode()) for user, password in passwords.items()
        ]
        for future in admin.alter_user_scram_credentials(wanted, request_timeout=10).values():
            future.result(timeout=15)
