"""Brings a flow's connectors onto a Connect cluster: checked, compared with what runs, put, waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from failover.config.connect_json import Connector, flow_connectors, kind_of
from failover.config.flow import FlowConfig
from failover.config.mm2_keys import CONNECTORS
from failover.config.secret import MASK, Secret, is_secret_key
from failover.connect.client import ConnectClient
from failover.connect.mirrors import Mirror, mirrors, of_flow
from failover.connect.values import STOPPED
from failover.errors import ConnectRefused, OperatorOwns

Action = Literal["create", "update", "none"]


class Change(msgspec.Struct, frozen=True):
    """Is one setting that differs; a secret's values are masks, "" means that there is none."""

    key: str
    before: str
    after: str


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Is what is to be done about one connector."""

    name: str
    kind: str
    action: Action
    changes: tuple[Change, ...] = ()
    errors: dict[str, tuple[str, ...]] = {}


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """Is one ``connect deploy``: what was to be done, what Connect said, what runs now.

    ``extra``: connectors of the flow that the configuration does not ask for; they are left alone. ``stopped``: new
    ones are made without being started. ``states``: after the wait, empty before.
    """

    kind: Literal["failover.connect-deployment"] = "failover.connect-deployment"
    version: int = 1
    flow: str
    url: str
    connect_version: str
    steps: tuple[Step, ...]
    extra: tuple[str, ...] = ()
    dry_run: bool = False
    stopped: bool = False
    states: tuple[Mirror, ...] = ()

    @property
    def to_do(self) -> tuple[Step, ...]:
        """Gives the steps that change something."""
        return tuple(step for step in self.steps if step.action != "none")

    @property
    def invalid(self) -> bool:
        """Says whether Connect finds a configuration wrong."""
        return any(step.errors for step in self.steps)


def wanted_connectors(
    flow: FlowConfig,
    running: Iterable[Mirror],
    prefix: str | None = None,
    own: Mapping[str, str] | None = None,
) -> list[Connector]:
    """Gives the connectors a flow needs, under the names of those that run for it already.

    A stored position goes by its connector's name: under another name the mirror would begin anew. ``prefix``: the
    beginning of the names of those that do not run yet, ``own`` their names by kind without one. Raises
    ConnectRefused where several of one kind run, OperatorOwns where Strimzi's operator owns one.
    """
    names = dict(own or {})
    if prefix is not None:
        names = {kind: f"{prefix}-{kind}" for kind in ("source", "checkpoint", "heartbeat")}
    seen: dict[str, str] = {}
    for one in running:
        if one.operator:
            raise OperatorOwns(
                f"{one.name} is managed by Strimzi's operator, which would undo the deployment",
                hint="change the KafkaMirrorMaker2 resource: failover config convert --to strimzi",
            )
        if one.kind in seen:
            raise ConnectRefused(
                f"{one.flow} has two {one.kind} connectors, {seen[one.kind]} and {one.name}",
                hint="which of them to change cannot be told; delete one, or change them by hand",
            )
        seen[one.kind] = names[one.kind] = one.name
    return flow_connectors(flow, names)


def prepare(
    client: ConnectClient,
    flow: FlowConfig,
    *,
    prefix: str | None = None,
    own: Mapping[str, str] | None = None,
    dry_run: bool = False,
    stopped: bool = False,
) -> Prepared:
    """Validates the connectors of a flow and compares them with what runs; nothing is changed.

    Raises ConnectRefused where the workers have no MirrorMaker 2, or ``stopped`` is asked of a Connect that cannot make
    connectors so; OperatorOwns.
    """
    found = client.connectors()
    worker = client.worker()
    version = worker.version
    if not worker.commit:
        raise ConnectRefused(
            f"{client.access.shown} is failover replicate: its connectors are those of its own configuration",
            hint="change that configuration and restart it, or name a Kafka Connect cluster with --url",
        )
    if stopped and _numbers(version) < (3, 7):
        raise ConnectRefused(
            f"{client.access.shown} runs Kafka {version}: a connector begins to run as soon as it is made",
            hint="Kafka 3.7 can make one that is stopped; pause cannot be told in time",
        )
    _require_plugins(client)
    running = of_flow(mirrors(found), flow.source.alias, flow.target.alias)
    connectors = wanted_connectors(flow, running, prefix, own)
    steps = []
    for connector in connectors:
        entry = found.get(connector.name)
        before = entry.info.config if entry is not None and entry.info is not None else None
        changes = differences(before or {}, connector)
        action: Action = "create" if before is None else "update" if changes else "none"
        said = client.validate(connector.plain()).errors() if action != "none" else {}
        errors = {key: tuple(hide(text, connector) for text in texts) for key, texts in said.items()}
        steps.append(
            Step(name=connector.name, kind=connector.kind or "", action=action, changes=changes, errors=errors)
        )
    names = {connector.name for connector in connectors}
    deployment = Deployment(
        flow=flow.name,
        url=client.access.shown,
        connect_version=version,
        steps=tuple(steps),
        extra=tuple(one.name for one in running if one.name not in names),
        dry_run=dry_run,
        stopped=stopped,
    )
    return Prepared(deployment, {connector.name: connector for connector in connectors})


class Prepared(msgspec.Struct, frozen=True):
    """Is a deployment with the connectors themselves, secrets included: not to be shown or kept."""

    deployment: Deployment
    connectors: dict[str, Connector]


def deploy(client: ConnectClient, prepared: Prepared, *, say: Callable[[str], None]) -> None:
    """Puts what is to be put: heartbeats first, then records, then checkpoints, which need both topics."""
    order = {"heartbeat": 0, "source": 1, "checkpoint": 2}
    for step in sorted(prepared.deployment.to_do, key=lambda step: order.get(step.kind, 3)):
        connector = prepared.connectors[step.name]
        try:
            if step.action == "create" and prepared.deployment.stopped:
                client.create(step.name, connector.plain(), STOPPED)
            else:
                client.put_config(step.name, connector.plain())
        except ConnectRefused as error:
            raise ConnectRefused(hide(error.message, connector), hint=error.hint) from None
        say(f"{step.action}d {step.name}")


def differences(before: Mapping[str, str], connector: Connector) -> tuple[Change, ...]:
    """Gives the settings that would change; values of secrets are masks."""
    after = connector.plain()
    changes = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new or key == "name":
            continue
        hidden = is_secret_key(key) or (key in connector.settings and isinstance(connector.settings[key].value, Secret))
        changes.append(Change(key, _shown(old, hidden), _shown(new, hidden)))
    return tuple(changes)


def hide(text: str, connector: Connector) -> str:
    """Masks a connector's secrets in what Connect says of it."""
    for setting in connector.settings.values():
        if isinstance(setting.value, Secret) and setting.value:
            text = text.replace(setting.value.reveal(), MASK)
    return text


def _shown(value: str | None, hidden: bool) -> str:
    if value is None:
        return ""
    return MASK if hidden and value else value


def _require_plugins(client: ConnectClient) -> None:
    known = {kind_of(plugin.class_) for plugin in client.plugins()}
    if missing := [kind for kind in CONNECTORS if kind not in known]:
        raise ConnectRefused(
            f"the workers at {client.access.shown} have no {missing[0]} connector of MirrorMaker 2",
            hint="its jars, connect-mirror and connect-mirror-client, belong on their plugin.path",
        )


def _numbers(version: str) -> tuple[int, int]:
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)
