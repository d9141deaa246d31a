"""What each cluster holds alone once records have gone from the target to the source: the end of both topics."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from failover.errors import ClusterError
from failover.inventory.questions import Evidence, Question
from failover.kafka.port import Cluster
from failover.model.cluster import LogRange
from failover.model.names import TopicPartition
from failover.model.records import WindowRequest
from failover.model.snapshot import Unmirrored
from failover.model.translation import Precision, Translation

END_OF_COPIES = ""
"""The group no group can be: it stands at the end of every copy."""

COUNTED = 10_000
"""Records of a partition's end counted one by one at most; beyond, offsets count."""

COUNTED_PARTITIONS = 200


def ends_of(evidence: Evidence) -> list[Question]:
    """Asks of each partition that came from the target which record was mirrored last."""
    back = evidence.opposite
    if back is None:
        return []
    originals = {back.topics[topic]: topic for topic in evidence.backwards()}
    found = []
    for copy, log in evidence.source_logs.items():
        original = TopicPartition(originals.get(copy.topic, ""), copy.partition)
        if original in evidence.target_logs:
            found.append(Question(END_OF_COPIES, original, copy, log.end, None))
    return found


def unmirrored(evidence: Evidence, last: Mapping[TopicPartition, Translation]) -> dict[TopicPartition, Unmirrored]:
    """Tells from the place of the last record mirrored what the target holds beyond; unknown partitions are left out.

    ``exact``: that place is proven. ``records`` counts offsets, transaction markers included.
    """
    found: dict[TopicPartition, Unmirrored] = {}
    back = evidence.opposite
    for question in ends_of(evidence):
        tp, end = question.target, question.upstream
        start, stop = evidence.target_logs[tp]
        place = last.get(tp)
        if end == 0:
            found[tp] = Unmirrored(start, stop - start, True)
        elif place is not None and place.offset is not None:
            first = max(start, place.offset)
            syncs = back.syncs.get(tp) if back is not None and back.shared else None
            own_first = end if syncs is None or not len(syncs) else min(end, syncs.downs[-1] + 1)
            exact = place.precision is Precision.EXACT
            own = end - own_first
            found[tp] = Unmirrored(first, max(0, stop - first), exact, own, own_first if own else 0)
    return found


def counted(ends: dict[TopicPartition, Unmirrored], evidence: Evidence, target: Cluster) -> None:
    """Counts records where offsets were counted so far, as far as stretches are short enough to be read."""
    tails = {tp: LogRange(end.first, end.first + end.records) for tp, end in ends.items() if end.exact}
    for tp, records in count_records(target, tails).items():
        ends[tp] = msgspec.structs.replace(ends[tp], records=records)
    syncs = evidence.opposite.syncs if evidence.opposite is not None else {}
    # originals beyond the newest sync that were mirrored: as many of the records behind it are copies
    copied = {tp: LogRange(syncs[tp].ups[-1] + 1, end.first) for tp, end in ends.items() if end.own and end.exact}
    for tp, records in count_records(target, copied).items():
        own = max(0, ends[tp].own - records)
        ends[tp] = msgspec.structs.replace(ends[tp], own=own, own_first=ends[tp].own_first + records if own else 0)


def count_records(target: Cluster, ranges: Mapping[TopicPartition, LogRange]) -> dict[TopicPartition, int]:
    """Counts the records of stretches of the target's logs; what is too long or cannot be read is left out."""
    short = [(tp, log) for tp, log in ranges.items() if 0 < log.end - log.start <= COUNTED][:COUNTED_PARTITIONS]
    requests = [WindowRequest("target", tp, log.start, log.end) for tp, log in short]
    try:
        windows = target.windows(requests) if requests else {}
    except ClusterError:
        return {}
    return {
        request.tp: len(window.records)
        for request, window in windows.items()
        if window.fault is None and window.covered_to >= request.stop
    }
