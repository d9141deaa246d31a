"""One group's offsets as MM2's client translates them, with the exact places beside them."""

from __future__ import annotations

from datetime import UTC, datetime

from failover.model.names import TopicPartition
from failover.model.snapshot import SeenCheckpoint, Snapshot
from failover.model.translated import GroupTranslation, TranslatedOffset
from failover.model.translation import Precision, Proof, Translation


def group_translation(snapshot: Snapshot, group: str) -> GroupTranslation:
    """Gives a group's translated offsets from a look that was asked for it.

    A partition's ``offset`` is MM2's newest checkpoint by log order, as in Java's RemoteClusterUtils.translateOffsets
    (MM2: MirrorClient.remoteConsumerOffsets): whatever its age, and whether or not the target has such an offset.
    """
    checkpoints = snapshot.checkpoints.get(group, {})
    placed = snapshot.translations.get(group, {})
    return GroupTranslation(
        group=group,
        source=snapshot.flow.source,
        target=snapshot.flow.target,
        source_state=str(snapshot.source.status.state),
        taken=snapshot.taken,
        partitions=tuple(_offset(tp, checkpoints.get(tp), placed.get(tp)) for tp in sorted({*checkpoints, *placed})),
    )


def _offset(tp: TopicPartition, seen: SeenCheckpoint | None, found: Translation | None) -> TranslatedOffset:
    return TranslatedOffset(
        topic=tp.topic,
        partition=tp.partition,
        offset=None if seen is None else seen.downstream,
        metadata="" if seen is None else seen.metadata.decode("utf-8", "replace"),
        checkpoint_upstream=None if seen is None else seen.upstream,
        checkpoint_time=None if seen is None else datetime.fromtimestamp(seen.timestamp / 1000, UTC),
        upstream=None if found is None else found.upstream,
        placed=None if found is None else found.offset,
        precision=Precision.NONE if found is None else found.precision,
        proof=Proof.NONE if found is None else found.proof,
        reread=None if found is None else found.reread,
        reread_max=None if found is None else found.reread_max,
        failure=None if found is None else found.failure,
    )
