"""A running lab: its clusters, its processes, and what can be done to them."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from failover.errors import LabError, LabUsageError
from failover.lab import process as processes
from failover.lab.broker import java_command, token_flags
from failover.lab.certs import Certificates
from failover.lab.clients import admin_client, wait_broker
from failover.lab.files import write_private
from failover.lab.jars import class_path
from failover.lab.java import jvm_flags
from failover.lab.mirror import Endpoint, MirrorOptions, mm2_properties
from failover.lab.ports import LOOPBACK
from failover.lab.process import Process
from failover.lab.proxy_control import ProxyControl
from failover.lab.state import ADMIN, Broker, Cluster, ConnectWorker, State, read_state, write_state

MIRROR = "mm2"
REPLICATOR = "replicator"
PROXY = "proxy"
Listener = Literal["plaintext", "sasl", "tls", "proxy"]


class Lab:
    """Is a lab that ``up`` started, from this process or another; its state is the file in ``folder``."""

    def __init__(self, folder: Path, state: State) -> None:
        self.folder = folder
        self.state = state

    @classmethod
    def load(cls, folder: Path) -> Lab:
        """Returns the lab recorded in a folder; raises LabUsageError when there is none or it is stale."""
        state = read_state(folder)
        if state is None:
            raise LabUsageError("no lab is up", hint="failover lab up")
        if state.stale:
            raise LabUsageError(
                f"the lab of {state.created} is gone: none of its processes runs",
                hint="failover lab down, then failover lab up",
            )
        return cls(folder, state)

    # -- where things are ----------------------------------------------------------------------

    @property
    def config(self) -> Path:
        """Is the mm2.properties every command accepts."""
        return self.folder / "mm2.properties"

    @property
    def proxied_config(self) -> Path:
        """Is the same through the proxy, where the lab has one."""
        return self.folder / "mm2-proxied.properties"

    @property
    def certificates(self) -> Certificates:
        """Names the files a lab with TLS listeners has."""
        return Certificates.within(self.folder / "certs")

    def bootstrap(self, alias: str, listener: Listener = "plaintext") -> str:
        """Returns a cluster's bootstrap servers."""
        return self.state.cluster(alias).bootstrap(listener)

    def brokers(self, name: str) -> tuple[Broker, ...]:
        """Returns the broker named ``alias/node``, or all of ``alias``; raises LabUsageError when there is none."""
        alias, _, node = name.partition("/")
        cluster = self.state.cluster(alias)
        chosen = tuple(broker for broker in cluster.brokers if node in ("", str(broker.node)))
        if not chosen:
            raise LabUsageError(
                f"no broker {name}", hint=f"it has: {', '.join(broker.name for broker in cluster.brokers)}"
            )
        return chosen

    def client_settings(
        self, alias: str, *, user: str | None = None, mechanism: str = "SCRAM-SHA-512"
    ) -> dict[str, Any]:
        """Returns librdkafka settings for a cluster: PLAINTEXT without a user, else SASL_SSL as that user."""
        if user is None:
            return {"bootstrap.servers": self.bootstrap(alias)}
        return {
            "bootstrap.servers": self.bootstrap(alias, "sasl"),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": self.state.passwords[user],
            "ssl.ca.location": str(self.certificates.ca),
        }

    def endpoint(
        self, alias: str, *, user: str | None = None, named: str | None = None, listener: Listener = "plaintext"
    ) -> Endpoint:
        """Returns how MirrorMaker 2 reaches a cluster, under its alias or another name."""
        if user is None:
            return Endpoint(named or alias, self.bootstrap(alias, listener))
        ca = self.certificates.ca
        return Endpoint(named or alias, self.bootstrap(alias, "sasl"), user, self.state.passwords[user], ca=ca)

    def write_config(
        self,
        path: Path,
        options: MirrorOptions | None = None,
        *,
        aliases: tuple[str, str] | None = None,
        user: str | None = None,
        listener: Listener = "plaintext",
        added: Mapping[str, str] | None = None,
    ) -> Path:
        """Writes an mm2.properties for the lab's flow, its clusters under other ``aliases`` if given; mode 0600."""
        first, second = self.state.options.aliases
        source, target = aliases or (first, second)
        text = mm2_properties(
            self.endpoint(first, user=user, named=source, listener=listener),
            self.endpoint(second, user=user, named=target, listener=listener),
            options or self.state.options.mirror,
            added=added,
        )
        write_private(path, text.encode())
        return path

    @property
    def proxy(self) -> ProxyControl:
        """Steers the proxy; raises LabUsageError when the lab was started without."""
        if not self.state.control_port:
            raise LabUsageError("the lab has no proxy", hint="failover lab up --proxy")
        return ProxyControl(self.state.control_port)

    # -- processes -----------------------------------------------------------------------------

    def start(
        self, name: str, arguments: Sequence[str], *, log: Path, heap: str | None = None, flags: Sequence[str] = ()
    ) -> Process:
        """Starts one of Kafka's main classes and records it; raises LabUsageError when the name already runs."""
        return self._spawn(name, self._java(arguments, heap or self.state.options.heap, flags), log)

    def run_tool(self, *arguments: str, stdin: str | None = None, seconds: float = 60) -> str:
        """Runs one of Kafka's command-line classes to its end and returns its standard output.

        Raises LabError with what it printed to standard error when it fails or takes longer.
        """
        try:
            done = subprocess.run(
                self._java(arguments, "256m"), capture_output=True, text=True, input=stdin, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired as failure:
            raise LabError(f"{arguments[0]} takes longer than {seconds:.0f} s") from failure
        if done.returncode != 0:
            raise LabError(f"{arguments[0]} failed: {(done.stderr or done.stdout).strip()[-500:]}")
        return done.stdout

    def start_broker(self, broker: Broker) -> Process:
        """Starts a prepared broker without waiting for it."""
        flags = token_flags(self.certificates) if broker.sasl else ()
        return self.start(broker.name, ["kafka.Kafka", str(broker.properties)], log=broker.log, flags=flags)

    def start_mirror(self, config: Path | None = None, *, name: str = MIRROR, heap: str | None = None) -> Process:
        """Starts the real MirrorMaker 2 with a configuration (default: the lab's own) without waiting for it."""
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        return self.start(name, [main, str(config or self.config)], log=self.folder / f"{name}.log", heap=heap)

    def start_replicator(self, config: Path | None = None, *arguments: str, name: str = REPLICATOR) -> Process:
        """Starts ``failover replicate`` with a configuration (default: the lab's own) without waiting for it."""
        # The interpreter ignores an option it does not know; there it is the lab's mark.
        marked = [processes.python(), "-X", f"lab={self.state.marker}", "-m", "failover"]
        command = [*marked, "--config", str(config or self.config), "replicate", *arguments]
        return self._spawn(name, command, self.folder / f"{name}.log")

    def start_proxy(self) -> Process:
        """Starts the proxy without waiting for it."""
        brokers = [broker for cluster in self.state.clusters for broker in cluster.brokers]
        routes = [f"{broker.proxy}:{broker.proxied}" for broker in brokers]
        module = ["-m", "failover.lab.proxy", f"--lab={self.state.marker}"]
        command = [processes.python(), *module, str(self.state.control_port), *routes]
        return self._spawn(PROXY, command, self.folder / "proxy.log")

    def record_connect(self, worker: ConnectWorker) -> None:
        """Notes how the Connect worker is reached, before it is started."""
        self._record(connect=worker)

    def running(self, name: str) -> Process | None:
        """Returns the process of a name, None when it does not run."""
        found = next((process for process in self.state.processes if process.name == name), None)
        return found if found is not None and processes.alive(found) else None

    def wait_ready(self, alias: str, *, seconds: float = 60) -> None:
        """Waits until every broker of a cluster that was not stopped on purpose answers an AdminClient.

        Raises LabError with the end of the broker's log when it died, or after ``seconds``.
        """
        for broker in self.state.cluster(alias).brokers:
            if broker.name not in self.state.stopped:
                admin = admin_client(f"{LOOPBACK}:{broker.plaintext}")
                wait_broker(admin, broker.node, seconds=seconds, alive=partial(self._check_alive, broker))

    # -- faults --------------------------------------------------------------------------------

    def kill(self, name: str) -> None:
        """Ends a broker, all brokers of a cluster, or another process of the lab with SIGKILL."""
        for process in self._chosen(name):
            processes.end(process)
            self._record(stopped={*self.state.stopped, process.name})

    def stop(self, name: str, *, grace: float = 20) -> None:
        """Ends a broker, a cluster or another process in an orderly way, with SIGKILL after ``grace`` seconds."""
        for process in self._chosen(name):
            processes.end(process, grace=grace)
            self._record(stopped={*self.state.stopped, process.name})

    def freeze(self, name: str) -> None:
        """Stops a process from running with SIGSTOP: its connections stay open, nothing answers."""
        for process in self._chosen(name):
            processes.send(process, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """Lets a frozen process run again."""
        for process in self._chosen(name):
            processes.send(process, signal.SIGCONT)

    def restart(self, name: str, *, grace: float = 20, seconds: float = 60) -> None:
        """Ends a broker or a cluster (if it runs) and starts it with its data; returns when it answers."""
        brokers = self.brokers(name)
        for broker in brokers:
            if (process := self.running(broker.name)) is not None:
                processes.end(process, grace=grace)
        for broker in brokers:
            self.start_broker(broker)
        self.wait_ready(brokers[0].alias, seconds=seconds)

    # -- internals -----------------------------------------------------------------------------

    def _java(self, arguments: Sequence[str], heap: str, flags: Sequence[str] = ()) -> list[str]:
        state = self.state
        return java_command(
            state.java,
            [*jvm_flags(heap=heap, quick=state.options.quick), *flags],
            class_path(state.options.kafka_version),
            marker=state.marker,
            logging=next(self.folder.glob("log4j*.properties")),
            arguments=arguments,
        )

    def _check_alive(self, broker: Broker) -> None:
        if self.running(broker.name) is None:
            raise LabError(f"broker {broker.name} ended: {processes.tail(broker.log)}", hint=f"all of it: {broker.log}")

    def _chosen(self, name: str) -> list[Process]:
        others = [process.name for process in self.state.processes]
        names = [name] if name in others else [broker.name for broker in self.brokers(name)]
        found = [process for process in map(self.running, names) if process is not None]
        if not found:
            raise LabUsageError(f"{name} does not run", hint="failover lab status")
        return found

    def _spawn(self, name: str, command: Sequence[str], log: Path) -> Process:
        if self.running(name) is not None:
            raise LabUsageError(f"{name} runs already", hint="failover lab status")
        process = processes.spawn(name, command, log=log)
        # on disk before anything is waited for: `down` must find it whatever happens next
        kept = [known for known in self.state.processes if known.name != name]
        self._record(processes=(*kept, process), stopped={*self.state.stopped} - {name})
        return process

    def _record(self, *, stopped: set[str] | None = None, **changes: Any) -> None:
        if stopped is not None:
            changes["stopped"] = tuple(sorted(stopped))
        self.state = msgspec.structs.replace(self.state, **changes)
        write_state(self.folder, self.state)


def wait_until(check: Any, *, seconds: float, what: str, every: float = 0.05) -> Any:
    """Polls until ``check()`` gives something true and returns it; raises LabError naming ``what``."""
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise LabError(f"{what}: not within {seconds:.0f} s")
        time.sleep(every)


def cluster_user(state: State) -> str | None:
    """Returns the user the lab's own mm2.properties logs in as, None for PLAINTEXT."""
    return ADMIN if state.options.security == "sasl_ssl" else None


__all__ = ["ADMIN", "Cluster", "Lab", "Listener", "cluster_user", "wait_until"]
