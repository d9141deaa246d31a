"""`failover replicate`: copies flows in MirrorMaker 2's place until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, pass_settings
from failover.cli.wiring import load, require_source
from failover.config.mm2_keys import HEARTBEAT
from failover.errors import FailoverError, FlowAmbiguous, UsageError

if TYPE_CHECKING:
    from failover.config.flow import Config, FlowConfig
    from failover.replication.flows import Flows, Stoppable, Work
    from failover.replication.share import Share
    from failover.serve.settings import RestSettings
    from failover.serve.watched import Watched

_log = logging.getLogger("failover.replicate")


@click.command(cls=Command)
@click.option("--clusters", "targets", multiple=True, metavar="ALIAS...", help="Only flows into these targets.")
@click.argument("more", nargs=-1, metavar="")
@click.option("--alongside", is_flag=True, help="Start although MirrorMaker 2 runs the same flow.")
@click.option(
    "--rest", metavar="HOST:PORT", help="Answer Kafka Connect's REST, /metrics (Prometheus) and /health there."
)
@click.option(
    "--group-id",
    "group",
    metavar="[GROUP]",
    is_flag=False,
    flag_value="",
    default=None,
    help="Share the work with all workers of this consumer group on the target; without GROUP, the flow's own.",
)
@click.option("--shard", metavar="I/N", help="Do the I-th of N parts for good, as in 1/3; the first worker leads.")
@pass_settings
def command(
    settings: Settings,
    /,
    *,
    targets: tuple[str, ...],
    more: tuple[str, ...],
    alongside: bool,
    rest: str | None,
    group: str | None,
    shard: str | None,
) -> int:
    """Copies what the configuration mirrors, record for record and exactly once, until it is stopped.

    Takes over where MirrorMaker 2 stopped, and MirrorMaker 2 can take over from it. Needs MirrorMaker 2 to be
    stopped for the flow. Ctrl-C or SIGTERM ends it in good order. One worker does all of a flow, and a second one
    takes it over, unless they share it by --group-id or --shard.
    """
    from failover.cli.logs import set_up
    from failover.replication.flows import FLOW

    set_up(max(settings.verbosity, 0 if settings.quiet else 1), settings.quiet, settings.log_format, FLOW.get)
    require_source(settings, "replicate")
    targets = _targets(targets, more)
    config = load(settings)
    for alias in targets:
        if alias not in config.clusters:
            raise UsageError(f"{config.path} has no cluster '{alias}'", hint=f"clusters: {', '.join(config.clusters)}")
    flows = _flows(settings, config, targets)
    shares = _shares(flows, group, shard)
    _name_unused(config, flows)
    from failover.kafka.wire.thread import new_loop

    alone = _heartbeats_alone(settings, config, flows, targets)
    listen = None
    if rest is not None:
        from failover.serve.settings import read_rest

        listen = read_rest(config.failover, rest)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        code = runner.run(_run(settings, config, flows, alone, alongside=alongside, listen=listen, shares=shares))
    if code in (0, 130, 143):
        settings.say("stopped in good order; where every partition stands is on record")
    return code


def _targets(named: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    """Gives the aliases of ``--clusters``: repeated, several behind one as with connect-mirror-maker.sh, or a,b.

    Raises ``UsageError`` for a word that belongs to nothing.
    """
    if more and not named:
        raise UsageError(
            f"unexpected: {more[0]}",
            hint="a configuration is given by --config FILE; flows by --clusters, or by --source and --target",
        )
    return tuple(alias for one in (*named, *more) for alias in one.split(",") if alias)


def _shares(flows: list[FlowConfig], group: str | None, shard: str | None) -> dict[str, Share]:
    """Gives each flow's share of this worker. Raises ``UsageError``."""
    from failover.mm2.internal_topics import replicate_group
    from failover.replication.shards import parse_slice
    from failover.replication.share import Share

    if group is not None and shard is not None:
        raise UsageError(
            "--group-id and --shard exclude each other",
            hint="a group hands out the parts by itself; --shard fixes them",
        )
    if shard is not None:
        part = parse_slice(shard)
        return {flow.name: Share(part=part) for flow in flows}
    if group is None:
        return {flow.name: Share() for flow in flows}
    targets = [flow.target.alias for flow in flows]
    if group and len(set(targets)) < len(targets):
        names = ", ".join(flow.name for flow in flows)
        raise UsageError(
            f"--group-id {group}: several flows into one cluster ({names}) cannot share by one group",
            hint="give --group-id without a name, each flow has one of its own then; or name one flow by --source and"
            " --target",
        )
    return {flow.name: Share(group=group or replicate_group(flow.source.alias, flow.target.alias)) for flow in flows}


def _name_unused(config: Config, flows: list[FlowConfig]) -> None:
    """Logs each given setting that has no effect here, and why."""
    from failover.config.mm2_keys import ALIASES
    from failover.config.notes import READ_HERE
    from failover.replication.unused import unused

    notes = [note for note in config.notes if note.code in ("dropped", "unknown-key")]
    read = tuple(ALIASES[name] for name in READ_HERE)
    for note in notes:
        _log.warning("%s%s", "" if note.key.endswith(read) else "not used here: ", note)
    told = {note.key for note in notes}
    for one in unused(flows, config.driver):
        if one.key in told:
            continue
        level = logging.WARNING if one.matters else logging.INFO
        _log.log(level, "not used here: %s, because %s", one.key, one.why)


def _flows(settings: Settings, config: Config, targets: tuple[str, ...]) -> list[FlowConfig]:
    """Picks the enabled flows that the options leave. Raises ``FlowAmbiguous`` when none is left."""
    wanted = set(targets) | ({settings.target} if settings.target else set())
    chosen = [
        flow
        for flow in config.enabled_flows
        if (not wanted or flow.target.alias in wanted) and settings.source in (None, flow.source.alias)
    ]
    if not chosen:
        names = ", ".join(flow.name for flow in config.enabled_flows) or "none"
        raise FlowAmbiguous("no enabled flow fits", hint=f"enabled: {names}")
    return chosen


def _heartbeats_alone(
    settings: Settings, config: Config, flows: list[FlowConfig], targets: tuple[str, ...]
) -> list[FlowConfig]:
    """Picks the flows that are not enabled and whose heartbeats this process writes.

    MM2's driver runs all of them, or those into the clusters named by --clusters. Where options name a flow instead,
    its opposite's heartbeats come along: they are what it copies.
    """
    named = {settings.source, settings.target} != {None}
    opposites = {(flow.target.alias, flow.source.alias) for flow in flows}
    return [
        flow
        for flow in config.flows
        if not flow.enabled
        and (not targets or flow.target.alias in targets)
        and (targets or not named or (flow.source.alias, flow.target.alias) in opposites)
    ]


async def _run(
    settings: Settings,
    config: Config,
    flows: list[FlowConfig],
    alone: list[FlowConfig],
    *,
    alongside: bool,
    listen: RestSettings | None,
    shares: Mapping[str, Share],
) -> int:
    """Runs the flows side by side, and heartbeats ``alone`` with them; gives the exit code.

    Raises what ended the only flow.
    """
    from failover.replication.flows import Flows, worst
    from failover.replication.options import read_restart
    from failover.replication.owners import Owners
    from failover.replication.running import flows_of, replicate
    from failover.serve.watched import Watched

    # What starting loaded stays: no collection looks through it again. Batches come and go by the thousand and are
    # freed by their counts; at Python's 700 the search for cycles among them took 7 % of the time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    owners = Owners(flows_of(config, flows))

    def work(flow: FlowConfig) -> Work:
        async def run(started: Callable[[Stoppable], None]) -> None:
            copying = replicate(
                config,
                flow,
                source_silence=settings.source_timeout(),
                target_silence=settings.target_timeout(),
                alongside=alongside,
                owners=owners,
                started=started,
                switches=watched[flow.name].switches,
                opened=watched.opened(flow.name),
                share=shares[flow.name],
            )
            await watched.run(flow.name, copying)

        return run

    restart = read_restart(config)
    side_by_side = Flows({flow.name: work(flow) for flow in flows}, restart, restartable=listen is not None)
    again = restart.kind == "backoff" and len(flows) > 1
    watched = Watched(flows, alone, side_by_side.begin_again, again=again)
    stopped: list[int] = []

    def stop(number: int) -> None:
        stopped.append(number)
        side_by_side.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    async with contextlib.AsyncExitStack() as stack:
        if listen is not None:
            from failover.serve.replicate import beside_replicate

            await stack.enter_async_context(beside_replicate(listen, watched.board))
        failures = await _side_by_side(settings, config, side_by_side, alone, watched, shares=shares)
    failure = worst(failures)
    if failure is None:
        return 128 + stopped[0] if stopped else 0
    if len(flows) == 1:
        raise failure
    settings.say(f"{len(failures)} of {len(flows)} flows ended with an error: {', '.join(failures)}")
    return failure.exit_code if isinstance(failure, FailoverError) else 1


async def _side_by_side(
    settings: Settings,
    config: Config,
    flows: Flows,
    alone: list[FlowConfig],
    watched: Watched,
    *,
    shares: Mapping[str, Share],
) -> dict[str, BaseException]:
    """Runs flows to their end, and the heartbeats ``alone`` as long; gives the failures.

    Of workers that share a flow, the one that leads it writes the heartbeats of its opposite.
    """
    from failover.replication.running import beat

    silence = settings.target_timeout()
    loop = asyncio.get_running_loop()
    beats = [
        loop.create_task(
            beat(
                config,
                flow,
                silence=silence,
                switch=watched[flow.name].switches[HEARTBEAT],
                opened=watched.beats(flow.name),
                leads=shares.get(f"{flow.target.alias}->{flow.source.alias}", next(iter(shares.values()))).leads,
            )
        )
        for flow in alone
    ]
    try:
        return await flows.run()
    finally:
        for task in beats:
            task.cancel()
        await asyncio.gather(*beats, return_exceptions=True)
