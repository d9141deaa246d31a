"""`failover seed`: where a mirror begins, so that nothing is copied twice."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from failover.cli.connecting import connect_cluster, take, where_options
from failover.cli.frame import Command, Settings, confirm_typed, format_option, pass_settings, require_terminal
from failover.cli.params import DURATION
from failover.cli.shared import locked
from failover.cli.wiring import choose_flow, load, open_cluster, operator, require_source, state_folder, utc_now
from failover.errors import UsageError
from failover.library.flows import own_settings, runs_topic

if TYPE_CHECKING:
    from failover.config.flow import Config, FlowConfig
    from failover.connect.client import ConnectClient
    from failover.model.seed import Seed
    from failover.state.folder import StateFolder


class Options(NamedTuple):
    """Is what was typed; ``connector``: of which name, on ``client``'s Connect cluster."""

    topics: tuple[str, ...]
    keep_tail: bool
    settle: float
    yes: bool
    dry_run: bool
    reason: str
    connector: str | None
    carry: bool
    client: ConnectClient | None = None


@click.command(cls=Command)
@click.option("--from-inverse", is_flag=True, help="By what the opposite flow copied, and the records themselves.")
@click.option("--from-positions", is_flag=True, help="With --url: by where the flow's own mirror stood until now.")
@click.option("--topic", "topics", multiple=True, metavar="T", help="Only this topic (repeatable).")
@click.option(
    "--keep-tail", is_flag=True, help="Go ahead although the target holds records that never reached the source."
)
@click.option(
    "--settle",
    type=DURATION,
    default="3s",
    show_default=True,
    help="Watch for so long that nothing is mirrored either way.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show the positions; write nothing.")
@click.option("--ignore-lock", is_flag=True, help="Go on although another process alive holds the lock.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for the record.")
@click.option("--connector", metavar="NAME", help="With --url: of this source connector.")
@where_options(kubectl=False)
@format_option("table", "json", "yaml")
@pass_settings
def command(
    settings: Settings,
    /,
    *,
    from_inverse: bool,
    from_positions: bool,
    topics: tuple[str, ...],
    keep_tail: bool,
    settle: float,
    yes: bool,
    dry_run: bool,
    ignore_lock: bool,
    reason: str,
    connector: str | None,
    **values: Any,
) -> int:
    """Writes where the flow --source to --target begins, behind what the opposite flow copied.

    For topics that have one name on both clusters: the way back after a failover then copies the new
    records and none of those that came from there. For `failover replicate` and a dedicated MirrorMaker 2,
    both stopped; with --url for the source connector of a Kafka Connect cluster, stopped as well.

    --from-positions gives such a connector the positions of the same flow from a dedicated MirrorMaker 2 or
    `failover replicate`, stopped for good, whose place it takes.
    """
    where = take(values)
    if from_inverse == from_positions:
        raise UsageError("say what the positions are made from", hint="--from-inverse, or --from-positions with --url")
    if from_positions and not (where.url or connector):
        raise UsageError("--from-positions is for a connector", hint="name its Connect cluster with --url")
    require_source(settings, "seed")
    if not dry_run:
        require_terminal(assume_yes=yes)
    config = load(settings)
    selected = choose_flow(settings, config, allow_reverse=True)
    flow = own_settings(config, selected)
    state = state_folder(settings, config)
    state.require_usable()
    options = Options(topics, keep_tail, settle, yes, dry_run, reason, connector, from_positions)
    with connect_cluster(settings, where, selected) if where.url or connector else contextlib.nullcontext() as client:

        def run() -> Seed:
            from failover.kafka.wire.thread import new_loop

            with asyncio.Runner(loop_factory=new_loop) as runner:
                return runner.run(_seed(settings, config, flow, state, options._replace(client=client)))

        if dry_run:
            seed = run()
        else:
            cluster = open_cluster(settings, selected, selected.target)
            topic = runs_topic(config, selected.source)
            with contextlib.closing(cluster), locked(settings, cluster, topic, f"seed {flow.name}", ignore=ignore_lock):
                seed = run()
    from failover.report.seed_text import seed_text

    settings.emit_value(seed, {"table": lambda: seed_text(seed)})
    return seed.exit_code


async def _seed(
    settings: Settings,
    config: Config,
    flow: FlowConfig,
    state: StateFolder,
    options: Options,
) -> Seed:
    """Looks, asks, watches, writes."""
    from failover.replication.seed_clusters import seeding
    from failover.replication.seed_run import carried_out, drafted
    from failover.report.seed_text import seed_question

    silences = {"source_silence": settings.source_timeout(), "target_silence": settings.target_timeout()}
    client, name = options.client, options.connector
    async with seeding(config, flow, **silences, connect=client, connector=name, carry=options.carry) as (work, place):
        partitions = await work.look(options.topics, keep_tail=options.keep_tail)
        seed = drafted(
            work,
            place,
            flow,
            partitions,
            created=utc_now(),
            operator=operator(),
            reason=options.reason,
            dry_run=options.dry_run,
        )
        if options.dry_run or not seed.to_write:
            return seed
        confirm_typed(seed_question(seed), seed.target, assume_yes=options.yes)
        return await carried_out(work, seed, state, settle=options.settle)
