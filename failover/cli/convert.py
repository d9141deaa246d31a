"""`failover config convert`: the configuration in another form, meaning the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from failover.cli.frame import Command, Settings, pass_settings
from failover.cli.wiring import load
from failover.errors import FlowAmbiguous, UsageError

if TYPE_CHECKING:
    from failover.config.connect_json import Connector
    from failover.config.flow import Config, FlowConfig


@click.command("convert", cls=Command)
@click.option(
    "--to", "form", type=click.Choice(["properties", "connect", "strimzi"]), required=True, help="Which form."
)
@click.option(
    "--connector",
    type=click.Choice(["source", "checkpoint", "heartbeat"]),
    help="With --to connect: this one alone, flat, as PUT /connectors/NAME/config and gcloud's --config-file want it.",
)
@click.option("--yaml", "as_yaml", is_flag=True, help="With --to connect: YAML instead of JSON.")
@click.option(
    "--api-version",
    type=click.Choice(["v1", "v1beta2"]),
    default="v1",
    show_default=True,
    help="With --to strimzi: the resource's version (v1: Strimzi 0.49 and later).",
)
@click.option("--secrets-file", metavar="PATH", help="Where MirrorMaker 2 is to find secrets (a properties file).")
@click.option("--with-secrets", is_flag=True, help="Write secrets as they are; needs -o.")
@click.option("-o", "output", metavar="FILE", help="Write to this file, readable for its owner only.")
@pass_settings
def convert(
    settings: Settings,
    /,
    *,
    form: str,
    connector: str | None,
    as_yaml: bool,
    api_version: str,
    secrets_file: str | None,
    with_secrets: bool,
    output: str | None,
) -> int:
    """Writes the enabled flows in another form: mm2.properties, Connect's connectors, or a Strimzi resource.

    Secrets are replaced by references to a file (to Kubernetes secrets for Strimzi), which stderr names together
    with whatever cannot be said in the other form.
    """
    if with_secrets and output is None:
        raise UsageError("--with-secrets needs -o FILE", hint="secrets are not printed")
    if with_secrets and form == "strimzi":
        raise UsageError("--with-secrets is not for --to strimzi", hint="a resource names secrets and holds none")
    if (connector or as_yaml) and form != "connect":
        raise UsageError("--connector and --yaml go with --to connect", hint="leave them out")
    config = load(settings)
    flows = _flows(settings, config)
    where = None if with_secrets else secrets_file or _default_secrets()
    if form == "properties":
        text, remarks = _properties(config, flows, where)
    elif form == "connect":
        text, remarks = _connect(config, flows, where, connector, as_yaml=as_yaml)
    else:
        text, remarks = _strimzi(config, flows, api_version)
    if form != "strimzi":
        remarks += _about_tokens(flows)
    if output is None:
        settings.emit(text)
    else:
        _write(Path(output), text)
        settings.say(f"written: {output}")
    from failover.report.inert import inert_line

    for remark in remarks:
        settings.say(f"note: {inert_line(remark)}")
    return 0


def _about_tokens(flows: Sequence[FlowConfig]) -> list[str]:
    from failover.config.strimzi_oauth import CERTIFICATES, NO_CERTIFICATES

    clusters = {side.alias: side for flow in flows for side in (flow.source, flow.target)}
    return [f"{alias}: {NO_CERTIFICATES}" for alias, side in clusters.items() if CERTIFICATES in side.properties]


def _default_secrets() -> str:
    from failover.config.write import SECRETS_FILE

    return SECRETS_FILE


def _flows(settings: Settings, config: Config) -> list[FlowConfig]:
    chosen = [
        flow
        for flow in config.enabled_flows
        if settings.source in (None, flow.source.alias) and settings.target in (None, flow.target.alias)
    ]
    if not chosen:
        names = ", ".join(flow.name for flow in config.enabled_flows) or "none"
        raise FlowAmbiguous("no enabled flow fits", hint=f"enabled: {names}")
    return chosen


def _properties(config: Config, flows: Sequence[FlowConfig], where: str | None) -> tuple[str, list[str]]:
    from failover.config.convert import to_properties
    from failover.config.write import properties_text, with_providers, without_secrets

    converted = to_properties(config, flows)
    entries, remarks = list(converted.entries), list(converted.remarks)
    if where is not None:
        entries, keys = without_secrets(entries, where)
        if keys:
            entries = with_providers(entries)
            remarks.append(_wanted(where, keys))
    return properties_text(entries), remarks


def _connect(
    config: Config, flows: Sequence[FlowConfig], where: str | None, wanted: str | None, *, as_yaml: bool
) -> tuple[str, list[str]]:
    from failover.config.convert import to_connectors
    from failover.report.encode import to_json, to_yaml

    connectors, providers, worker = to_connectors(flows)
    if wanted is not None:
        connectors = [one for one in connectors if one.kind == wanted]
        if len(connectors) != 1:
            found = "several" if connectors else "no"
            raise UsageError(f"{found} {wanted} connectors are to be written", hint="choose a flow: --source, --target")
    remarks: list[str] = []
    bodies: list[dict[str, Any]] = []
    names = set(providers)
    for connector in connectors:
        settings, keys = _plain(connector, where)
        if keys and where is not None:
            names.add("file")
            remarks.append(_wanted(where, keys))
        body = {"name": connector.name, "config": settings}
        bodies.append(body)
    if names:
        remarks.append(f"the Connect workers have to declare config.providers: {', '.join(sorted(names))}")
    if worker:
        remarks.append(f"settings for the Connect workers, which no connector can carry: {', '.join(worker)}")
    if own := [key for key in config.failover if not key.startswith("mm2.version")]:
        remarks.append(f"settings of this tool stay behind: {', '.join(f'failover.{key}' for key in own)}")
    value: object = bodies[0]["config"] if wanted is not None else bodies
    return (to_yaml(value) if as_yaml else to_json(value)), list(dict.fromkeys(remarks))


def _plain(connector: Connector, where: str | None) -> tuple[dict[str, str], list[str]]:
    """Gives a connector's configuration to be written and the keys that the file of secrets has to have."""
    from failover.config.write import without_secrets

    if where is None:
        plain = connector.plain()
        del plain["name"]
        return plain, []
    aliases = {f"{side}.cluster.": connector.settings.text(f"{side}.cluster.alias") for side in ("source", "target")}

    def named(key: str) -> str:
        prefix = next((prefix for prefix in aliases if key.startswith(prefix)), "")
        return f"{aliases[prefix]}.{key.removeprefix(prefix)}" if prefix else f"{connector.name}.{key}"

    settings, keys = without_secrets(connector.settings.values(), where, named)
    return {one.key: one.text for one in sorted(settings, key=lambda one: one.key)}, keys


def _strimzi(config: Config, flows: Sequence[FlowConfig], version: str) -> tuple[str, list[str]]:
    from failover.config.to_strimzi import Resources
    from failover.report.encode import to_yaml

    resources = Resources(config, "v1" if version == "v1" else "v1beta2")
    made = resources.make(flows)
    return "---\n".join(to_yaml(one) for one in made), list(dict.fromkeys(resources.remarks))


def _wanted(path: str, keys: Sequence[str]) -> str:
    return f"{path} has to hold these secrets: {', '.join(dict.fromkeys(keys))}"


def _write(path: Path, text: str) -> None:
    import os

    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.fchmod(descriptor, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written: {error.strerror}", hint="check the path and its permissions"
        ) from None
