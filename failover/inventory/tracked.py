"""What was kept on the target while the source was up: exact positions, and where the source ended.

They count for groups whose commits the source cannot tell now. Of a kept position and MM2's checkpoint the later one
says where a group stood; the other may still raise the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from failover.errors import BrokerError, NotAuthorized
from failover.inventory.internal_topics import CheckpointsByGroup
from failover.kafka.faults import fault
from failover.kafka.port import Cluster
from failover.mm2.exact_checkpoint import Exact, ExactRecords
from failover.model.cluster import LogRange, TopicInfo
from failover.model.names import TopicPartition
from failover.model.snapshot import InternalTopicReading, SeenCheckpoint, Tracked
from failover.model.translation import Precision, Proof, Translation

NOTHING = Exact({}, {}, None)
_NO_RIGHT = 29  # Kafka: TOPIC_AUTHORIZATION_FAILED

TrackedByGroup = dict[str, dict[TopicPartition, Tracked]]


def read_exact(cluster: Cluster, topic: str) -> tuple[Exact, InternalTopicReading]:
    """Reads an exact checkpoints topic that is there; without READ the reading has a fault and nothing is known."""
    records, count, newest = ExactRecords(), 0, None
    try:
        for chunk in cluster.read(TopicPartition(topic, 0)):
            records.take(chunk)
            count += len(chunk)
            newest = chunk[-1].timestamp if chunk else newest
    except (NotAuthorized, BrokerError) as error:
        why = fault(error.number if isinstance(error, BrokerError) else _NO_RIGHT, error.message)
        return NOTHING, InternalTopicReading(topic, cluster.alias, True, count, newest=newest, fault=why)
    return records.decoded(), InternalTopicReading(topic, cluster.alias, True, count, newest=newest)


def positions_kept(exact: Exact, groups: Iterable[str], mirrored: Mapping[str, str]) -> TrackedByGroup:
    """Gives what is kept of these groups on mirrored topics."""
    kept: TrackedByGroup = {}
    for group in groups:
        for place, position in exact.positions.get(group, {}).items():
            if place.topic in mirrored:
                known = position.known
                kept.setdefault(group, {})[place] = Tracked(
                    upstream=position.upstream,
                    downstream=position.downstream,
                    metadata=position.metadata,
                    proof=known.proof,
                    precision=known.precision,
                    most=known.most,
                    as_of=exact.as_of(group, position),
                    topic_id=known.target_id,
                )
    return kept


def source_ends(
    exact: Exact, mirrored: Mapping[str, str]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, tuple[int, int]], datetime | None]:
    """Gives the source's last known ends by source partition, the newest syncs by target partition, and their time."""
    if exact.beat is None:
        return {}, {}, None
    places = {place: end for place, end in exact.ends.items() if place.topic in mirrored}
    ends = {TopicPartition(mirrored[place.topic], place.partition): end.end for place, end in places.items()}
    syncs = {place: end.sync for place, end in places.items() if end.sync is not None}
    return ends, syncs, datetime.fromtimestamp(exact.beat.at / 1000, UTC)


def counts(kept: Tracked | None, checkpoint: SeenCheckpoint | None) -> bool:
    """Says whether the kept position, rather than MM2's checkpoint, tells where the group stood last."""
    return kept is not None and (checkpoint is None or checkpoint.timestamp <= kept.as_of)


def with_tracked(
    translations: dict[str, dict[TopicPartition, Translation]],
    tracked: TrackedByGroup,
    *,
    checkpoints: CheckpointsByGroup,
    topics: Mapping[str, TopicInfo],
    logs: Mapping[TopicPartition, LogRange],
    taken: datetime,
) -> None:
    """Puts kept positions among the translations, in place, where they say more."""
    for group, places in tracked.items():
        answers = translations.setdefault(group, {})
        for place, kept in places.items():
            info, log, found = topics.get(place.topic), logs.get(place), answers.get(place)
            recreated = bool(kept.topic_id and info is not None and info.topic_id and info.topic_id != kept.topic_id)
            if counts(kept, checkpoints.get(group, {}).get(place)):
                answers[place] = _recreated(kept) if recreated else _better(kept, found, taken)
            elif found is not None and log is not None and not recreated:
                answers[place] = _raised(kept, found, log, taken)


def _better(kept: Tracked, found: Translation | None, taken: datetime) -> Translation:
    """Chooses between what is kept and what this look found for the same source offset: both pass nothing."""
    exact = kept.precision == Precision.EXACT
    if exact or found is None or found.offset is None or found.upstream != kept.upstream:
        return _kept(kept, taken)
    return found if found.precision is Precision.EXACT or found.offset >= kept.downstream else _kept(kept, taken)


def _kept(kept: Tracked, taken: datetime) -> Translation:
    exact = kept.precision == Precision.EXACT
    return Translation(
        kept.upstream,
        kept.downstream,
        Precision(kept.precision),
        Proof.TRACKED,
        reread=0 if exact else None,
        reread_max=0 if exact else kept.most,
        evidence=(_evidence(kept, taken),),
    )


def _raised(kept: Tracked, found: Translation, log: LogRange, taken: datetime) -> Translation:
    """Raises an answer for a later commit to the place of an earlier one, which the group had passed."""
    if found.offset is None or found.precision is Precision.EXACT or kept.upstream > found.upstream:
        return found
    raised = kept.downstream - found.offset
    if raised <= 0 or kept.downstream > log.end or (found.reread_max is not None and raised > found.reread_max):
        return found
    return msgspec.structs.replace(
        found,
        offset=kept.downstream,
        proof=Proof.TRACKED,
        reread=None if found.reread is None else max(0, found.reread - raised),
        reread_max=None if found.reread_max is None else found.reread_max - raised,
        evidence=(*found.evidence, _evidence(kept, taken)),
    )


def _recreated(kept: Tracked) -> Translation:
    evidence = "the target's topic was made anew since the position was kept"
    return Translation(
        kept.upstream, None, Precision.NONE, Proof.NONE, evidence=(evidence,), failure="target-recreated"
    )


def _evidence(kept: Tracked, taken: datetime) -> str:
    seconds = max(0.0, taken.timestamp() - kept.as_of / 1000)
    return f"source {kept.upstream} kept as target {kept.downstream} ({kept.proof}), as of {seconds:,.0f} s ago"
