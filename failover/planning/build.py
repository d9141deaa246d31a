"""From one look at both clusters to a plan: every group, its verdict, what it costs, what is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

import msgspec

from failover.checks import by_severity, find
from failover.checks.missing_rights import missing_rights
from failover.model.cluster import LogRange, TopicInfo
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.model.plan import (
    Action,
    LocalTopic,
    Plan,
    PlannedCluster,
    PlannedGroup,
    PlannedPartition,
    PlanOptions,
    Verdict,
)
from failover.model.snapshot import ClusterView, Snapshot
from failover.planning.asked import NEWER, asked_findings, check, placed, selected
from failover.planning.decide import decide
from failover.planning.fingerprint import fingerprint
from failover.planning.group_rules import UNTIL_FREE, GroupLook, group_refusal
from failover.planning.local_topics import decide_local, local_views
from failover.planning.losses import failback_findings, losses, unplaced_finding
from failover.planning.summary import summarize
from failover.planning.verdict import plain, reasons, verdict
from failover.planning.view import PartitionView

VERSION = 1

Written = Mapping[str, Mapping[TopicPartition, int]]


def make_plan(
    snapshot: Snapshot,
    options: PlanOptions,
    *,
    plan_id: str,
    operator: str,
    reason: str,
    ttl_seconds: float,
    tool_version: str,
    earlier: Plan | None = None,
    written: Written | None = None,
    locked_by: str = "",
    settle_seconds: float = 6.0,
) -> Plan:
    """Decides every group of the snapshot and gives the plan, with its fingerprint.

    ``ttl_seconds``: how long it may be executed, from ``snapshot.taken``. ``earlier``: an earlier
    plan of the flow, to notice recreated topics. ``written``: group → target partition → offset
    that this tool wrote last. ``locked_by``: the live holder of the lock, "" when free.
    Raises ``UsageError`` for options that contradict each other or need offsets by time.
    """
    check(options, snapshot)
    builder = _Builder(snapshot, options, earlier, written or {}, locked_by)
    decided = [builder.group(name) for name in selected(snapshot, options)]
    groups, not_planned = placed(decided, snapshot, options, builder.elsewhere)
    groups = builder.withheld(groups)
    lost, unplaced = losses(snapshot)
    lacking = missing_rights(snapshot, groups)
    plan = Plan(
        version=VERSION,
        id=plan_id,
        created=snapshot.taken,
        expires=snapshot.taken + timedelta(seconds=ttl_seconds),
        tool_version=tool_version,
        operator=operator,
        reason=reason,
        source=_cluster(snapshot.source),
        target=_cluster(snapshot.target),
        flow=snapshot.flow,
        options=options,
        groups=groups,
        not_planned=not_planned,
        unreplicated=lost,
        summary=summarize(groups, not_planned, lost, settle_seconds),
        findings=by_severity(
            (
                *asked_findings(groups, not_planned, snapshot, options, builder.elsewhere),
                *find(snapshot, groups, written, earlier),
                *unplaced_finding(unplaced),
                *failback_findings(snapshot),
            )
        ),
        topic_ids=_topic_ids(snapshot, groups),
        source_topic_ids={name: info.topic_id for name, info in snapshot.source.topics.items() if info.topic_id},
        missing_acls=lacking.acls,
        missing_users=lacking.users,
    )
    return msgspec.structs.replace(plan, fingerprint=fingerprint(plan))


def exit_code(plan: Plan) -> int:
    """Gives ``plan``'s exit status: 0 all ready or nothing, 3 none ready or partial, else 4.

    A group that nothing places yet is left behind, so a plan without it is partial.
    """
    counts = plan.summary.groups
    newer = any(left.why == NEWER for left in plan.not_planned)
    if not counts.partial and not counts.refused and not newer:
        return 0
    return 4 if counts.partial or counts.ready else 3


def _cluster(view: ClusterView) -> PlannedCluster:
    status = view.status
    return PlannedCluster(
        status.alias, status.cluster_id, str(status.state), status.detail, status.silent_since, view.bootstrap
    )


def _topic_ids(snapshot: Snapshot, groups: Iterable[PlannedGroup]) -> dict[str, str]:
    names = {partition.topic for group in groups for partition in group.partitions}
    topics = snapshot.target.topics
    return {name: info.topic_id for name in sorted(names) if (info := topics.get(name)) is not None and info.topic_id}


def _by_kind(view: PartitionView) -> Callable[[PartitionView, PlanOptions, str | None, int], PlannedPartition]:
    return decide if view.source_topic else decide_local


class _Place(msgspec.Struct, frozen=True):
    """Is what all groups share of one target partition."""

    source: TopicPartition
    source_range: LogRange | None
    topic_info: TopicInfo | None
    target_range: LogRange | None
    unavailable: bool
    foreign: tuple[str, ...]
    id_changed: bool


class _Builder:
    """Holds what all groups share while a plan is built."""

    def __init__(
        self, snapshot: Snapshot, options: PlanOptions, earlier: Plan | None, written: Written, locked_by: str
    ) -> None:
        self.snapshot = snapshot
        self.options = options
        self.earlier = earlier
        self.written = written
        self.locked_by = locked_by
        self.target_names = {source: target for target, source in snapshot.mirrored.items()}
        self.taken_ms = int(snapshot.taken.timestamp() * 1000)
        self.earlier_ms = int(earlier.created.timestamp() * 1000) if earlier is not None else 0
        self.places: dict[TopicPartition, _Place] = {}
        self.wanted = frozenset(options.topics)
        self.elsewhere: dict[str, tuple[str, ...]] = {}

    def withheld(self, groups: tuple[PlannedGroup, ...]) -> tuple[PlannedGroup, ...]:
        """Applies ``--all-or-nothing``: one partition of one group that cannot be placed holds everything back.

        Where only the state of groups stands in the way, what holds once they are empty is kept (``when_free``).
        """
        bad = [group for group in groups if group.verdict in (Verdict.PARTIAL, Verdict.REFUSED)]
        if not self.options.all_or_nothing or not bad:
            return groups
        later = all(group.when_free and all(plain(p) for p in group.when_free) for group in bad)
        return tuple(
            self.group(group.group, withheld=True, later=later)
            if any(p.action is Action.COMMIT for p in group.partitions)
            else group
            for group in groups
        )

    def group(self, name: str, *, withheld: bool = False, later: bool = False) -> PlannedGroup:
        """Decides one group; ``withheld``: nothing of it is committed now, though it could be, perhaps ``later``."""
        snapshot = self.snapshot
        info, source_info = snapshot.target.groups.get(name), snapshot.source.groups.get(name)
        source_commits = self._named_for_target(snapshot.source.commits.get(name, {}))
        target_commits = snapshot.target.commits.get(name, {})
        checkpoints = {**snapshot.checkpoints.get(name, {}), **snapshot.tracked.get(name, {})}
        on_mirrored = {tp for tp in target_commits if tp.topic in snapshot.mirrored}
        everywhere = {*checkpoints, *source_commits, *on_mirrored}
        traces = {tp for tp in everywhere if self._wants(tp.topic)}
        if len(traces) < len(everywhere):
            elsewhere = {snapshot.mirrored.get(tp.topic, tp.topic) for tp in everywhere - traces}
            self.elsewhere[name] = tuple(sorted(elsewhere))
        found = bool(
            checkpoints
            or source_commits
            or target_commits
            or snapshot.source.commits.get(name)
            or (info is not None and (info.exists or info.fault is not None))
            or (source_info is not None and source_info.exists)
        )
        written = self.written.get(name, {})
        refusal = group_refusal(GroupLook(name, info, found, snapshot, self.options, self.locked_by, written))
        topics = sorted({tp.topic for tp in traces} or (self._topics_to_create() if not found else ()))
        views = self._views(name, topics, traces, source_commits)
        local_topics = self._local_topics(topics, target_commits)
        if self.options.local_topics == "earliest":
            views += local_views(snapshot.target, name, local_topics, target_commits)
        partitions = self._decide(views, refusal)
        when_free = self._decide(views, None) if refusal in UNTIL_FREE and traces else ()
        if withheld:
            when_free = partitions if later else ()
            partitions = tuple(
                _by_kind(view)(view, self.options, "all-or-nothing", self.taken_ms) if p.action is Action.COMMIT else p
                for view, p in zip(views, partitions, strict=True)
            )
        return PlannedGroup(
            group=name,
            exists=info is not None and info.exists,
            type=str(info.type) if info is not None else "unknown",
            state=info.state if info is not None else "Unknown",
            members=info.members if info is not None else (),
            source_state=source_info.state if source_info is not None else None,
            source_members=len(source_info.members) if source_info is not None else None,
            verdict=(judged := verdict(partitions, refusal, bool(traces), found)),
            reasons=reasons(judged, partitions, refusal, found),
            subscribe=self._subscribe(sorted({tp.topic for tp in everywhere}) or topics),
            local_topics=local_topics,
            partitions=partitions,
            when_free=when_free,
        )

    def _decide(self, views: list[PartitionView], refusal: str | None) -> tuple[PlannedPartition, ...]:
        return tuple(_by_kind(view)(view, self.options, refusal, self.taken_ms) for view in views)

    def _named_for_target(self, commits: Mapping[TopicPartition, Commit]) -> dict[TopicPartition, Commit]:
        names = self.target_names
        return {
            TopicPartition(name, tp.partition): commit
            for tp, commit in commits.items()
            if (name := names.get(tp.topic)) is not None
        }

    def _wants(self, topic: str) -> bool:
        wanted = self.wanted
        return not wanted or topic in wanted or self.snapshot.mirrored.get(topic) in wanted

    def _topics_to_create(self) -> list[str]:
        """``--create-group``: the topics named by hand, since the group itself names none."""
        return [topic for topic in self.snapshot.mirrored if self.wanted and self._wants(topic)]

    def _partition_count(self, topic: str, known: int) -> int:
        """Counts the partitions to decide: all of the topic, so that none is left out silently."""
        target = self.snapshot.target.topics.get(topic)
        source = self.snapshot.source.topics.get(self.snapshot.mirrored.get(topic, topic))
        return max(known, target.partitions if target else 0, source.partitions if source else 0)

    def _place(self, tp: TopicPartition) -> _Place:
        place = self.places.get(tp)
        if place is None:
            snapshot, target = self.snapshot, self.snapshot.target
            source = TopicPartition(snapshot.mirrored.get(tp.topic, tp.topic), tp.partition)
            info = target.topics.get(tp.topic)
            old_id = self.earlier.topic_ids.get(tp.topic) if self.earlier is not None else None
            place = self.places[tp] = _Place(
                source=source,
                source_range=snapshot.source.logs.get(source),
                topic_info=info,
                target_range=target.logs.get(tp),
                unavailable=tp in target.log_faults or (info is not None and tp.partition in info.leaderless),
                foreign=snapshot.foreign_owners.get(tp.topic, ()),
                id_changed=bool(old_id and info is not None and info.topic_id and info.topic_id != old_id),
            )
        return place

    def _views(
        self,
        group: str,
        topics: Iterable[str],
        traces: Iterable[TopicPartition],
        commits: Mapping[TopicPartition, Commit],
    ) -> list[PartitionView]:
        snapshot = self.snapshot
        source, target = snapshot.source, snapshot.target
        known = source.status.answers and group in source.commits and group not in source.group_faults
        checkpoints, translations = snapshot.checkpoints.get(group, {}), snapshot.translations.get(group, {})
        answers, written = snapshot.mm2_answers.get(group, {}), self.written.get(group, {})
        target_commits, tracked = target.commits.get(group, {}), snapshot.tracked.get(group, {})
        info = target.groups.get(group)
        by_time = {} if snapshot.by_time is None else snapshot.by_time.offsets
        back = snapshot.gone_back if self.options.rewind_by else None
        known_partitions: dict[str, int] = {}
        for tp in traces:
            if known_partitions.get(tp.topic, 0) <= tp.partition:
                known_partitions[tp.topic] = tp.partition + 1
        views = []
        for topic in topics:
            for number in range(self._partition_count(topic, known_partitions.get(topic, 0))):
                tp = TopicPartition(topic, number)
                place, checkpoint = self._place(tp), checkpoints.get(tp)
                views.append(
                    PartitionView(
                        topic=topic,
                        partition=number,
                        source_topic=place.source.topic,
                        source_known=known,
                        source_commit=commits.get(tp),
                        source_range=place.source_range,
                        checkpoint=checkpoint,
                        translation=translations.get(tp),
                        mm2_answer=answers.get(tp),
                        target_commit=target_commits.get(tp),
                        topic_info=place.topic_info,
                        target_range=place.target_range,
                        unavailable=place.unavailable,
                        foreign=place.foreign,
                        # A checkpoint from before the last plan speaks of the topic that plan saw.
                        recreated=place.id_changed
                        and checkpoint is not None
                        and checkpoint.timestamp <= self.earlier_ms,
                        written=written.get(tp),
                        active=info is not None and bool(info.members),
                        synced=snapshot.group_offsets_synced,
                        original=topic in snapshot.originals,
                        hidden=topic in target.hidden,
                        tracked=tracked.get(tp),
                        by_time=by_time.get(tp),
                        gone_back=None if back is None else back.offsets.get(tp, {}),
                    )
                )
        return views

    def _subscribe(self, topics: Iterable[str]) -> tuple[str, ...]:
        """Names what consumers must read on the target: the mirrored topics AND those of new producers.

        MM2 (DefaultReplicationPolicy) renames topics; after the failover producers write to the
        plain name. Where names stay (IdentityReplicationPolicy) both are one. A topic that came from
        the target keeps its own name there; beside it stands what the source's producers wrote meanwhile, mirrored.
        """
        mirrored, originals = self.snapshot.mirrored, self.snapshot.originals
        found: dict[str, None] = {}
        for topic in topics:
            found[topic] = None
            other = self.target_names.get(topic) if topic in originals else mirrored.get(topic)
            if other is not None and (topic not in originals or other in self.snapshot.target.topics):
                found[other] = None
        return tuple(found)

    def _local_topics(self, topics: Iterable[str], commits: Mapping[TopicPartition, Commit]) -> tuple[LocalTopic, ...]:
        snapshot = self.snapshot
        committed = {tp.topic for tp in commits}
        found = []
        for topic in topics:
            plain = snapshot.mirrored.get(topic, topic)
            if plain == topic or topic in snapshot.originals:
                continue
            here, there = snapshot.target.topics.get(plain), snapshot.source.topics.get(plain)
            model = there or snapshot.target.topics.get(topic)
            found.append(
                LocalTopic(
                    topic=plain,
                    exists=here is not None,
                    partitions=here.partitions if here is not None else None,
                    expected_partitions=model.partitions if model is not None else None,
                    committed=plain in committed,
                )
            )
        return tuple(found)
