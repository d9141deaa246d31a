"""What MirrorMaker 2 itself answers for a group: for comparison with the plan, never to commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TypeAlias

from failover.inventory.flow import Flow
from failover.inventory.questions import Question
from failover.model.names import TopicPartition
from failover.model.snapshot import SeenCheckpoint
from failover.translate.mm2_rule import LatestSyncStore, OffsetSyncStore, Untranslatable, offset_sync_store
from failover.translate.segments import Syncs

MAX_SYNCS = 250_000
"""Offset syncs put through MM2's rule in one look, at most: about 1.5 s of computing for a column of comparison."""

Mm2Answers: TypeAlias = dict[str, dict[TopicPartition, int]]


def mm2_answers(
    flow: Flow,
    questions: Iterable[Question],
    checkpoints: Mapping[str, Mapping[TopicPartition, SeenCheckpoint]],
    syncs: Mapping[TopicPartition, Syncs],
) -> Mm2Answers:
    """Gives MM2's own answer by group and target partition; nothing where it has none.

    A checkpoint is MM2's answer. A group that MM2 has checkpointed on one partition was looked at:
    where it has none on another, MM2 could not translate, and that is its answer, too. A group without any
    checkpoint was not looked at yet (MM2: MirrorCheckpointConnector looks for new groups every
    ``refresh.groups.interval.seconds``); if the flow's filters take it, the answer is what MM2's own rule
    makes of the source's committed offset and the syncs (MM2: OffsetSyncStore of the configured release,
    which has read the whole topic). Left open where syncs were voided or repeated, since MM2
    goes by what arrived, and beyond ``MAX_SYNCS``.
    """
    answers = {group: {tp: seen.downstream for tp, seen in found.items()} for group, found in checkpoints.items()}
    stores: dict[TopicPartition, LatestSyncStore | OffsetSyncStore | None] = {}
    left = MAX_SYNCS
    # Names come again for every partition of every group.
    takes_group, takes_topic = cache(flow.groups.matches), cache(flow.topics.should_replicate)
    for each in questions:
        source = each.source
        if each.group in checkpoints or not (takes_group(each.group) and takes_topic(source.topic)):
            continue
        if source not in stores:
            own = syncs.get(source)
            stores[source] = None
            if own is not None and not own.voided and not own.replayed and len(own) <= left:
                left -= len(own)
                stores[source] = store = offset_sync_store(flow.mm2_version)
                store.sync_all(zip(own.ups, own.downs, strict=True))
                store.finish_initial_read()
        known = stores[source]
        found = Untranslatable.NO_SYNC if known is None else known.translate(each.upstream)
        if not isinstance(found, Untranslatable):
            answers.setdefault(each.group, {})[each.target] = found
    return answers
