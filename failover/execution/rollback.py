"""Rolls an execution back: the same order as executing (look, intent on disk, write, read back)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from failover.errors import ClusterError
from failover.execution.commits import to_commit
from failover.execution.recheck import left
from failover.execution.record import ACTIVE, build_undo
from failover.execution.rehearsal import rehearsed
from failover.execution.settle import read_back
from failover.execution.summary import finished
from failover.execution.undo import decide_undo
from failover.kafka.port import Cluster, CommitResults
from failover.model.execution import ExecutedGroup, Execution, Outcome, Rehearsal
from failover.model.names import Fault, TopicPartition
from failover.planning.drift import active_text
from failover.state.journal import Answer, Event, Intent, Left, Notebook, Started, Warned

BATCH = 500

Progress = Callable[[str, int, int], None]
Answered = Callable[[str, CommitResults | Fault, Iterable[TopicPartition]], None]


def written_groups(execution: Execution) -> list[ExecutedGroup]:
    """Gives the groups in which an execution wrote something."""
    return [group for group in execution.groups if any(p.sent for p in group.partitions)]


def rehearse_undo(undone: Execution, cluster: Cluster, at: datetime) -> Rehearsal:
    """Decides the way back of every group by what is true now; writes nothing."""
    decided = _decide(cluster, written_groups(undone), at)
    held = [event for event in decided if isinstance(event, Left) or (event.refused and not event.partitions)]
    odd = any(isinstance(event, Left) or event.refused for event in decided)
    code = 3 if decided and len(held) == len(decided) else 4 if odd else 0
    groups = tuple(rehearsed(event) for event in decided)
    return Rehearsal(undone.plan_id, at, undone.target_alias, groups, code, undone.id)


def _decide(cluster: Cluster, groups: Sequence[ExecutedGroup], at: datetime) -> list[Intent | Left]:
    names = [group.group for group in groups]
    if not names:
        return []
    # each was written: nothing at all is what a broker says that has just taken the group over
    infos, commits = cluster.describe_groups(names), cluster.committed(names, lambda _, found: bool(found))
    return [decide_undo(g, infos[g.group], commits[g.group], cluster.alias, at) for g in groups]


class Undoer:
    """Runs one roll back; its state is the journal. See ``failover.execution.commit.Executor`` for the arguments."""

    def __init__(
        self,
        undone: Execution,
        cluster: Cluster,
        journal: Notebook,
        *,
        clock: Callable[[], datetime],
        progress: Progress,
        stop: Callable[[], str],
    ) -> None:
        self.undone = undone
        self.cluster = cluster
        self.journal = journal
        self.clock = clock
        self.progress = progress
        self.stop = stop
        self.events: list[Event] = []

    def run(self, started: Started, warnings: Sequence[str] = ()) -> Execution:
        """Rolls back what can be and gives the record of it, ``warnings`` included."""
        self._note([started, *(Warned(started.at, warning) for warning in warnings)])
        groups = written_groups(self.undone)
        try:
            for start in range(0, len(groups), BATCH):
                if self.stop():
                    break
                self._batch(groups[start : start + BATCH])
                self.progress("rolling back", min(start + BATCH, len(groups)), len(groups))
        except ClusterError as error:
            self._note([Warned(self.clock(), error.message)])
            if self._record().outcome is not Outcome.UNKNOWN:
                raise
        finally:
            self._note([finished(self._record(), self.clock(), self.stop())])
        return self._record()

    def _record(self) -> Execution:
        return build_undo(self.undone, self.events)

    def _batch(self, groups: Sequence[ExecutedGroup]) -> None:
        decided = _decide(self.cluster, groups, self.clock())
        self._note(decided)
        intents = [event for event in decided if isinstance(event, Intent)]
        faults: dict[str, list[tuple[str, int, str]]] = {}
        lost: dict[str, bool] = {}

        def answered(name: str, results: CommitResults | Fault, asked: Iterable[TopicPartition]) -> None:
            kept = faults.setdefault(name, [])
            if isinstance(results, Fault):
                kept += [(tp.topic, tp.partition, str(results)) for tp in asked]
                lost[name] = lost.get(name, False) or results.number < 0
            else:
                kept += [(tp.topic, tp.partition, str(fault)) for tp, fault in results.items() if fault is not None]

        try:
            self._restore(intents, answered)
            self._delete(intents, answered)
        finally:
            # A lost answer tells nothing of any partition: what is read back then decides.
            self._note(
                [
                    Answer(self.clock(), name, lost=True) if lost.get(name) else Answer(self.clock(), name, tuple(kept))
                    for name, kept in faults.items()
                ]
            )
        if intents:
            refused = [name for name, kept in faults.items() if kept and not lost.get(name)]
            self._note(read_back(self.cluster, intents, self.clock(), refused=refused))
        self._explain([name for name, kept in faults.items() if any(text.startswith(ACTIVE) for _, _, text in kept)])

    def _explain(self, names: Sequence[str]) -> None:
        """Names the members of groups that became active between the look and the write."""
        infos = self.cluster.describe_groups(names) if names else {}
        self._note(
            [
                left(
                    info, self.clock(), "group-active", active_text(name, self.cluster.alias, info.state, info.members)
                )
                for name, info in infos.items()
            ]
        )

    def _restore(self, intents: Sequence[Intent], answered: Answered) -> None:
        commits = {
            intent.group: {
                TopicPartition(p.topic, p.partition): to_commit(p.planned)
                for p in intent.partitions
                if p.planned is not None
            }
            for intent in intents
        }
        sent = {name: offsets for name, offsets in commits.items() if offsets}
        if sent:
            self.cluster.commit(sent, lambda name, results: answered(name, results, sent[name]))

    def _delete(self, intents: Sequence[Intent], answered: Answered) -> None:
        removed = {
            intent.group: [TopicPartition(p.topic, p.partition) for p in intent.partitions]
            for intent in intents
            if intent.removes
        }
        for name, fault in (self.cluster.delete_groups(list(removed)) if removed else {}).items():
            answered(name, fault if fault is not None else {}, removed[name])
        offsets = {
            intent.group: [TopicPartition(p.topic, p.partition) for p in intent.partitions if p.planned is None]
            for intent in intents
            if not intent.removes
        }
        offsets = {name: partitions for name, partitions in offsets.items() if partitions}
        for name, results in (self.cluster.delete_offsets(offsets) if offsets else {}).items():
            answered(name, results, offsets[name])

    def _note(self, events: Sequence[Event]) -> None:
        self.events += events
        for event in events:
            self.journal.append(event)
        self.journal.sync()
