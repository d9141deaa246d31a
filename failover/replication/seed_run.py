"""One seeding from the look to the record of what was written, whoever decides between the two."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from failover.config.flow import FlowConfig
from failover.model.seed import Seed, SeedPartition
from failover.state.seeds import note_seed

if TYPE_CHECKING:
    from failover.replication.seed_clusters import Place
    from failover.replication.seeding import Seeding
    from failover.state.folder import StateFolder


def drafted(
    work: Seeding,
    place: Place,
    flow: FlowConfig,
    partitions: Sequence[SeedPartition],
    *,
    created: datetime,
    operator: str,
    reason: str,
    dry_run: bool,
) -> Seed:
    """Makes the record of a seeding of which nothing is written yet."""
    seed = Seed(
        created=created,
        operator=operator,
        reason=reason,
        source=flow.source.alias,
        target=flow.target.alias,
        topic=place.topic,
        connector=place.connector,
        dry_run=dry_run,
        partitions=tuple(partitions),
        not_seeded=work.not_seeded,
    )
    return msgspec.structs.replace(seed, connect=work.connect_body(seed.to_write))


async def carried_out(work: Seeding, seed: Seed, state: StateFolder, *, settle: float) -> Seed:
    """Watches for ``settle`` seconds that nothing moves, writes, and notes both the intent and what became of it.

    Raises what ``Seeding.stands`` and ``Seeding.write`` raise, and ``StateError``.
    """
    await work.stands(seed.to_write, settle)
    note_seed(state, seed, "intent")
    done = {(one.topic, one.partition): one for one in await work.write(seed.to_write)}
    partitions = tuple(done.get((one.topic, one.partition), one) for one in seed.partitions)
    seed = msgspec.structs.replace(seed, partitions=partitions)
    note_seed(state, seed, "done")
    return seed
