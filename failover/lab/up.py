"""Starts a lab."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from failover.errors import LabUsageError
from failover.lab.broker import server_properties, write_logging
from failover.lab.certs import make_certificates
from failover.lab.clients import add_scram_users, admin_client, wait_coordinator
from failover.lab.connect import connect_settings, start_connect, wait_connect
from failover.lab.down import end_lab
from failover.lab.jars import class_path
from failover.lab.java import find_java
from failover.lab.lab import Lab, cluster_user
from failover.lab.ports import free_ports
from failover.lab.state import ADMIN, APP, Broker, Cluster, LabOptions, State, read_state, write_state
from failover.lab.storage import bootstrap_checkpoint, cluster_id, prepare

_PORTS_PER_BROKER = 6


def up(folder: Path, options: LabOptions | None = None, *, say: Callable[[str], None] = lambda _: None) -> Lab:
    """Starts two clusters in ``folder`` and returns when an AdminClient gets answers from every broker.

    ``say`` receives one line per step. A stale lab in the folder is cleared first. Raises
    LabUsageError when a lab already runs there; on any failure what was started is ended again.
    """
    options = options or LabOptions()
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _only_one(folder):
        if (old := read_state(folder)) is not None:
            if not old.stale:
                raise LabUsageError("a lab is up already", hint="failover lab status, or failover lab down")
            say(f"clearing a stale lab of {old.created}")
            end_lab(folder)
        java = find_java()
        say(f"Kafka {options.kafka_version} on Java {java.major}")
        jars = class_path(options.kafka_version)
        checkpoint = bootstrap_checkpoint(java.executable, jars, options.kafka_version)
        clusters = _lay_out(folder, options)
        lab = Lab(
            folder,
            State(
                marker=secrets.token_hex(8),
                created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                phase="starting",
                options=options,
                java=java.executable,
                clusters=clusters,
                passwords={user: secrets.token_urlsafe(12) for user in (ADMIN, APP)},
                control_port=free_ports(1)[0] if options.proxy else 0,
            ),
        )
        write_state(folder, lab.state)
        try:
            _start(lab, checkpoint, say)
        except BaseException:
            end_lab(folder, keep_logs=True)
            raise
        return lab


def _start(lab: Lab, checkpoint: Path, say: Callable[[str], None]) -> None:
    folder, options = lab.folder, lab.state.options
    write_logging(folder, options.kafka_version)
    certificates = make_certificates(folder / "certs", client=ADMIN) if options.listens_sasl else None
    for cluster in lab.state.clusters:
        for broker in cluster.brokers:
            settings = server_properties(
                broker, cluster, options, passwords=lab.state.passwords, certificates=certificates
            )
            prepare(broker, cluster, settings, checkpoint)
            lab.start_broker(broker)
    lab.write_config(lab.config, user=cluster_user(lab.state))
    if options.proxy:
        lab.write_config(lab.proxied_config, listener="proxy")
        lab.start_proxy()
    if options.mm2 and options.security == "plaintext":
        lab.start_mirror()  # it waits for the brokers by itself
    for cluster in lab.state.clusters:
        lab.wait_ready(cluster.alias)
        if options.listens_sasl:
            add_scram_users(admin_client(cluster.bootstrap()), lab.state.passwords)
        wait_coordinator(cluster.bootstrap(), seconds=30)
        say(f"cluster {cluster.alias} answers at {cluster.bootstrap()}")
    if options.mm2 and options.security != "plaintext":
        lab.start_mirror()  # only now do its users exist
    if options.replicator:
        lab.start_replicator()
    if options.connect:
        secured = options.security != "plaintext"
        worker = start_connect(lab, auth=secured, tls=secured, user=cluster_user(lab.state))
        lab.write_config(lab.config, user=cluster_user(lab.state), added=connect_settings(lab))
        wait_connect(lab)
        say(f"Kafka Connect answers at {worker.url}")
    lab.state = msgspec.structs.replace(lab.state, phase="ready")
    write_state(folder, lab.state)


def _lay_out(folder: Path, options: LabOptions) -> tuple[Cluster, ...]:
    ports = iter(free_ports(sum(options.brokers) * _PORTS_PER_BROKER))

    def broker(alias: str, node: int) -> Broker:
        plaintext, controller, sasl, tls, proxied, proxy = (next(ports) for _ in range(_PORTS_PER_BROKER))
        return Broker(
            alias=alias,
            node=node,
            folder=folder / "brokers" / f"{alias}-{node}",
            plaintext=plaintext,
            controller=controller,
            sasl=sasl if options.listens_sasl else 0,
            tls=tls if options.listens_sasl else 0,
            proxied=proxied if options.proxy else 0,
            proxy=proxy if options.proxy else 0,
        )

    return tuple(
        Cluster(alias, cluster_id(), tuple(broker(alias, node) for node in range(1, count + 1)))
        for alias, count in zip(options.aliases, options.brokers, strict=True)
    )


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LabUsageError("another lab up or down works in this folder", hint="wait for it") from None
        yield
