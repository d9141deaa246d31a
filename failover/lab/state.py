"""What the lab knows about itself, kept in one file of its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from failover.errors import LabUsageError
from failover.lab.files import write_private
from failover.lab.jars import DEFAULT_VERSION
from failover.lab.mirror import MirrorOptions
from failover.lab.ports import LOOPBACK
from failover.lab.process import Process, alive

FILE = "lab.json"
# the user the lab's own clients log in as: a super user. APP has no rights until a test grants some.
ADMIN, APP = "admin", "app"


class LabOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Says what lab to start.

    ``aliases``: two clusters, the first is the source of the flow. ``brokers``: how many each
    cluster has. ``security``: how the written mm2.properties connects. ``sasl``: brokers also listen
    on SASL_SSL (SCRAM, PLAIN, OAUTHBEARER) and, asking for a client certificate, on SSL (implied by
    ``security`` sasl_ssl). ``authorizer``: ACLs are enforced; clients of the PLAINTEXT listener are
    super users. ``proxy``: each broker is also reachable through a proxy that can cut and delay.
    ``quick``: JVM flags for a fast start instead of speed. ``settings``: broker settings added to
    the lab's own. ``mm2``: start MirrorMaker 2. ``replicator``: start ``failover replicate``
    instead. ``connect``: start a Kafka Connect worker with MirrorMaker 2's connectors, none of
    which is deployed.
    """

    aliases: tuple[str, str] = ("primary", "standby")
    brokers: tuple[int, int] = (1, 1)
    kafka_version: str = DEFAULT_VERSION
    security: Literal["plaintext", "sasl_ssl"] = "plaintext"
    sasl: bool = False
    authorizer: bool = False
    proxy: bool = False
    mm2: bool = False
    replicator: bool = False
    connect: bool = False
    mirror: MirrorOptions = MirrorOptions()
    quick: bool = False
    heap: str = "512m"
    settings: dict[str, str] = {}

    def __post_init__(self) -> None:
        if len(set(self.aliases)) != 2 or not all(alias and set(alias).isdisjoint("/ ,.>") for alias in self.aliases):
            raise LabUsageError(
                f"not two distinct cluster aliases: {', '.join(self.aliases)}", hint="letters, digits, - and _"
            )
        if min(self.brokers) < 1:
            raise LabUsageError("a cluster needs at least one broker", hint="--brokers 1, or 3,1 for three and one")

    @property
    def listens_sasl(self) -> bool:
        return self.sasl or self.security == "sasl_ssl"


class Broker(msgspec.Struct, frozen=True):
    """Is one broker: its node id, folder and ports (0: it has no such listener).

    ``proxied`` is the broker's own port behind the proxy, ``proxy`` the port clients connect to.
    """

    alias: str
    node: int
    folder: Path
    plaintext: int
    controller: int
    sasl: int = 0
    tls: int = 0
    proxied: int = 0
    proxy: int = 0

    @property
    def name(self) -> str:
        return f"{self.alias}/{self.node}"

    @property
    def properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"


class Cluster(msgspec.Struct, frozen=True):
    """Is one cluster: its alias, Kafka's id and its brokers."""

    alias: str
    id: str
    brokers: tuple[Broker, ...]

    def bootstrap(self, listener: Literal["plaintext", "sasl", "tls", "proxy"] = "plaintext") -> str:
        """Returns the bootstrap servers of a listener; raises LabUsageError when the lab has no such listener."""
        ports = [int(getattr(broker, listener)) for broker in self.brokers]
        if not all(ports):
            raise LabUsageError(f"cluster {self.alias} has no {listener} listener", hint="start the lab with it")
        return ",".join(f"{LOOPBACK}:{port}" for port in ports)


class ConnectWorker(msgspec.Struct, frozen=True):
    """Is how the lab's Connect worker is reached: ``user`` "" without authentication, ``ca`` "" without TLS."""

    url: str
    user: str = ""
    ca: str = ""


class State(msgspec.Struct, frozen=True):
    """Is the lab as recorded on disk.

    ``marker`` stands on the command line of every process of this lab. ``phase`` is ``starting``
    until every broker answered. ``passwords`` are those of the lab's users, made anew each time.
    ``stopped`` names processes ended on purpose, so that the lab does not look broken.
    """

    marker: str
    created: str
    phase: Literal["starting", "ready"]
    options: LabOptions
    java: Path
    clusters: tuple[Cluster, ...]
    passwords: dict[str, str]
    control_port: int = 0
    processes: tuple[Process, ...] = ()
    stopped: tuple[str, ...] = ()
    connect: ConnectWorker | None = None

    def cluster(self, alias: str) -> Cluster:
        """Returns a cluster by its alias; raises LabUsageError naming those there are."""
        for cluster in self.clusters:
            if cluster.alias == alias:
                return cluster
        known = ", ".join(cluster.alias for cluster in self.clusters)
        raise LabUsageError(f"the lab has no cluster {alias}", hint=f"it has: {known}")

    @property
    def stale(self) -> bool:
        """Says that every recorded process is gone: the machine restarted, or somebody ended them."""
        return not any(alive(process) for process in self.processes)


def read_state(folder: Path) -> State | None:
    """Returns the recorded lab, or None when the folder holds none; raises LabUsageError when it cannot be read."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=State, dec_hook=lambda kind, value: kind(value))
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as failure:
        raise LabUsageError(
            f"{folder / FILE} cannot be read: {failure}",
            hint="was it written by another version? end its java processes by hand and remove the folder",
        ) from failure


def write_state(folder: Path, state: State) -> None:
    """Records the lab; mode 0600."""
    write_private(folder / FILE, msgspec.json.format(msgspec.json.encode(state, enc_hook=str)))
