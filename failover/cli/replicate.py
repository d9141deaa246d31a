"""`failover replicate`: copies flows in MirrorMaker 2's place until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, pass_settings
from failover.cli.wiring import load
from failover.errors import FlowAmbiguous

if TYPE_CHECKING:
    from failover.config.flow import Config, FlowConfig
    from failover.replication.engine import Engine

_log = logging.getLogger("failover.replicate")


@click.command(cls=Command)
@click.option("--clusters", "targets", multiple=True, metavar="ALIAS", help="Only flows into this target (repeatable).")
@click.option("--alongside", is_flag=True, help="Start although MirrorMaker 2 runs the same flow.")
@pass_settings
def command(settings: Settings, /, targets: tuple[str, ...], alongside: bool) -> int:
    """Copies what the configuration mirrors, record for record and exactly once, until it is stopped.

    Takes over where MirrorMaker 2 stopped, and MirrorMaker 2 can take over from it. Needs MirrorMaker 2 to be
    stopped for the flow. Ctrl-C or SIGTERM ends it in good order.
    """
    from failover.cli.logs import set_up

    set_up(max(settings.verbosity, 0 if settings.quiet else 1), settings.quiet, settings.log_format)
    config = load(settings)
    flows = _flows(settings, config, targets)
    from failover.kafka.wire.thread import new_loop

    alone = _heartbeats_alone(settings, config, flows, targets)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        number = runner.run(_run(settings, config, flows, alone, alongside=alongside))
    settings.say("stopped in good order; where every partition stands is on record")
    return 128 + number if number else 0


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
    settings: Settings, config: Config, flows: list[FlowConfig], alone: list[FlowConfig], *, alongside: bool
) -> int:
    """Runs the flows side by side, and heartbeats ``alone`` with them.

    Gives the number of the signal that ended them, 0 if none did.
    """
    from failover.replication.running import beat, replicate

    engines: list[Engine] = []
    stopped: list[int] = []
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        stopped.append(number)
        for engine in engines:
            engine.stop()
        if not engines or len(stopped) > 1:
            for task in tasks:
                task.cancel()

    def started(engine: Engine) -> None:
        engines.append(engine)
        if stopped:
            engine.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    tasks = [
        loop.create_task(
            replicate(
                config,
                flow,
                source_silence=settings.source_timeout(),
                target_silence=settings.target_timeout(),
                alongside=alongside,
                started=started,
            ),
            name=flow.name,
        )
        for flow in flows
    ]
    beats = [loop.create_task(beat(config, flow, silence=settings.target_timeout())) for flow in alone]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for task in beats:
        task.cancel()
    await asyncio.gather(*beats, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    failures = [error for error in errors if not (stopped and isinstance(error, asyncio.CancelledError))]
    if failures:
        for error in failures[1:]:
            _log.error("%s", error)
        raise failures[0]
    return stopped[0] if stopped else 0
