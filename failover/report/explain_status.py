"""The findings and words of `failover status` and `failover health`."""

STATUS: dict[str, tuple[str, str, str, str, str]] = {
    "source-silent": (
        "finding",
        "the source gives no answer",
        "What is shown are its last known values, with their time. It may be gone, or only unreachable from here.",
        "If it is gone: failover plan. Else look at the network and the brokers.",
        "primary gives no answer: connection refused",
    ),
    "groups-not-ready": (
        "finding",
        "groups could not be moved if the source died now",
        "Without the source a group is placed by what the target holds: MM2's checkpoints, exact ones, offset syncs "
        "kept there. These groups have none of it, or are held back there. An error when no group is ready.",
        "failover plan --source-down --group NAME says why; failover checkpoint keeps exact positions on the target.",
        "1 of 50 groups would be left behind without primary (newer-than-checkpoints)",
    ),
    "replication-lag": (
        "finding",
        "the mirror is behind",
        "Many records wait for their copies, and the oldest has waited long. An error from 10,000 records and 10 "
        "minutes on.",
        "See whether the mirror runs, then what slows it: tasks.max, batch sizes, network, the target's brokers.",
        "81,200 records of 4 partitions wait for their copies, the oldest for 12 min",
    ),
    "heartbeat-stale": (
        "finding",
        "mirrored heartbeats have stopped",
        "Heartbeats are written on the source and mirrored as any topic. Either nobody writes them any more, or "
        "nothing is mirrored.",
        "See the lag: if it grows the mirror stands still, else the heartbeat connector does.",
        "the newest heartbeat mirrored to standby is 5 min old",
    ),
    "heartbeat-missing": (
        "finding",
        "no heartbeat was ever mirrored",
        "They may be left out; then nothing proves that an idle mirror is alive.",
        "Switch on emit.heartbeats.enabled for the flow that ends on the source.",
        "no heartbeat of primary is mirrored to standby",
    ),
    "tasks-idle": (
        "finding",
        "more tasks than partitions",
        "MM2 gives each task whole partitions, so tasks beyond their number do nothing.",
        "Lower tasks.max, or leave it.",
        "tasks.max is 16 and only 4 partitions are mirrored",
    ),
    "connector-not-running": (
        "finding",
        "Kafka Connect says that a connector does not run",
        "The state and the first line of the failure are Connect's own. An error when it or a task failed.",
        "failover connect restart NAME, once what failed is settled.",
        "connector a->b.MirrorSourceConnector is RUNNING, its tasks FAILED: RecordTooLargeException",
    ),
    "known-by": (
        "column",
        "how it is known how far a partition is mirrored",
        "sync: an offset sync and the target's log end. position: what the mirror kept for its next start. checkpoint: "
        "a group's checkpoint, which may be too low. kept: what was kept on the target while the source was up. "
        "nothing: nobody can tell.",
        "Let failover read the offset syncs; failover checkpoint keeps the source's ends.",
        "KNOWN BY  position",
    ),
    "mirrored-to": (
        "column",
        "the first source offset that the target does not have",
        "Everything before it is on the target. See known-by for how sure that is.",
        "Nothing.",
        "MIRRORED TO  48,211",
    ),
}
