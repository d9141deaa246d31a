"""`failover connect`: MirrorMaker 2's connectors on a Kafka Connect cluster, by its REST interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from failover.cli.connecting import (
    Reached,
    confirm,
    find,
    flow_names,
    own_names,
    reach,
    require_target,
    resources_at_hand,
    take,
    teller,
    where_options,
)
from failover.cli.frame import Group, Settings, format_option, pass_settings, require_terminal
from failover.cli.params import DURATION, SOME_TIME
from failover.cli.wiring import choose_flow
from failover.errors import UsageError

if TYPE_CHECKING:
    from failover.connect.access import Elsewhere
    from failover.connect.acting import Acted, Verb
    from failover.connect.mirrors import Mirror
    from failover.connect.strimzi import Patch

_NAMES = click.argument("names", nargs=-1, metavar="[CONNECTOR]...")


@click.group(cls=Group)
def command() -> None:
    """Works MirrorMaker 2's connectors on a Kafka Connect cluster.

    Which cluster: --url, failover.connect.url in the configuration, or --config connect+https://host:8083. An ARN of
    MSK Connect or projects/…/connectClusters/… as --url prints that service's own commands. Connectors that Strimzi
    manages are recognised.
    """


@command.command("list")
@click.option("--every", is_flag=True, help="Connectors that are not MirrorMaker 2's too.")
@where_options()
@format_option("table", "json", "yaml")
@pass_settings
def list_connectors(settings: Settings, /, every: bool, **values: Any) -> int:
    """Lists the connectors of MirrorMaker 2 with their flows and states."""
    from failover.connect.mirrors import mirrors

    where = take(values)
    config, access = find(settings, where)
    if _is_elsewhere(access):
        return _vendor(settings, access, "list", ())
    with reach(settings, where, access, config) as reached:
        entries = reached.source.connectors()
        version = reached.client.worker().version if reached.client is not None else ""
        operated = reached.source.operated()
    found = mirrors(entries, operated=operated)
    known = {one.name for one in found}
    others = [
        (
            name,
            entry.info.config.get("connector.class", "") if entry.info is not None else "",
            entry.status.connector.state if entry.status is not None else "UNKNOWN",
        )
        for name, entry in sorted(entries.items())
        if every and name not in known
    ]
    from failover.report.connect_text import list_text

    value = {"at": reached.at, "version": version, "connectors": found, "others": others}
    settings.emit_value(value, {"table": lambda: list_text(reached.at, version, found, others)})
    return 0


@command.command()
@_NAMES
@where_options()
@format_option("table", "json", "yaml")
@pass_settings
def status(settings: Settings, /, names: tuple[str, ...], **values: Any) -> int:
    """Shows the connectors' and tasks' states, and the first line of why one failed.

    Exit status: 0 all run, 3 something failed, 4 something is paused, stopped or not assigned. Connectors by name, else
    those of the flow.
    """
    from failover.connect.mirrors import exit_code

    where = take(values)
    config, access = find(settings, where)
    if _is_elsewhere(access):
        from failover.cli.connect_states import vendor_status

        return vendor_status(settings, access, names, config)
    with reach(settings, where, access, config) as reached:
        chosen = _chosen(settings, reached, names)
    from failover.report.connect_text import status_text

    value = {"at": reached.at, "connectors": chosen, "exit_code": exit_code(chosen)}
    settings.emit_value(value, {"table": lambda: status_text(reached.at, chosen)})
    return exit_code(chosen)


@command.command()
@_NAMES
@where_options(kubectl=False)
@format_option("table", "json", "yaml")
@pass_settings
def offsets(settings: Settings, /, names: tuple[str, ...], **values: Any) -> int:
    """Shows the positions Connect keeps: of each source partition, the last record copied (Kafka 3.5 and later)."""
    where = take(values)
    config, access = find(settings, where)
    if _is_elsewhere(access):
        return _vendor(settings, access, "offsets", names)
    with reach(settings, where, access, config) as reached:
        chosen = _chosen(settings, reached, names)
        assert reached.client is not None
        wanted = chosen if names else [one for one in chosen if one.kind == "source"]
        rows = [(one.name, offset) for one in wanted for offset in reached.client.offsets(one.name)]
    from failover.report.connect_text import offsets_text

    value = [{"connector": name, "partition": one.partition, "offset": one.offset} for name, one in rows]
    settings.emit_value({"at": reached.at, "offsets": value}, {"table": lambda: offsets_text(rows)})
    return 0


@command.command()
@click.option("--name-prefix", metavar="TEXT", help="Of connectors that do not run yet: TEXT-source, … (default A-B).")
@click.option("--wait", type=DURATION, default="2m", show_default=True, help="For them to run.")
@click.option("--stopped", is_flag=True, help="Make new connectors without starting them (Kafka 3.7), to be seeded.")
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@where_options(kubectl=False)
@format_option("table", "json", "yaml")
@pass_settings
def deploy(
    settings: Settings,
    /,
    *,
    name_prefix: str | None,
    wait: float,
    stopped: bool,
    dry_run: bool,
    yes: bool,
    **values: Any,
) -> int:
    """Puts the flow of mm2.properties onto a Connect cluster as MirrorMaker 2's connectors.

    With the converters that leave records as they are. Connect checks the configuration first, what differs from what
    runs is shown, and after the change the connectors and their tasks are waited for. Connectors that run for the flow
    already keep their names, which their positions go by.
    """
    from failover.connect.deploying import deploy as put
    from failover.connect.deploying import prepare
    from failover.connect.mirrors import at_rest

    where = take(values)
    config, access = find(settings, where, needs_config=True)
    assert config is not None
    selected = choose_flow(settings, config)
    if _is_elsewhere(access):
        return _vendor(settings, access, "deploy", ())
    if not dry_run:
        require_terminal(assume_yes=yes)
    import msgspec

    from failover.report.connect_text import deployment_text

    with reach(settings, where, access, config) as reached:
        client = reached.client
        assert client is not None
        require_target(settings, selected, client)
        prepared = prepare(
            client,
            selected.flow,
            prefix=name_prefix,
            own=own_names(settings, config, selected.flow),
            dry_run=dry_run,
            stopped=stopped,
        )
        deployment = prepared.deployment
        going = not (dry_run or deployment.invalid or not deployment.to_do)
        if going:
            shown = deployment_text(deployment)
            confirm(f"{shown}\nThis changes {deployment.url}.", selected.target, assume_yes=yes)
            put(client, prepared, say=teller(settings))
        if going or not (dry_run or deployment.invalid):
            from failover.connect.waiting import wait_for

            names = [step.name for step in deployment.steps]
            states = tuple(wait_for(client, names, "stop" if stopped else "resume", seconds=wait if going else 0))
            deployment = msgspec.structs.replace(deployment, states=states)
    settings.emit_value(deployment, {"table": lambda: deployment_text(deployment)})
    if deployment.invalid:
        return 3
    return 0 if all(one.healthy or (stopped and at_rest(one, verb="stop")) for one in deployment.states) else 4


def _acting(verb: Verb, text: str) -> None:
    @command.command(verb, help=text)
    @_NAMES
    @click.option("--wait", type=DURATION, default="2m", show_default=True, help="For it to be so.")
    @click.option("--recheck", type=DURATION, help="Watch so long that it stays so (150s where Strimzi is recognised).")
    @click.option("--by-rest", is_flag=True, help="By REST although an operator may undo it.")
    @click.option("--yes", is_flag=True, help="Do not ask.")
    @where_options()
    @format_option("table", "json", "yaml")
    @pass_settings
    def act(settings: Settings, /, names: tuple[str, ...], wait: float, recheck: float | None, **values: Any) -> int:
        return _act(settings, verb, names, wait=wait, recheck=recheck, **values)


_acting("pause", "Pauses connectors: their tasks and clients stay. Names, else the connectors of the flow.")
_acting("stop", "Stops connectors (Kafka 3.5): no record, checkpoint or group offset is written any more.")
_acting("resume", "Lets paused or stopped connectors go on from their stored positions.")


@command.command()
@_NAMES
@click.option("--only-failed", is_flag=True, help="Only what failed of each connector.")
@click.option("--wait", type=DURATION, default="2m", show_default=True, help="For them to run.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@where_options(kubectl=False)
@format_option("table", "json", "yaml")
@pass_settings
def restart(settings: Settings, /, names: tuple[str, ...], wait: float, only_failed: bool, **values: Any) -> int:
    """Restarts connectors with their tasks. Names, else the connectors of the flow."""
    return _act(settings, "restart", names, wait=wait, recheck=0, only_failed=only_failed, by_rest=True, **values)


@command.command()
@_NAMES
@click.option("--restart-failed", is_flag=True, help="Restart what fails, after waits that double.")
@click.option("--backoff", type=SOME_TIME, default="10s", show_default=True, help="The first wait before a restart.")
@click.option("--backoff-max", type=SOME_TIME, default="10m", show_default=True, help="The longest.")
@click.option("--interval", type=SOME_TIME, default="5s", show_default=True, help="Between two looks.")
@click.option("--for", "seconds", type=SOME_TIME, help="End after so long (default: a signal ends it).")
@where_options()
@format_option("table", "json")
@pass_settings
def watch(settings: Settings, /, names: tuple[str, ...], **values: Any) -> int:
    """Tells what changes about the connectors, a line each (with --format json, an object a line).

    A Connect cluster that does not answer is waited for. The exit status at the end is that of `connect status`.
    """
    from failover.cli.connect_watch import follow

    where = take(values)
    config, access = find(settings, where)
    if _is_elsewhere(access):
        return _vendor(settings, access, "watch", names)
    if values["restart_failed"] and access is None:
        raise UsageError("--restart-failed goes by REST", hint="give --url, or let Strimzi restart (autoRestart)")
    with reach(settings, where, access, config) as reached:
        return follow(settings, reached, names, flow_names(settings, config), **values)


def _act(
    settings: Settings,
    verb: Verb,
    names: tuple[str, ...],
    *,
    wait: float,
    recheck: float | None,
    by_rest: bool,
    yes: bool,
    only_failed: bool = False,
    **values: Any,
) -> int:
    from failover.connect import acting
    from failover.connect.strimzi import RECONCILED
    from failover.report.connect_text import acted_text, question

    where = take(values)
    config, access = find(settings, where)
    if _is_elsewhere(access):
        return _vendor(settings, access, verb, names)
    with reach(settings, where, access, config) as reached:
        chosen = _chosen(settings, reached, names)
        at_hand = resources_at_hand(config) if verb != "restart" else []
        owned = verb != "restart" and (any(one.operator for one in chosen) or bool(at_hand))
        if owned and not by_rest and not where.kubectl:
            acted = _owned(verb, chosen, at_hand, reached.at)
        else:
            require_terminal(assume_yes=yes)
            expected = chosen[0].target
            patch = _patch(reached, verb, chosen) if where.kubectl and not by_rest else None
            confirm(question(verb, chosen, reached.at), expected, assume_yes=yes)
            if patch is not None:
                assert reached.kubectl is not None
                acted = acting.by_patch(
                    reached.kubectl, reached.client, chosen, verb, patch, wait=wait, say=teller(settings)
                )
            else:
                if reached.client is None:
                    raise UsageError("--by-rest needs the address of Kafka Connect", hint="--url http://host:8083")
                seconds = recheck if recheck is not None else RECONCILED if owned else 0.0
                acted = acting.by_rest(
                    reached.client,
                    chosen,
                    verb,
                    wait=wait,
                    recheck=seconds,
                    only_failed=only_failed,
                    say=teller(settings),
                )
                if acted.outcome == "undone":
                    acted = _with_advice(acted, chosen, at_hand)
    settings.emit_value(acted, {"table": lambda: acted_text(acted)})
    return acted.exit_code


def _chosen(settings: Settings, reached: Reached, names: tuple[str, ...]) -> list[Mirror]:
    from failover.connect.mirrors import choose, mirrors_at

    source, target = flow_names(settings, reached.config)
    return choose(mirrors_at(reached.source), names, source, target, at=reached.at)


def _patch(reached: Reached, verb: Verb, chosen: list[Mirror]) -> Patch:
    from failover.connect.strimzi import patch_for

    assert reached.kubectl is not None
    flows = {(one.source, one.target) for one in chosen}
    if len(flows) != 1:
        raise UsageError("--kubectl changes one flow at a time", hint="--source A --target B")
    [(source, target)] = flows
    place = reached.kubectl.place(source, target)
    return patch_for(place, {one.kind for one in chosen}, verb, program=reached.kubectl.program)


def _owned(verb: Verb, chosen: list[Mirror], at_hand: list[Mapping[str, Any]], at: str) -> Acted:
    from failover.connect.acting import Acted, flow_name

    acted = Acted(verb=verb, flow=flow_name(chosen), at=at, outcome="owned", connectors=tuple(chosen))
    return _with_advice(acted, chosen, at_hand)


def _with_advice(acted: Acted, chosen: list[Mirror], at_hand: list[Mapping[str, Any]]) -> Acted:
    """Adds how to tell the operator: the patch where its resource is at hand, else what to write into it."""
    import msgspec

    from failover.connect.strimzi import find_place, flows, patch_for, snippet

    kinds = {one.kind for one in chosen}
    source, target = chosen[0].source, chosen[0].target
    if any((source, target) in flows(resource) for resource in at_hand):
        patch = patch_for(find_place(at_hand, source, target), kinds, acted.verb)
        return msgspec.structs.replace(acted, patch=patch)
    return msgspec.structs.replace(acted, snippet=snippet(source, target, kinds, acted.verb))


def _is_elsewhere(access: object) -> bool:
    from failover.connect.access import Elsewhere

    return isinstance(access, Elsewhere)


def _vendor(settings: Settings, access: Elsewhere, verb: str, names: tuple[str, ...]) -> int:
    """Prints a vendor's own commands: nothing was done, so changing verbs end with 3."""
    from failover.connect.vendors import vendor_commands
    from failover.report.connect_text import vendor_text

    commands = vendor_commands(access, verb, names)
    settings.emit_value(commands, {"table": lambda: vendor_text(commands)})
    return 0 if verb in ("list", "offsets", "watch") else 3
