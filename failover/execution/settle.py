"""Settles what an execution left unknown: reads the target again and notes what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from failover.execution.runs import load_run
from failover.execution.summary import finished
from failover.kafka.port import Cluster
from failover.model.execution import Execution, Status
from failover.model.names import Fault
from failover.state.journal import Journal, ReadBack
from failover.state.runs import JOURNAL


def unknown_groups(execution: Execution) -> list[str]:
    """Names the groups with a partition whose outcome is unknown."""
    return [group.group for group in execution.groups if any(p.status is Status.UNKNOWN for p in group.partitions)]


def settle(folder: Path, execution: Execution, cluster: Cluster, at: datetime) -> Execution:
    """Reads unknown groups back, notes it in the journal, and gives the record as it is then.

    Raises ``ClusterUnreachable`` when the target is still silent, ``StateError`` when another process
    writes the journal (then the execution is under way and will tell itself).
    """
    names = unknown_groups(execution)
    found = read_back(cluster, names, at, late=True)
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


def read_back(cluster: Cluster, names: Sequence[str], at: datetime, *, late: bool = False) -> list[ReadBack]:
    """Reads what the target holds for groups, and how many members they have by then."""
    committed, infos = cluster.committed(names), cluster.describe_groups(names)
    events: list[ReadBack] = []
    for name in names:
        commits = committed[name]
        if isinstance(commits, Fault):
            events.append(ReadBack(at, name, fault=str(commits), late=late))
            continue
        found = tuple((tp.topic, tp.partition, commit.offset) for tp, commit in commits.items())
        events.append(ReadBack(at, name, found, len(infos[name].members), late=late))
    return events
