"""A distributed Kafka Connect worker with MirrorMaker 2's connectors, as operators run it beside their clusters."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

from failover.errors import LabError
from failover.lab import process as processes
from failover.lab.files import write_private
from failover.lab.mirror import Endpoint, client_properties
from failover.lab.ports import LOOPBACK, free_ports
from failover.lab.state import ADMIN, ConnectWorker

if TYPE_CHECKING:
    from failover.lab.lab import Lab

CONNECT = "connect"
_EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension"
# the defaults of Kafka's own connect-distributed.properties: a mirror that relied on them would copy nothing readable
_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
_ROLES = ("", "producer.", "consumer.", "admin.")


def start_connect(
    lab: Lab, *, auth: bool, tls: bool, alias: str | None = None, user: str | None = None, flush_seconds: float = 1
) -> ConnectWorker:
    """Starts the worker on a cluster (default: the target) without waiting for it; gives how it is reached.

    ``auth``: HTTP basic authentication as the lab's admin. ``tls``: https by the lab's authority, which the lab must
    have (a SASL_SSL listener). ``user``: as whom the worker logs in to the brokers.
    """
    folder = lab.folder / CONNECT
    folder.mkdir(exist_ok=True, mode=0o700)
    [port] = free_ports(1)
    password = lab.state.passwords[ADMIN]
    settings = worker_properties(
        lab.endpoint(alias or lab.state.options.aliases[1], user=user), port=port, tls=tls, flush_seconds=flush_seconds
    )
    flags: list[str] = []
    if tls:
        settings |= {
            "listeners.https.ssl.keystore.type": "PKCS12",
            "listeners.https.ssl.keystore.location": str(_keystore(lab.folder / "certs" / "server.pem", password)),
            "listeners.https.ssl.keystore.password": password,
            "listeners.https.ssl.key.password": password,
        }
    if auth:
        settings["rest.extension.classes"] = f"{_EXTENSION}.BasicAuthSecurityRestExtension"
        flags.append(f"-Djava.security.auth.login.config={_login(folder, password)}")
    file = folder / "worker.properties"
    write_private(file, "".join(f"{key}={value}\n" for key, value in settings.items()).encode())
    worker = ConnectWorker(
        url=f"{'https' if tls else 'http'}://{LOOPBACK}:{port}",
        user=ADMIN if auth else "",
        ca=str(lab.folder / "certs" / "ca.pem") if tls else "",
    )
    lab.record_connect(worker)
    main = "org.apache.kafka.connect.cli.ConnectDistributed"
    lab.start(CONNECT, [main, str(file)], log=lab.folder / f"{CONNECT}.log", flags=flags)
    return worker


def wait_connect(lab: Lab, *, seconds: float = 90) -> str:
    """Waits until the worker answers and gives its version; raises LabError with the end of its log when it ended."""
    from failover.lab.lab import wait_until

    def answers() -> str:
        if lab.running(CONNECT) is None:
            log = lab.folder / f"{CONNECT}.log"
            raise LabError(f"the Connect worker ended: {processes.tail(log)}", hint=f"all of it: {log}")
        return _version(lab)

    version: str = wait_until(answers, seconds=seconds, what="the Connect worker answers", every=0.2)
    return version


def connect_settings(lab: Lab) -> dict[str, str]:
    """Gives the ``failover.connect.`` settings by which this tool finds the worker; none without one."""
    worker = lab.state.connect
    if worker is None:
        return {}
    settings = {"failover.connect.url": worker.url}
    if worker.user:
        settings |= {
            "failover.connect.user": worker.user,
            "failover.connect.password": lab.state.passwords[worker.user],
        }
    if worker.ca:
        settings["failover.connect.ca"] = worker.ca
    return settings


def worker_properties(endpoint: Endpoint, *, port: int, tls: bool, flush_seconds: float) -> dict[str, str]:
    """Gives a worker's settings on one cluster, with three internal topics of its own."""
    scheme = "https" if tls else "http"
    own = {
        "group.id": "connect-lab",
        "listeners": f"{scheme}://{LOOPBACK}:{port}",
        "rest.advertised.host.name": LOOPBACK,
        "rest.advertised.port": str(port),
        "rest.advertised.listener": scheme,
        "key.converter": _CONVERTER,
        "value.converter": _CONVERTER,
        "plugin.discovery": "service_load",
        "offset.flush.interval.ms": str(int(flush_seconds * 1000)),
        "scheduled.rebalance.max.delay.ms": "0",
        "offset.storage.partitions": "3",
        "status.storage.partitions": "1",
    }
    for store in ("config", "offset", "status"):
        own |= {f"{store}.storage.topic": f"connect-lab-{store}s", f"{store}.storage.replication.factor": "1"}
    brokers = client_properties(endpoint)
    return own | {f"{role}{key}": value for role in _ROLES for key, value in brokers.items()}


def remove_connectors(lab: Lab) -> None:
    """Removes every connector the worker has; raises OSError when it does not answer."""
    for name in _ask(lab, "GET"):
        _ask(lab, "DELETE", f"/{urllib.parse.quote(name, safe='')}")


def _version(lab: Lab) -> str:
    try:
        # it serves / before it can work; the list of connectors needs what it reads at its start
        _ask(lab, "GET")
    except (OSError, ValueError, urllib.error.URLError):
        return ""
    return lab.state.options.kafka_version


def _ask(lab: Lab, method: str, path: str = "") -> list[str]:
    worker = lab.state.connect
    assert worker is not None
    request = urllib.request.Request(f"{worker.url}/connectors{path}", method=method)  # noqa: S310 - the lab's own worker on loopback
    if worker.user:
        pair = f"{worker.user}:{lab.state.passwords[worker.user]}".encode()
        request.add_header("Authorization", "Basic " + b64encode(pair).decode())
    context = ssl.create_default_context(cafile=worker.ca) if worker.ca else None
    with urllib.request.urlopen(request, timeout=2 if method == "GET" else 30, context=context) as answer:  # noqa: S310
        content = answer.read()
    names: list[str] = json.loads(content) if content else []
    return names


def _keystore(pem: Path, password: str) -> Path:
    """Writes the server's key and chain as PKCS#12: Connect's web server reads no PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

    content = pem.read_bytes()
    own, *chain = x509.load_pem_x509_certificates(content)
    key = load_pem_private_key(content, None)
    assert isinstance(key, EllipticCurvePrivateKey)
    store = pem.with_suffix(".p12")
    lock = BestAvailableEncryption(password.encode())
    write_private(store, pkcs12.serialize_key_and_certificates(b"server", key, own, chain, lock))
    return store


def _login(folder: Path, password: str) -> Path:
    users, jaas = folder / "users.properties", folder / "jaas.conf"
    write_private(users, f"{ADMIN}={password}\n".encode())
    module = f'{_EXTENSION}.PropertyFileLoginModule required file="{users}";'
    write_private(jaas, f"KafkaConnect {{\n  {module}\n}};\n".encode())
    return jaas
