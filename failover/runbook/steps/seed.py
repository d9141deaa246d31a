"""Where the way back begins, for topics that have one name on both clusters."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from failover.errors import Refused, StepFailed
from failover.library.flows import own_settings, runs_topic
from failover.model.names import TopicPartition
from failover.model.seed import Seed, SeedPartition
from failover.runbook.kinds import Context, Kind, Result, Settled
from failover.runbook.steps.switching import rest_client

if TYPE_CHECKING:
    from failover.replication.seed_clusters import Place
    from failover.replication.seeding import Seeding
    from failover.state.tails import TailPartition

_SHOWN = 5


class SeedStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``exported``: a file of a step ``tail``; without it a tail is refused. ``topics``: literal names; none: all.

    ``settle``: for so long it is watched that nothing is mirrored. ``url``: of the Connect cluster that keeps the
    positions; empty: they are in a topic of the target, for ``failover replicate`` and a dedicated MirrorMaker 2.
    """

    exported: str = ""
    topics: list[str] = []
    settle: float = 3.0
    url: str = ""


class SeedKind(Kind[SeedStep]):
    """Writes where the flow begins, behind what the opposite flow copied, as ``failover seed --from-inverse`` does.

    Records that the target alone has stay there, in front of what comes: they have to be in an exported file, all of
    them. Fails where a partition's place cannot be told: nothing is begun there by halves. What it writes is a start
    position of a flow that does not run; it stays on the way back, and is written anew the next time.
    """

    parameters = SeedStep
    results = {"written": "positions written", "there": "positions that were there already"}  # noqa: RUF012

    def preview(self, given: SeedStep, context: Context) -> str:
        seed = asyncio.run(_seed(given, context, write=False))
        return f"would write {len(seed.to_write)} start positions to {seed.topic}" + _refusals(seed)

    def run(self, given: SeedStep, context: Context) -> Result:
        from failover.execution.holding import holding

        reach = context.reach
        topic = runs_topic(reach.flow.config, reach.flow.source)
        what, who = f"seed {reach.flow.name}", context.operators[-1]
        with holding(reach.target, topic, what, operator=who, warn=context.say):
            seed = asyncio.run(_seed(given, context, write=True))
        failed = [one for one in seed.partitions if one.status == "failed"]
        if failed:
            raise StepFailed(
                f"{len(failed)} positions were not kept, that of {failed[0].topic} {failed[0].partition}:"
                f" {failed[0].detail}",
                hint="failover run --resume RUN writes them once more",
            )
        there = sum(one.action == "none" for one in seed.partitions)
        return {"written": len(seed.to_write), "there": there}

    def settle(self, given: SeedStep, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # a position is looked for and written anew

    def by_hand(self, given: Mapping[str, Any]) -> str:  # noqa: ARG002 - the same for all
        return "failover seed --from-inverse --source STANDBY --target PRIMARY"


async def _seed(given: SeedStep, context: Context, *, write: bool) -> Seed:
    from failover.replication.seed_run import carried_out, drafted
    from failover.state.tails import exported_tails

    reach = context.reach
    tails = exported_tails(given.exported, reach.target.alias)
    flow = own_settings(reach.flow.config, reach.flow.selected)
    async with opened(given.url, context) as (work, place):
        seed = drafted(
            work,
            place,
            flow,
            [covered(one, tails) for one in await work.look(given.topics)],
            created=context.now(),
            operator=context.operators[-1],
            reason=f"{context.playbook} {context.run_id}",
            dry_run=not write,
        )
        if not write:
            return seed
        if seed.refused:
            raise Refused(
                f"{len(seed.refused)} partitions cannot be seeded{_refusals(seed)}",
                hint="a tail: export it first (tail: export); else way: recreate mirrors the topics whole",
            )
        return await carried_out(work, seed, reach.state, settle=given.settle) if seed.to_write else seed


@contextlib.asynccontextmanager
async def opened(url: str, context: Context) -> AsyncIterator[tuple[Seeding, Place]]:
    """Opens both clusters for seeding the run's flow. Raises what ``failover.replication.seed_clusters`` raises."""
    from failover.library.flows import SOURCE_TIMEOUT, TARGET_TIMEOUT
    from failover.replication.seed_clusters import seeding

    reach = context.reach
    flow = own_settings(reach.flow.config, reach.flow.selected)
    with rest_client(url, context) if url else contextlib.nullcontext() as client:
        async with seeding(
            reach.flow.config,
            flow,
            source_silence=reach.timeouts[0] or SOURCE_TIMEOUT,
            target_silence=reach.timeouts[1] or TARGET_TIMEOUT,
            connect=client,
        ) as (work, place):
            yield work, place


def covered(one: SeedPartition, tails: Mapping[TopicPartition, TailPartition]) -> SeedPartition:
    """Lets a partition go ahead whose tail is in the exported file, all of it, as it is now."""
    tail = tails.get(TopicPartition(one.topic, one.partition))
    if one.reason != "unreplicated-tail" or tail is None or one.mirrored is None:
        return one
    if tail.end != one.target_end or tail.first > one.mirrored:
        return one
    return msgspec.structs.replace(one, action="write", reason="behind-copies", detail="")


def _refusals(seed: Seed) -> str:
    said = [f"{one.topic} {one.partition} ({one.reason}: {one.detail})" for one in seed.refused[:_SHOWN]]
    more = len(seed.refused) - len(said)
    return (": " + "; ".join(said) if said else "") + (f"; and {more} more" if more else "")


KIND = SeedKind()
