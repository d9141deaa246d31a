"""Commits a plan: re-checks each group right before its write, journals, writes, reads back.

The order for every batch of groups: look again, decide by what is true now, put every intent
(with what stood before) on disk, send one commit a group, note the answers, read back. What
matters of a change is decided purely (``failover.planning.drift``); what became of the
execution is derived from its journal (``failover.execution.record``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from failover.errors import ClusterError
from failover.execution.aims import freed
from failover.execution.commits import to_commit
from failover.execution.recheck import Writes, decide, left, waits
from failover.execution.record import build
from failover.execution.rehearsal import held, look_at_place
from failover.execution.settle import landed
from failover.execution.summary import finished
from failover.kafka.port import Cluster, CommitResults
from failover.model.execution import Execution, Outcome
from failover.model.groups import Commit, GroupInfo
from failover.model.names import Fault, TopicPartition
from failover.model.plan import Action, Plan, PlannedGroup
from failover.planning.drift import EarlierWrite, TargetNow, active_text, done, synced
from failover.state.journal import Answer, Event, Intent, Left, Notebook, ReadBack, Started, Warned

BATCH = 500
"""Groups re-checked, journalled and committed together: the re-check is then about a second old."""

POLL_SECONDS = 1.0
"""Pause between two looks at groups that a wait is for."""

RETRIES = 2
"""How often a group is tried again that the broker called active and that has no members right after."""

_SESSION_LIMIT = "group.max.session.timeout.ms"

Progress = Callable[[str, int, int], None]
"""Is told a label, how many are done, and of how many."""

Commits = dict[TopicPartition, Commit]


class Timing(msgspec.Struct, frozen=True):
    """Says how long to watch (``settle``) and to wait for refused groups (``wait``), in seconds."""

    settle: float = 6.0
    wait: float = 0.0


class Executor:
    """Runs one execution of a plan against the target; its state is the journal and what it saw.

    ``clock`` gives the time now (UTC, aware), ``sleep`` pauses; both are passed in so that tests
    decide them. ``earlier``: the journal's events so far, when it is resumed. ``writes``: what earlier
    executions of the plan wrote, this one included. ``stop`` says why to end early ("" to go on); it
    is asked between batches, so that what was sent is always read back first. Raises ``StalePlan``
    before anything is written when the whole plan is void,
    ``ClusterUnreachable`` when the target falls silent; the journal then says where it stood.
    """

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        journal: Notebook,
        *,
        clock: Callable[[], datetime],
        sleep: Callable[[float], None],
        progress: Progress | None = None,
        earlier: Iterable[Event] = (),
        writes: Mapping[str, Writes] | None = None,
        stop: Callable[[], str] | None = None,
    ) -> None:
        self.plan = plan
        self.cluster = cluster
        self.journal = journal
        self.clock = clock
        self.sleep = sleep
        self.progress = progress or _silent
        self.events: list[Event] = list(earlier)
        self.writes = writes or {}
        self.stop = stop or _never
        self._intents: dict[str, Intent] = {}
        self._refused: set[str] = set()
        self._held = held(plan, self.writes)
        self._session_limit: str | None = None
        self._done = 0
        self._total = 0

    def run(self, started: Started, timing: Timing, warnings: Sequence[str] = ()) -> Execution:
        """Executes the selected groups and gives the record of what became of them, ``warnings`` included."""
        self._note(started)
        for warning in warnings:
            self._note(Warned(started.at, warning))
        self.journal.sync()
        if started.when_free:
            self.plan = freed(self.plan)
        wanted = set(started.selected)
        groups = [group for group in self.plan.groups if group.group in wanted and _has_commits(group)]
        self._total = len(groups)
        try:
            if groups:
                self._run(groups, timing)
        except ClusterError as error:
            self._note(Warned(self.clock(), error.message))
            # An unknown outcome is the graver news; otherwise the silent target is what to report.
            if build(self.plan, self.events).outcome is not Outcome.UNKNOWN:
                raise
        finally:
            self._note(finished(build(self.plan, self.events), self.clock(), self.stop()))
            self.journal.sync()
        return build(self.plan, self.events)

    def _run(self, groups: Sequence[PlannedGroup], timing: Timing) -> None:
        moving = self._watch(groups, timing.settle)
        place = look_at_place(self.cluster, groups)
        deadline = self.clock() + timedelta(seconds=timing.wait)
        if self.stop():
            return
        if self.plan.options.all_or_nothing and self._hold_all_back(groups, place, moving):
            return
        pending = list(groups)
        while pending:
            active: list[PlannedGroup] = []
            for start in range(0, len(pending), BATCH):
                active += self._batch(pending[start : start + BATCH], place, moving)
                if self.stop():
                    return
            if not active or self.clock() >= deadline:
                return
            self.progress("waiting for groups", self._total - len(active), self._total)
            self.sleep(POLL_SECONDS)
            if self.stop():
                return
            pending = active
            place = look_at_place(self.cluster, pending)  # a wait may last for hours

    def _watch(self, groups: Sequence[PlannedGroup], settle: float) -> dict[str, str]:
        """Watches that commits stand still; gives a text for each group whose commits do not.

        A client with manual assignment commits though its group has no members: what would be
        written now it overwrites next. MM2's own group offset sync also moves commits of empty
        groups: as long as it stays at or below the plan that is harmless here.
        """
        if settle <= 0 or self.plan.options.allow_moving_commits:
            return {}
        names = [group.group for group in groups]
        earlier = self._committed(names)
        end = self.clock() + timedelta(seconds=settle)
        while (remaining := (end - self.clock()).total_seconds()) > 0 and not self.stop():
            self.progress("watching that commits stand still", int(settle - remaining), int(settle))
            self.sleep(min(remaining, POLL_SECONDS))
        later = self._committed(names)
        by_mm2 = synced(self.plan)
        moving: dict[str, str] = {}
        for group in groups:
            before, after = earlier.get(group.group, {}), later.get(group.group, {})
            if isinstance(before, Fault) or isinstance(after, Fault):
                continue
            text = _movement(group, before, after, self.writes.get(group.group, {}), synced=by_mm2)
            if text:
                moving[group.group] = text
        return moving

    def _batch(
        self, groups: Sequence[PlannedGroup], place: TargetNow, moving: Mapping[str, str], *, again: int = RETRIES
    ) -> list[PlannedGroup]:
        """Does one batch; gives the groups that were left only because they are active now.

        A group whose commit the broker refused for its members and that has none right after (one
        that just left may still be known to the coordinator) is tried ``again`` so often.
        """
        names = [group.group for group in groups]
        infos = self.cluster.describe_groups(names)
        committed = self._committed(names)
        intents: dict[str, Intent] = {}
        active: list[PlannedGroup] = []
        for group in groups:
            event = self._decide(group, infos, committed, place, moving)
            if waits(event):
                event = self._with_limit(event, infos[group.group])
            self._note(event)
            if isinstance(event, Intent):
                intents[group.group] = event
            if waits(event):
                active.append(group)
        self._intents |= intents
        self._refused -= intents.keys()
        self.journal.sync()
        sent = {
            name: {
                TopicPartition(p.topic, p.partition): to_commit(p.planned)
                for p in intent.partitions
                if p.planned is not None
            }
            for name, intent in intents.items()
            if intent.partitions
        }
        became_active: list[str] = []
        self._done += len(groups) - len(sent)
        try:
            if sent:
                self.cluster.commit(sent, lambda name, results: self._answered(name, results, became_active))
        finally:
            self.journal.sync()
        self._read_back(list(intents))
        free = self._explain_active(became_active, last=not again)
        by_name = {group.group: group for group in groups}
        active += [by_name[name] for name in became_active if name not in free]
        if free:
            self.sleep(POLL_SECONDS)
            active += self._batch([by_name[name] for name in free], place, moving, again=again - 1)
        return active

    def _committed(self, names: Sequence[str]) -> dict[str, dict[TopicPartition, Commit] | Fault]:
        """Reads what stands; nothing at all where something stood is asked about again."""
        return self.cluster.committed(names, lambda name, found: bool(found) or name not in self._held)

    def _hold_all_back(self, groups: Sequence[PlannedGroup], place: TargetNow, moving: Mapping[str, str]) -> bool:
        """Says whether ``all_or_nothing`` forbids every write, and notes why for each group."""
        names = [group.group for group in groups]
        infos, committed = self.cluster.describe_groups(names), self._committed(names)
        decided = [self._decide(group, infos, committed, place, moving) for group in groups]
        bad = [event for event in decided if isinstance(event, Left) or event.refused]
        for event in decided:
            if not bad:
                continue
            if isinstance(event, Left):
                self._note(event)
            else:
                text = f"held back, since all or nothing was asked for and {bad[0].group} cannot be done whole"
                info = infos[event.group]
                self._note(left(info, self.clock(), "all-or-nothing", text, stale=bool(event.refused)))
        return bool(bad)

    def _decide(
        self,
        group: PlannedGroup,
        infos: Mapping[str, GroupInfo],
        committed: Mapping[str, Commits | Fault],
        place: TargetNow,
        moving: Mapping[str, str],
    ) -> Intent | Left:
        name = group.group
        return decide(
            self.plan,
            group,
            infos[name],
            committed[name],
            place,
            at=self.clock(),
            moving=moving.get(name, ""),
            earlier=self.writes.get(name),
        )

    def _answered(self, name: str, results: CommitResults | Fault, became_active: list[str]) -> None:
        """Notes a group's answer as it comes."""
        if isinstance(results, Fault):
            self._note(Answer(self.clock(), name, fault=str(results), lost=results.number < 0))
            faults = [results]
        else:
            refused = [(tp.topic, tp.partition, str(fault)) for tp, fault in results.items() if fault is not None]
            self._note(Answer(self.clock(), name, tuple(refused)))
            faults = [fault for fault in results.values() if fault is not None]
        if any(fault.number > 0 for fault in faults):
            self._refused.add(name)
        if any(fault.name == "UNKNOWN_MEMBER_ID" for fault in faults):
            became_active.append(name)
        self._done += 1
        self.progress("committing", min(self._done, self._total), self._total)

    def _read_back(self, names: Sequence[str]) -> None:
        """Reads what the target holds now; a target that fell silent leaves the outcome unknown."""
        if not names:
            return
        try:
            committed = self.cluster.committed(names, landed(self._intents, self._refused))
            moved_on = {name for name in names if self._beyond(name, committed.get(name))}
            members = self.cluster.describe_groups(moved_on) if moved_on else {}
        except ClusterError as error:
            for name in names:
                self._note(ReadBack(self.clock(), name, fault=error.message))
            self.journal.sync()
            raise
        for name in names:
            commits = committed[name]
            if isinstance(commits, Fault):
                self._note(ReadBack(self.clock(), name, fault=str(commits)))
                continue
            found = tuple((tp.topic, tp.partition, commit.offset) for tp, commit in commits.items())
            count = len(members[name].members) if name in members else 0
            self._note(ReadBack(self.clock(), name, found, count))
        self.journal.sync()

    def _beyond(self, name: str, commits: Commits | Fault | None) -> bool:
        """Says whether some partition no longer stands where this execution put it."""
        if commits is None or isinstance(commits, Fault):
            return False
        return any(
            (found := commits.get(TopicPartition(p.topic, p.partition))) is not None
            and p.planned is not None
            and found.offset > p.planned.offset
            for p in self._intents[name].partitions
        )

    def _explain_active(self, names: Sequence[str], *, last: bool) -> list[str]:
        """Names the members of groups that became active between the re-check and the commit.

        Gives the groups that have none any more, unless this is the ``last`` attempt.
        """
        free: list[str] = []
        for name, info in (self.cluster.describe_groups(names) if names else {}).items():
            if info.inactive and not last:
                free.append(name)
                continue
            text = f"{active_text(name, self.cluster.alias, info.state, info.members)} (they joined right before)"
            self._note(self._with_limit(left(info, self.clock(), "group-active", text), info))
        self.journal.sync()
        return free

    def _with_limit(self, event: Intent | Left, info: GroupInfo) -> Intent | Left:
        """Adds how long a static member may stay though its process is gone: no API tells its own timeout."""
        if not isinstance(event, Left) or not any(member.group_instance_id for member in info.members):
            return event
        if self._session_limit is None:
            found = self.cluster.broker_settings([_SESSION_LIMIT]).get(_SESSION_LIMIT, "")
            self._session_limit = f"{int(found) // 60_000} minutes" if found.isdigit() else "30 minutes by default"
        text = (
            f"{event.message}; a static member whose process is gone stays for its session timeout, at most "
            f"{self._session_limit} here: failover evict --group NAME --static-only removes it"
        )
        return msgspec.structs.replace(event, message=text)

    def _note(self, event: Event) -> None:
        self.events.append(event)
        self.journal.append(event)


def _silent(_label: str, _done: int, _total: int) -> None:
    """Is the progress of an execution nobody watches."""


def _never() -> str:
    return ""


def _has_commits(group: PlannedGroup) -> bool:
    return any(p.action is Action.COMMIT for p in group.partitions)


def _movement(
    group: PlannedGroup, before: Commits, after: Commits, writes: Mapping[TopicPartition, EarlierWrite], *, synced: bool
) -> str:
    """Describes commits that moved between two looks, "" when none did in a way that matters."""
    for planned in group.partitions:
        tp = TopicPartition(planned.topic, planned.partition)
        old, new = before.get(tp), after.get(tp)
        if new is None or (old is not None and old.offset == new.offset):
            continue
        if (write := writes.get(tp)) is not None and done(write, new.offset):
            continue
        if synced and planned.offset is not None and new.offset <= planned.offset:
            continue
        was = "nothing" if old is None else str(old.offset)
        return (
            f"the commit of {group.group} on {tp} moved from {was} to {new.offset} while the group has no members: "
            "a client with manual assignment seems live, or MirrorMaker 2 syncs this group's offsets"
        )
    return ""
