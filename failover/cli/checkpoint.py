"""`failover checkpoint`: keeps exact checkpoints on the target, beside MirrorMaker 2, until it is stopped."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, pass_settings
from failover.cli.wiring import choose_flow, load, require_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from failover.config.flow import Config, FlowConfig
    from failover.replication.checkpointing import Checkpointing
    from failover.serve.settings import RestSettings

    Opened: TypeAlias = Callable[[Checkpointing], None]


@click.command(cls=Command)
@click.option(
    "--write-mm2-checkpoints",
    "write_mm2",
    is_flag=True,
    help="Also write MirrorMaker 2's checkpoints topic, while nobody else does.",
)
@click.option("--rest", metavar="HOST:PORT", help="Answer /metrics (Prometheus) and /health there.")
@pass_settings
def command(settings: Settings, /, *, write_mm2: bool, rest: str | None) -> int:
    """Keeps on the target where every group's offsets lie there, exactly, until it is stopped.

    For a flow that MirrorMaker 2 copies; `failover replicate` does this by itself. With the source dead,
    `failover plan` works from what was kept. Two may run, on machines outside the source's site: one leads.
    """
    from failover.cli.logs import set_up

    set_up(max(settings.verbosity, 0 if settings.quiet else 1), settings.quiet, settings.log_format)
    require_source(settings, "checkpoint")
    config = load(settings)
    flow = choose_flow(settings, config).flow
    from failover.kafka.wire.thread import new_loop

    listen = None
    if rest is not None:
        from failover.serve.settings import read_rest

        listen = read_rest(config.failover, rest)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        number = runner.run(_run(settings, config, flow, write_mm2=write_mm2, listen=listen))
    settings.say("stopped in good order")
    return 128 + number


async def _run(
    settings: Settings, config: Config, flow: FlowConfig, *, write_mm2: bool, listen: RestSettings | None
) -> int:
    """Works until a signal comes; gives its number."""
    if listen is None:
        return await _track(settings, config, flow, write_mm2=write_mm2)
    from failover.serve.checkpoint import beside_checkpoint

    async with beside_checkpoint(listen, flow.source.alias, flow.target.alias) as opened:
        return await _track(settings, config, flow, write_mm2=write_mm2, opened=opened)


async def _track(
    settings: Settings, config: Config, flow: FlowConfig, *, write_mm2: bool, opened: Opened = lambda _: None
) -> int:
    from failover.replication.checkpointing import checkpoint

    stopped: list[int] = []
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        stopped.append(number)
        task.cancel()

    task = loop.create_task(
        checkpoint(
            config,
            flow,
            source_silence=settings.source_timeout(),
            target_silence=settings.target_timeout(),
            write_mm2=write_mm2,
            opened=opened,
        )
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped:
            raise
    return stopped[0]
