"""A few words for each code, for the WHY column; the long form is in ``explain``."""

from __future__ import annotations

PHRASES = {
    "translated": "",
    "at-log-end": "at the log end",
    "at-log-start": "from the log start (--missing)",
    "at-time": "by time (--missing)",
    "gone-back": "gone back (--rewind-by)",
    "raised-to-log-start": "raised to log start (older records gone)",
    "local-topic": "local topic",
    "already-there": "stands there already",
    "would-rewind": "stands AHEAD",
    "no-checkpoint": "no checkpoint",
    "source-never-committed": "source never committed",
    "source-offset-expired": "commit expired on the source",
    "not-mirrored": "nothing was mirrored",
    "topic-missing": "topic is not on the target",
    "partition-missing": "partition is not on the target",
    "older-than-first-sync": "older than the first offset sync",
    "group-active": "has members",
    "group-state-unknown": "its state on the target could not be read",
    "group-unknown": "found nowhere: check its name",
    "group-type-unsupported": "is no consumer group on the target",
    "commits-moving": "commits move though it has no members",
    "beyond-log-end": "translated offset lies beyond the log end",
    "target-recreated": "target topic was recreated",
    "target-truncated": "log start passed the planned offset",
    "two-sources": "another source mirrors into it too",
    "same-cluster": "both aliases lead to one cluster",
    "not-authorized": "no right to commit (READ on group and topic)",
    "target-unavailable": "target gave no answer",
    "below-precision": "below the asked --precision",
    "locked": "another execution holds the lock",
    "source-active": "still has members on the source",
    "all-or-nothing": "withheld by --all-or-nothing",
    "not-reached": "the execution ended before it",
    "expired": "commit is gone",
    "progressed": "consumers went on since",
    "rolled-back": "",
    "moved": "commit moved",
}


def phrase(code: str) -> str:
    """Gives a few words for a code; a code this version does not know stands for itself."""
    return PHRASES.get(code, code)
