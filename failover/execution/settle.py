"""Settles what an execution left unknown: reads the target again and notes what it holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from failover.execution.runs import load_run
from failover.execution.summary import finished
from failover.kafka.port import Cluster, Credible
from failover.model.execution import Execution, Status
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition
from failover.state.journal import IntendedPartition, Intent, Journal, ReadBack, read_journal
from failover.state.runs import JOURNAL


def unknown_groups(execution: Execution) -> list[str]:
    """Names the groups with a partition whose outcome is unknown."""
    return [group.group for group in execution.groups if any(p.status is Status.UNKNOWN for p in group.partitions)]


def settle(folder: Path, execution: Execution, cluster: Cluster, at: datetime) -> Execution:
    """Reads unknown groups back, notes it in the journal, and gives the record as it is then.

    Raises ``ClusterUnreachable`` when the target is still silent, ``StateError`` when another process
    writes the journal (then the execution is under way and will tell itself).
    """
    names = set(unknown_groups(execution))
    intents = {event.group: event for event in read_journal(folder / JOURNAL) if isinstance(event, Intent)}
    found = read_back(cluster, [intent for name, intent in intents.items() if name in names], at, late=True)
    journal = Journal(folder / JOURNAL)
    try:
        for event in found:
            journal.append(event)
        journal.sync()
        settled = load_run(folder)
        journal.append(finished(settled, at, settled.stopped))
        return settled
    finally:
        journal.close()


def read_back(
    cluster: Cluster, intents: Sequence[Intent], at: datetime, *, refused: Collection[str] = (), late: bool = False
) -> list[ReadBack]:
    """Reads what the target holds for groups that were written, and how many members they have by then.

    ``refused``: groups of which the broker refused something.
    """
    names = [intent.group for intent in intents]
    credible = landed({intent.group: intent for intent in intents}, refused)
    committed, infos = cluster.committed(names, credible), cluster.describe_groups(names)
    events: list[ReadBack] = []
    for name in names:
        commits = committed[name]
        if isinstance(commits, Fault):
            events.append(ReadBack(at, name, fault=str(commits), late=late))
            continue
        found = tuple((tp.topic, tp.partition, commit.offset) for tp, commit in commits.items())
        events.append(ReadBack(at, name, found, len(infos[name].members), late=late))
    return events


def landed(intents: Mapping[str, Intent], refused: Collection[str]) -> Credible:
    """Says of what is read back whether every write shows: at its value, or beyond it where consumers went on."""

    def shows(p: IntendedPartition, found: Commit | None) -> bool:
        if p.planned is None or found is None:
            return p.planned is None and found is None
        before = p.before.offset if p.before is not None else None
        return found.offset == p.planned.offset or (found.offset > p.planned.offset and found.offset != before)

    def credible(name: str, found: Mapping[TopicPartition, Commit]) -> bool:
        return name in refused or all(
            shows(p, found.get(TopicPartition(p.topic, p.partition))) for p in intents[name].partitions
        )

    return credible
