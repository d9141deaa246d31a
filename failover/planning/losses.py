"""What the target does not have: lost if the source is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from failover.model.cluster import LogRange
from failover.model.names import TopicPartition
from failover.model.plan import Finding, Severity, Unreplicated
from failover.model.snapshot import Snapshot
from failover.model.translation import Precision, Proof

_PLACES = frozenset({Proof.SYNC_MATCH, Proof.EQUAL_DELTA, Proof.CONTENT, Proof.TRACKED})
"""Proofs that name one record's place on both sides; a log's start or end does not."""

Bound = Literal["exact", "at-least", "at-most"]

_NOTHING: tuple[int, Bound] = (0, "exact")


def losses(snapshot: Snapshot) -> tuple[tuple[Unreplicated, ...] | None, tuple[TopicPartition, ...]]:
    """Lists the source records that the target lacks, and the source partitions for which nobody can tell.

    The list is None when nothing at all is known.

    A pair (u, d) of a source offset and its place on the target tells how far the mirror is: each
    of the target's records from d to its end is a source record from u on, so the mirror stands
    at u + (end - d) or beyond, and the source's end less that is what is missing, counted in
    offsets. That is ``at-most``: offsets the source never filled (compaction, transaction
    markers) count too, unless it was seen that there is nothing else (``caught_up``); 0 is
    ``exact``. It is too low only where the target itself holds markers (MM2 with exactly-once)
    or records that a restarted MM2 copied twice since its newest sync. A
    checkpoint's d may lie below the true place, so from checkpoints alone the number is
    ``at-least``. With the source silent its ends are those last known, and more may have come
    since: always ``at-least``. Without any pair nobody can tell, except where the target holds
    nothing: then all that the source holds is missing.
    """
    source, target = snapshot.source, snapshot.target
    live = source.status.answers and bool(source.logs)
    ends: Mapping[TopicPartition, int] = (
        {tp: log.end for tp, log in source.logs.items()} if live else snapshot.last_source_ends
    )
    as_of = snapshot.taken if live else snapshot.last_source_seen
    if not ends or as_of is None:
        return None, ()
    exact, loose = _pairs(snapshot)
    found: list[Unreplicated] = []
    unplaced: list[TopicPartition] = []
    known = False
    for topic, source_topic in sorted(snapshot.mirrored.items()):
        info = target.topics.get(topic) or source.topics.get(source_topic)
        for number in range(info.partitions if info is not None else 0):
            tp, origin = TopicPartition(topic, number), TopicPartition(source_topic, number)
            end = ends.get(origin)
            if end is None:
                continue
            if topic in snapshot.originals and (topic != source_topic or tp in snapshot.unmirrored):
                known = True
                own = snapshot.unmirrored[tp].own if tp in snapshot.unmirrored else 0
                if own:
                    found.append(Unreplicated(source_topic, topic, number, own, None, as_of, "at-most"))
                continue
            if topic in target.hidden or tp in target.log_faults:
                unplaced.append(origin)
                continue
            missing = (
                _NOTHING
                if origin in snapshot.caught_up
                else _missing(end, source.logs.get(origin), target.logs.get(tp), exact.get(tp), loose.get(tp))
            )
            if missing is None:
                unplaced.append(origin)
                continue
            known = True
            records, bound = missing
            if records:
                seconds = _waited(snapshot, origin) if live else None
                found.append(
                    Unreplicated(source_topic, topic, number, records, seconds, as_of, bound if live else "at-least")
                )
    return (tuple(found) if known else None), tuple(unplaced)


def _waited(snapshot: Snapshot, origin: TopicPartition) -> float | None:
    """Tells how long ago the first missing record was written, None where it was not read or bears no time."""
    first = snapshot.waiting.get(origin)
    if first is None or first.timestamp < 0:
        return None
    return round(max(0.0, snapshot.taken.timestamp() - first.timestamp / 1000), 3)


def _missing(
    end: int,
    source_log: LogRange | None,
    target_log: LogRange | None,
    exact: tuple[int, int] | None,
    loose: tuple[int, int] | None,
) -> tuple[int, Bound] | None:
    if source_log is not None and source_log.start == end:
        return 0, "exact"
    if target_log is None or target_log.end == 0:
        start = source_log.start if source_log is not None else 0
        return (end - start, "at-most") if end > start else (0, "exact")
    pair = exact or loose
    if pair is None or pair[1] > target_log.end:
        return None  # nothing known, or known of a longer log than there is: it was cut or made anew
    upstream, downstream = pair
    missing = end - upstream - (target_log.end - downstream)
    if missing <= 0:
        return (0, "exact") if exact else None
    return missing, "at-most" if exact else "at-least"


def _pairs(
    snapshot: Snapshot,
) -> tuple[dict[TopicPartition, tuple[int, int]], dict[TopicPartition, tuple[int, int]]]:
    """Collects for each target partition the newest exact pair, and the newest one from checkpoints."""
    exact = dict(snapshot.newest_syncs)
    loose: dict[TopicPartition, tuple[int, int]] = {}
    for translations in snapshot.translations.values():
        for tp, found in translations.items():
            if found.offset is not None and found.precision is Precision.EXACT and found.proof in _PLACES:
                newest = exact.get(tp)
                if newest is None or found.upstream > newest[0]:
                    exact[tp] = (found.upstream, found.offset)
    for checkpoints in snapshot.checkpoints.values():
        for tp, seen in checkpoints.items():
            newest = loose.get(tp)
            if newest is None or seen.upstream > newest[0]:
                loose[tp] = (seen.upstream, seen.downstream)
    return exact, loose


def unplaced_finding(unplaced: tuple[TopicPartition, ...]) -> tuple[Finding, ...]:
    """Says that the loss of some partitions is not known; () when all is known."""
    if not unplaced:
        return ()
    shown = ", ".join(str(tp) for tp in unplaced[:3]) + (" and more" if len(unplaced) > 3 else "")
    return (
        Finding(
            code="position-unknown",
            severity=Severity.INFO,
            subject=shown,
            message=f"how far {len(unplaced)} partitions are mirrored is unknown: what is missing there is not in LOSS",
            remedy="let failover read the offset syncs (READ on mm2-offset-syncs.*.internal)",
        ),
    )


def failback_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Says what each cluster holds alone of topics that went from the target to the source."""
    source, target = snapshot.flow.source, snapshot.flow.target
    tails = {tp: end for tp, end in sorted(snapshot.unmirrored.items()) if end.records}
    if tails:
        bound = "" if all(end.exact for end in tails.values()) else "at most "
        total = sum(end.records for end in tails.values())
        where = [
            f"{tp} from offset {end.first}: {'' if end.exact else 'at most '}{end.records:,}"
            for tp, end in tails.items()
        ]
        yield Finding(
            code="unmirrored-tail",
            severity=Severity.WARNING,
            subject=_some(str(tp) for tp in tails),
            message=f"{bound}{total:,} {_records(total)} on {target} were never mirrored to {source}: {_all(where)}",
            remedy=f"nobody read them on {source}: consumers that start on {target} get them now",
        )
    written = {tp: end for tp, end in sorted(snapshot.unmirrored.items()) if end.own}
    if written:
        total = sum(end.own for end in written.values())
        where = [f"{tp} from offset {end.own_first}: {end.own:,}" for tp, end in written.items()]
        yield Finding(
            code="no-original",
            severity=Severity.WARNING,
            subject=_some(str(tp) for tp in written),
            message=f"at most {total:,} {_records(total)} were written on {source} itself and have no original on "
            f"{target}: {_all(where)}",
            remedy=f"bring them to {target} by a mirror, or let their consumers finish on {source} first",
        )


def _records(number: int) -> str:
    return "record" if number == 1 else "records"


def _some(names: Iterable[str]) -> str:
    return _all(list(names), 3)


def _all(items: list[str], limit: int = 20) -> str:
    more = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {more} more" if more > 0 else "")
