"""``take_snapshot``: one look at both clusters of a flow, everything a plan is decided from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from typing import TypeVar

import msgspec

from failover.errors import ClusterUnreachable, CredentialsRefused
from failover.inventory.by_time import Times, gone_back, offsets_by_time, positions
from failover.inventory.chosen import had_commits, on_mirrored_topics, require_evidence, require_found
from failover.inventory.failback import END_OF_COPIES, counted, ends_of, unmirrored
from failover.inventory.flow import Flow
from failover.inventory.for_findings import Asked, Behind, deadline, first_waiting, local_topics, soon, writers
from failover.inventory.internal_topics import (
    read_checkpoints,
    read_offset_syncs,
    topics_of_connect_offsets,
)
from failover.inventory.look import (
    EndsOrder,
    FirstLook,
    Offsets,
    Report,
    first_look,
    in_background,
    read_offsets,
    second_look,
    silent_view,
)
from failover.inventory.mirrored import brought_back, foreign_owners, may_collide, mirrored_topics
from failover.inventory.mm2_answers import mm2_answers
from failover.inventory.questions import Evidence, Opposite, Question, Refine, answer, questions_of
from failover.inventory.selection import Candidates, Known, Selection, choose, require_topics
from failover.inventory.tracked import NOTHING, positions_kept, read_exact, source_ends, with_tracked
from failover.kafka.port import Cluster
from failover.mm2.exact_checkpoint import Exact
from failover.model.cluster import ClusterState
from failover.model.names import TopicPartition
from failover.model.snapshot import ClusterView, InternalTopicReading, Snapshot, Unmirrored
from failover.model.translation import Translation
from failover.translate.segments import Syncs

T = TypeVar("T")

Comparison = Callable[[Cluster | None, Cluster, Evidence, Report], Refine]
"""Makes the stage that compares records: gets source (None: no answer), target, evidence, progress."""


class Earlier(msgspec.Struct, frozen=True):
    """Is what this tool remembers of earlier looks; see the fields of ``Snapshot`` of the same names.

    ``committed``: groups that had commits on the target then, or were given some since. ``deleted``: groups that the
    source did not know at ``last_source_seen``, though MM2 has checkpoints of them.
    """

    commit_samples: dict[str, dict[TopicPartition, int]] = {}
    sampled: datetime | None = None
    last_source_ends: dict[TopicPartition, int] = {}
    last_source_seen: datetime | None = None
    committed: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()


def take_snapshot(
    flow: Flow,
    open_cluster: Callable[[str], Cluster],
    selection: Selection = Selection(),  # noqa: B008 - frozen
    *,
    now: Callable[[], datetime],
    source_down: bool = False,
    progress: Report | None = None,
    earlier: Earlier = Earlier(),  # noqa: B008 - frozen
    comparison: Comparison | None = None,
    times: Times = Times(),  # noqa: B008 - frozen
    plain: bool = False,
    settled: Mapping[TopicPartition, int] | None = None,
) -> Snapshot:
    """Looks at both clusters at once and translates every group's offsets.

    ``open_cluster`` gives the cluster of an alias; the caller closes it. ``source_down``: do not
    contact the source at all. ``progress(what, done, total)`` is called from several threads, one
    at a time. ``comparison``: compares records, see ``failover.inventory.comparing``. ``times``: offsets to be found by
    time as well. ``plain``: topics by their plain names are looked at too, for commits on them. ``settled``: see
    ``Evidence``. Nothing is created or written.

    A source that gives no answer is decided once and the look goes on without it. Raises
    ``ClusterUnreachable`` for the target, ``CredentialsRefused`` for either (never taken for a
    dead source), ``NotAuthorized`` and ``BrokerError`` when neither checkpoints nor offset syncs
    can be read, ``GroupNotFound``, ``UsageError``.
    """
    look = _Look(flow, open_cluster, selection, taken=now(), progress=progress, earlier=earlier, comparison=comparison)
    look.plain = plain
    look.settled = settled or {}
    times.moment(look.taken)  # one that is none is told before anything is asked
    return look.take(times, source_down=source_down)


class _Look:
    """Holds what the steps of one look share."""

    def __init__(
        self,
        flow: Flow,
        open_cluster: Callable[[str], Cluster],
        selection: Selection,
        *,
        taken: datetime,
        progress: Report | None,
        earlier: Earlier,
        comparison: Comparison | None,
    ) -> None:
        self.flow = flow
        self.open_cluster = open_cluster
        self.selection = selection
        self.taken = taken
        self.progress = progress
        self.earlier = earlier
        self.comparison = comparison
        self.plain = False
        self.settled: Mapping[TopicPartition, int] = {}
        self.lock = threading.Lock()
        self.source_lost: ClusterView | None = None

    def take(self, times: Times, *, source_down: bool) -> Snapshot:
        flow = self.flow
        if source_down:
            detail = "not asked: --source-down"
            self.source_lost = silent_view(flow.source, ClusterState.NOT_ASKED, detail, None)
        source_first = None if source_down else in_background(self._first_at_source)
        target = self.open_cluster(flow.target)
        target_first = self._first_at_target(target)
        rivals = in_background(lambda: self._rivals(target, target_first))
        own_positions = in_background(lambda: self._own_positions(target, target_first))
        asked = {flow.target: Asked(target)}
        source, first = self._of_source(source_first) or (None, None)
        if source is not None:
            asked[flow.source] = Asked(source)
        exact, kept_reading = self._kept(target, target_first, first)
        require_evidence(flow, target_first, first, exact)

        candidates, known = self._choose(target_first, first, exact)
        self._report("reading committed offsets", len(candidates.groups))
        at_target = in_background(lambda: read_offsets(target, candidates.groups, self.earlier.committed))
        had = had_commits(
            target_first.checkpoints,
            {} if first is None else first.groups,
            taken=self.taken,
            deleted=self.earlier.deleted,
            looked=self.earlier.last_source_seen,
        )
        at_source = self._of_source(
            None if source is None else in_background(lambda: read_offsets(source, candidates.groups, had))
        )
        # syncs that were read to their end stay true when the source falls silent afterwards
        syncs = {**(first.syncs if first is not None else {}), **target_first.syncs}
        mirrored = mirrored_topics(
            flow,
            target_topics=target_first.topics.keys(),
            source_topics=None if first is None else first.topics.keys(),
            checkpointed={
                tp.topic
                for known in (target_first.checkpoints, exact.positions)
                for seen in known.values()
                for tp in seen
            },
            synced={tp.topic for tp in syncs} | own_positions.result(),
        )
        sides = {flow.target: (target, target_first)}
        if source is not None and first is not None:
            sides[flow.source] = (source, first)
        back, reading = self._opposite(sides, at_source, mirrored)
        mirrored = dict(sorted({**(back.topics if back is not None else {}), **mirrored}.items()))
        wanted = require_topics(self.selection.topics, mirrored, f"{flow.source}->{flow.target}")
        offsets = at_target.result()
        groups, idle = on_mirrored_topics(
            candidates, mirrored, offsets, at_source, target_first.checkpoints.keys() | exact.positions.keys()
        )

        self._report("describing groups", len(groups))
        asked[flow.target].topics([topic for topic in mirrored if topic in target_first.topics])
        plain = local_topics(groups, mirrored, target_first, offsets, at_source, there=self.plain)
        source_view = self.source_lost
        described = None
        order = EndsOrder(first=flow.target)
        if source is not None and first is not None and at_source is not None:
            described = in_background(
                partial(second_look, source, first, groups, at_source, mirrored.values(), order=order, pending=True)
            )
        try:
            target_view = second_look(target, target_first, groups, offsets, [*mirrored, *plain], order=order)
        finally:
            order.give_way()  # a source that waits for its turn must not wait for ever
        source_view = self._of_source(described) or self.source_lost
        assert source_view is not None
        require_found(() if self.selection.create else groups, candidates, known, (target_view, source_view))

        checkpoints = {group: target_first.checkpoints[group] for group in groups if group in target_first.checkpoints}
        evidence = Evidence(syncs, source_view.logs, target_view.logs, back, self.settled)
        untold = [group for group in groups if group not in source_view.commits]
        tracked = positions_kept(exact, untold, mirrored)
        newest = _newest(syncs, mirrored)
        behind = self._behind(source, mirrored, newest, source_view, target_view)
        questions = [
            question
            for question in questions_of(groups, mirrored, source_view.commits, checkpoints, tracked)
            if question.target.topic in wanted
        ]
        answering = None if self.source_lost is not None else source
        translations, ends = self._translate([*questions, *ends_of(evidence)], evidence, answering, target)
        with_tracked(
            translations,
            tracked,
            checkpoints=checkpoints,
            topics=target_view.topics,
            logs=target_view.logs,
            taken=self.taken,
        )
        last_ends, last_syncs, last_seen = self._last_known(exact, mirrored)
        until = deadline()
        return Snapshot(
            taken=self.taken,
            flow=flow.info,
            source=asked[flow.source].told(source_view, until) if source_view.status.answers else source_view,
            target=asked[flow.target].told(target_view, until),
            mirrored=mirrored,
            groups=groups,
            checkpoints=checkpoints,
            translations=translations,
            mm2_answers=mm2_answers(flow, questions, checkpoints, syncs),
            not_planned=tuple(sorted((*candidates.left_out, *idle), key=lambda left: left.group)),
            foreign_owners=foreign_owners(mirrored, rivals.result()),
            readings=self._readings(target_first, first, reading, kept_reading),
            last_heartbeat=target_first.heartbeat,
            group_offsets_synced=flow.group_offsets_synced,
            commit_samples=self.earlier.commit_samples,
            sampled=self.earlier.sampled,
            newest_syncs={**last_syncs, **newest},
            last_source_ends=last_ends,
            last_source_seen=last_seen,
            tracked=tracked,
            originals=tuple(topic for topic in evidence.backwards() if topic in mirrored),
            unmirrored=ends,
            plain=self.plain,
            waiting=dict((found := soon(behind, until, Behind())).waiting),
            caught_up=found.caught_up,
            writers=writers(target_first, flow.internal),
            outside_filters=tuple(
                name
                for name in (*groups, *(left.group for left in candidates.left_out))
                if not flow.groups.matches(name)
            ),
            by_time=offsets_by_time(times.moment(self.taken), (target, target_view), wanted),
            gone_back=gone_back(
                times.rewind_seconds,
                (target, target_view),
                positions(translations, checkpoints),
                wanted,
                self._report,
            ),
        )

    # -- the steps -----------------------------------------------------------------------------------

    def _behind(
        self,
        source: Cluster | None,
        mirrored: Mapping[str, str],
        newest: Mapping[TopicPartition, tuple[int, int]],
        source_view: ClusterView,
        target_view: ClusterView,
    ) -> Future[Behind]:
        """Reads what the target lacks, in a look that reads records; nothing once the source is known not to answer."""
        if source is None or self.source_lost is not None or self.comparison is None:
            nothing: Future[Behind] = Future()
            nothing.set_result(Behind())
            return nothing
        logs = source_view.logs, target_view.logs
        return first_waiting(source, mirrored, newest, *logs, committed=self.flow.reads_committed)

    def _first_at_source(self) -> tuple[Cluster, FirstLook]:
        cluster = self.open_cluster(self.flow.source)
        internal = self.flow.internal
        syncs = internal.offset_syncs if internal.offset_syncs_on == self.flow.source else None
        return cluster, first_look(cluster, "source", syncs=syncs, report=self._report)

    def _first_at_target(self, cluster: Cluster) -> FirstLook:
        internal = self.flow.internal
        return first_look(
            cluster,
            "target",
            checkpoints=internal.checkpoints,
            syncs=internal.offset_syncs if internal.offset_syncs_on == self.flow.target else None,
            heartbeats=internal.remote_heartbeats,
            report=self._report,
        )

    def _of_source(self, work: Future[T] | None) -> T | None:
        """Waits for work at the source; None once the source is known to give no answer."""
        if work is None or self.source_lost is not None:
            return None
        try:
            return work.result()
        except CredentialsRefused as error:
            hint = "if the source is gone, go on with --source-down; else " + (error.hint or "check its credentials")
            raise CredentialsRefused(error.message, alias=error.alias, hint=hint) from error
        except ClusterUnreachable as error:
            self.source_lost = silent_view(self.flow.source, ClusterState.DOWN, error.message, self.taken)
            return None

    def _kept(
        self, cluster: Cluster, target: FirstLook, source: FirstLook | None
    ) -> tuple[Exact, InternalTopicReading | None]:
        """Reads the exact positions kept on the target, where the source or a part of it is silent."""
        topic = self.flow.internal.exact_checkpoints
        if topic not in target.topics or self.flow.info.reversed or (source is not None and source.complete):
            return NOTHING, None
        return read_exact(cluster, topic)

    def _choose(self, target: FirstLook, source: FirstLook | None, exact: Exact) -> tuple[Candidates, Known]:
        known = Known(
            source={} if source is None else source.groups,
            target=target.groups,
            checkpoints=target.checkpoints.keys() | exact.positions.keys(),
            complete=target.complete and (source is None or source.complete),
            silent_source=self.flow.source if source is None else None,
        )
        return choose(self.selection, known, self.flow.groups.matches), known

    def _rivals(self, target: Cluster, first: FirstLook) -> dict[str, set[str]]:
        """Finds the target topics that other sources mirror into: their checkpoints and Connect's positions tell."""
        evidence: dict[str, set[str]] = {}
        for rival in self.flow.rivals:
            if not may_collide(self.flow, rival):
                continue
            internal = rival.internal
            seen, _ = read_checkpoints(target, internal.checkpoints, exists=internal.checkpoints in first.topics)
            mirrored = topics_of_connect_offsets(target, first.topics.get(internal.connect_offsets), rival.source)
            topics = {tp.topic for found in seen.values() for tp in found}
            evidence[rival.source] = topics | {rival.target_topic(topic) for topic in mirrored}
        return evidence

    def _own_positions(self, target: Cluster, first: FirstLook) -> set[str]:
        """Finds the topics a dedicated MM2 mirrors by its positions; asked only where names do not tell."""
        if self.flow.policy.topic_source("") is None:
            return set()
        info = first.topics.get(self.flow.internal.connect_offsets)
        return topics_of_connect_offsets(target, info, self.flow.source)

    def _opposite(
        self,
        sides: Mapping[str, tuple[Cluster, FirstLook]],
        committed: Offsets | None,
        mirrored: Mapping[str, str],
    ) -> tuple[Opposite | None, InternalTopicReading | None]:
        """Finds what the opposite flow brought to the source, and reads its offset syncs where that matters."""
        flow, theirs = self.flow, self.flow.opposite
        if theirs is None or theirs.internal.offset_syncs == flow.internal.offset_syncs:
            return None, None
        shared = theirs.policy.topic_source("") is not None
        here = sides[flow.target][1].topics.keys()
        there = sides[flow.source][1].topics.keys() if flow.source in sides else set(mirrored.values())
        topics = brought_back(flow, source_topics=there, target_topics=here, synced=here)
        if committed is not None and not flow.info.reversed:
            used = {tp.topic for commits in committed.commits.values() for tp in commits}
            topics = {topic: copy for topic, copy in topics.items() if copy in used}
        if not topics:
            return None, None
        syncs: Mapping[TopicPartition, Syncs] = {}
        reading = None
        name, holder = theirs.internal.offset_syncs, theirs.internal.offset_syncs_on
        if holder in sides:
            cluster, first = sides[holder]
            syncs, reading = read_offset_syncs(
                cluster,
                name,
                exists=name in first.topics,
                advance=lambda n: self._report(f"reading offset syncs of {theirs.source}->{theirs.target}", n),
            )
        if shared:
            synced = {tp.topic for tp in syncs}
            topics = brought_back(flow, source_topics=topics.values(), target_topics=here, synced=synced)
        return Opposite(f"{theirs.source}->{theirs.target}", topics, syncs, shared), reading

    def _last_known(
        self, exact: Exact, mirrored: Mapping[str, str]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, tuple[int, int]], datetime | None]:
        """Gives the source's ends as last known: by what was kept on the target, or by an earlier look if newer."""
        ends, syncs, seen = source_ends(exact, mirrored)
        if seen is None or (self.earlier.last_source_seen or seen) > seen:
            return self.earlier.last_source_ends, syncs, self.earlier.last_source_seen
        return ends, syncs, seen

    def _readings(
        self, target: FirstLook, source: FirstLook | None, *more: InternalTopicReading | None
    ) -> tuple[InternalTopicReading, ...]:
        own = (*target.readings, *(source.readings if source is not None else ()))
        if self.flow.info.reversed:
            own = tuple(reading for reading in own if reading.exists)  # nobody expects topics of a flow that never ran
        return (*own, *(reading for reading in more if reading is not None))

    def _translate(
        self, questions: Sequence[Question], evidence: Evidence, source: Cluster | None, target: Cluster
    ) -> tuple[dict[str, dict[TopicPartition, Translation]], dict[TopicPartition, Unmirrored]]:
        self._report("translating offsets", len(questions))
        translations: dict[str, dict[TopicPartition, Translation]] = {}
        refine = None if self.comparison is None else self.comparison(source, target, evidence, self._report)
        for question, found in answer(questions, evidence, refine).items():
            translations.setdefault(question.group, {})[question.target] = found
        ends = unmirrored(evidence, translations.pop(END_OF_COPIES, {}))
        if self.comparison is not None:
            counted(ends, evidence, target)
        return translations, ends

    def _report(self, what: str, done: int = 0, total: int | None = None) -> None:
        if self.progress is not None:
            with self.lock:
                self.progress(what, done, total)


def _newest(
    syncs: Mapping[TopicPartition, Syncs], mirrored: Mapping[str, str]
) -> dict[TopicPartition, tuple[int, int]]:
    names: dict[str, list[str]] = {}
    for topic, source_topic in mirrored.items():
        names.setdefault(source_topic, []).append(topic)
    return {
        TopicPartition(topic, source.partition): (found.ups[-1], found.downs[-1])
        for source, found in syncs.items()
        if len(found)
        for topic in names.get(source.topic, ())
    }
