"""What the `connect` commands share: options, the Connect cluster they mean, the flow, a Strimzi resource at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from failover.cli.frame import Settings
from failover.cli.wiring import load, open_cluster
from failover.errors import ClusterError, ConfigNotFound, ConnectRefused, Declined, UsageError

if TYPE_CHECKING:
    from failover.config.flow import Config, FlowConfig, SelectedFlow
    from failover.config.settings import Setting
    from failover.connect.access import ConnectAccess, Elsewhere
    from failover.connect.client import ConnectClient
    from failover.connect.kubectl import Kubectl

F = TypeVar("F", bound=Callable[..., Any])


class Where(NamedTuple):
    """Is what was typed about the Connect cluster."""

    url: str | None
    user: str | None
    password_file: str | None
    ca_file: str | None
    kubectl: bool = False
    namespace: str | None = None
    resource: str | None = None


def where_options(*, kubectl: bool = True) -> Callable[[F], F]:
    """Adds the options that say which Connect cluster is meant; they arrive as one ``where``."""
    options = [
        click.option("--url", metavar="URL", help="A worker's address, or several with commas (failover.connect.url)."),
        click.option("--user", metavar="NAME", help="User of basic authentication (failover.connect.user)."),
        click.option("--password-file", metavar="FILE", help="Its password; else $FAILOVER_CONNECT_PASSWORD."),
        click.option("--ca-file", metavar="FILE", help="PEM file of the authorities to trust (failover.connect.ca)."),
    ]
    if kubectl:
        options += [
            click.option("--kubectl", is_flag=True, help="Go by Strimzi's KafkaMirrorMaker2 resource with kubectl."),
            click.option("--namespace", metavar="NAME", help="Where that resource is."),
            click.option("--resource", metavar="NAME", help="That resource, where there are several."),
        ]

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def take(values: dict[str, Any]) -> Where:
    """Takes the options of ``where_options`` out of a command's values."""
    return Where(*(values.pop(name, default) for name, default in _FIELDS.items()))


_FIELDS: dict[str, Any] = {name: Where._field_defaults.get(name) for name in Where._fields} | {"kubectl": False}


class Reached(NamedTuple):
    """Is what can be worked with: a client, kubectl, or both; ``config`` None where there is none."""

    config: Config | None
    client: ConnectClient | None
    kubectl: Kubectl | None

    @property
    def source(self) -> ConnectClient | Kubectl:
        """Is where states come from: Connect itself rather than what an operator last saw of it."""
        found = self.client or self.kubectl
        assert found is not None
        return found

    @property
    def at(self) -> str:
        """Names the place for texts."""
        return self.client.access.shown if self.client is not None else self.kubectl.shown if self.kubectl else ""


def find(
    settings: Settings, where: Where, *, needs_config: bool = False, config: Config | None = None
) -> tuple[Config | None, Any]:
    """Gives the configuration and the access (or the vendor's service, or None with ``--kubectl`` alone).

    Raises UsageError where neither an address nor ``--kubectl`` is given.
    """
    from failover.config.documents import is_address
    from failover.config.settings import Settings as Values
    from failover.connect.access import find_access

    url = where.url or next((one for one in settings.config if is_address(one)), None)
    # an address in the file's place: what is on the cluster is asked for once, by the command itself
    if config is None and (needs_config or where.url or not url):
        config = _config(settings, needed=needs_config)
    access: ConnectAccess | Elsewhere | None = find_access(
        config.failover if config is not None else Values(_typed(settings, url)),
        url=url,
        user=where.user,
        password_file=where.password_file,
        ca=where.ca_file,
        timeout=settings.target_timeout(),
    )
    if access is None and not where.kubectl:
        raise UsageError(
            "no Connect cluster is named",
            hint="--url http://host:8083, or failover.connect.url in the configuration; --kubectl for Strimzi alone",
        )
    return config, access


@contextmanager
def reach(settings: Settings, where: Where, access: ConnectAccess | None, config: Config | None) -> Iterator[Reached]:
    """Opens what was found; nothing is contacted before it is asked something."""
    from failover.connect.client import ConnectClient
    from failover.connect.kubectl import Kubectl

    kubectl = None
    if where.kubectl:
        kubectl = Kubectl(
            namespace=where.namespace or "", resource=where.resource or "", timeout=settings.target_timeout()
        )
    client = ConnectClient(access) if access is not None else None
    try:
        yield Reached(config, client, kubectl)
    finally:
        if client is not None:
            client.close()


@contextmanager
def connect_cluster(settings: Settings, where: Where, selected: SelectedFlow) -> Iterator[ConnectClient]:
    """Opens a Connect cluster that must write to a flow's target; raises UsageError for a vendor's, ConnectRefused."""
    from failover.connect.access import ConnectAccess

    config, access = find(settings, where, needs_config=True)
    if not isinstance(access, ConnectAccess):
        raise UsageError("there is no Kafka Connect REST interface", hint="failover connect list --url … tells more")
    with reach(settings, where, access, config) as reached:
        assert reached.client is not None
        require_target(settings, selected, reached.client)
        yield reached.client


def require_target(settings: Settings, selected: SelectedFlow, client: ConnectClient) -> None:
    """Raises ConnectRefused when the workers write to another cluster than the flow's target."""
    worker = client.worker()
    try:
        with closing(open_cluster(settings, selected, selected.target)) as cluster:
            facts = cluster.facts()
    except ClusterError as error:
        settings.say(f"warning: whether Connect writes to {selected.target} is not known: {error.message}")
        return
    if worker.kafka_cluster_id and facts.cluster_id and worker.kafka_cluster_id != facts.cluster_id:
        raise ConnectRefused(
            f"the workers at {client.access.shown} write to cluster {worker.kafka_cluster_id}, and {selected.target} is"
            f" {facts.cluster_id}",
            hint="take the Connect cluster whose bootstrap.servers are the target's",
        )


def flow_names(settings: Settings, config: Config | None) -> tuple[str | None, str | None]:
    """Gives the aliases that choose connectors: those typed, else those of the one enabled flow."""
    if settings.source is not None or settings.target is not None:
        return settings.source, settings.target
    if config is not None and len(config.enabled_flows) == 1:
        [flow] = config.enabled_flows
        return flow.source.alias, flow.target.alias
    return None, None


def own_names(settings: Settings, config: Config, flow: FlowConfig) -> dict[str, str]:
    """Gives what the connectors of a flow are called in the configuration, by kind, where it is one of connectors."""
    if config.form != "connectors":
        return {}
    from failover.cli.wiring import read
    from failover.config.connectors import flow_of_connector

    documents = read(settings).documents
    connectors = [connector for one in documents if isinstance(one, list) for connector in one]
    ends = (flow.source.alias, flow.target.alias)
    return {
        connector.kind: connector.name
        for connector in connectors
        if connector.kind is not None and connector.name and flow_of_connector(connector) == ends
    }


def resources_at_hand(config: Config | None) -> list[Mapping[str, Any]]:
    """Gives the KafkaMirrorMaker2 resources of the configuration, if it is of that form."""
    if config is None or config.form != "strimzi":
        return []
    from failover.config.properties import read_file
    from failover.config.strimzi import find_resources
    from failover.config.yaml_core import load_yaml

    text = read_file(config.path).decode(errors="replace")
    return list(find_resources(list(load_yaml(text, config.path))))


def teller(settings: Settings) -> Callable[[str], None]:
    """Gives what tells the operator of connectors, whose names and errors are text from outside."""
    from failover.report.inert import inert_line

    return lambda text: settings.say(inert_line(text))


def confirm(question: str, expected: str, *, assume_yes: bool) -> None:
    """Asks until ``expected`` is typed; raises Declined, NoTerminal."""
    from failover.cli.frame import confirm_typed
    from failover.report.inert import inert_line

    try:
        confirm_typed(question, inert_line(expected), assume_yes=assume_yes)
    except Declined:
        raise Declined("declined: nothing was changed", hint="nothing was sent to Kafka Connect") from None


def _config(settings: Settings, *, needed: bool) -> Config | None:
    try:
        return load(settings)
    except ConfigNotFound:
        if needed:
            raise
        return None


def _typed(settings: Settings, url: str | None) -> dict[str, Setting]:
    """Gives the ``failover.`` settings of --set, with an address as if it stood beside them."""
    from failover.config.settings import Origin, make_setting

    written = {"connect.url": url or ""}
    for override in settings.overrides:
        key, _, value = override.partition("=")
        if key.strip().startswith("failover."):
            written[key.strip().removeprefix("failover.")] = value
    return {key: make_setting(key, value, Origin("set", f"failover.{key}")) for key, value in written.items()}
