"""Commits as a file holds them, byte for byte."""

from __future__ import annotations

import base64

from failover.model.execution import CommitRecord
from failover.model.groups import Commit
from failover.model.plan import PlannedPartition


def to_record(commit: Commit) -> CommitRecord:
    """Writes a commit down for a file; metadata that is not UTF-8 goes in base64."""
    try:
        return CommitRecord(commit.offset, commit.metadata.decode(), commit.leader_epoch)
    except UnicodeDecodeError:
        encoded = base64.b64encode(commit.metadata).decode()
        return CommitRecord(commit.offset, commit.metadata.decode(errors="replace"), commit.leader_epoch, encoded)


def to_commit(record: CommitRecord) -> Commit:
    """Reads a commit from a file."""
    if record.metadata_base64 is not None:
        return Commit(record.offset, base64.b64decode(record.metadata_base64), record.leader_epoch)
    return Commit(record.offset, record.metadata.encode(), record.leader_epoch)


def planned_commit(partition: PlannedPartition) -> Commit:
    """Gives the commit a plan asks for. The source's leader epoch is never part of it."""
    if partition.offset is None:
        raise ValueError(f"{partition.topic}-{partition.partition} has nothing to commit")
    if partition.metadata_base64 is not None:
        return Commit(partition.offset, base64.b64decode(partition.metadata_base64))
    return Commit(partition.offset, partition.metadata.encode())
