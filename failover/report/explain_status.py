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
    "topic-not-mirrored": (
        "finding",
        "a topic of the flow is not on the target",
        "The filters take it and the target does not have it. New topics come within refresh.topics.interval.seconds.",
        "Wait so long; then look for its name in the mirror's log, and at its right to create topics.",
        "1 topic of the flow not on standby: invoices",
    ),
    "topic-unused": (
        "finding",
        "a mirrored topic that nobody uses",
        "No group has committed on it and nothing was written to it for a week.",
        "topics.exclude, if nobody needs it.",
        "3 mirrored topics no group reads and nobody wrote to for a week",
    ),
    "group-stuck": (
        "finding",
        "a group with members does not get on",
        "It has records to read, and its commit is where MM2's last checkpoint of it is, which is old.",
        "See its consumers' logs: a record that fails again and again fails on the target as well.",
        "billing has 4,120 records to read and stands still for 2 h",
    ),
    "offsets-expiring": (
        "finding",
        "a group may lose its offsets on the source soon",
        "It has no members, and has stood still for most of offsets.retention.minutes. MM2's checkpoint stays when "
        "they are gone, and so do exact ones.",
        "Start its consumers, or raise offsets.retention.minutes.",
        "report-monthly last moved 6 days ago, and primary keeps them for 7 days",
    ),
    "config-drift": (
        "finding",
        "a topic and its copy have different settings",
        "A warning where consumers find less on the target: shorter or smaller retention, smaller records, another "
        "cleanup.policy. MM2 copies what is set on the topic itself; where it is not, each cluster's default counts.",
        "Set it on the topic, or on the copy.",
        "orders retention.ms=604800000, its copy 86400000",
    ),
    "internal-topic-large": (
        "finding",
        "an internal topic takes much disk",
        "MM2 and this tool read it whole at every start. Compaction spares the newest segment, 1 GiB by default.",
        "A smaller segment.bytes lets it be compacted sooner.",
        "mm2-offset-syncs.standby.internal on primary takes 3.2 GiB",
    ),
    "internal-topic-policy": (
        "finding",
        "an internal topic is not compacted",
        "What it keeps is deleted in time: positions, and the mirror begins anew; checkpoints, and groups are lost.",
        "cleanup.policy=compact.",
        "mm2-offsets.primary.internal on standby has cleanup.policy=delete",
    ),
    "version-skew": (
        "finding",
        "brokers are of different releases",
        "Within a cluster an upgrade is not finished, or the target is older than the source. Told by the requests "
        "that brokers speak, and so only to a release or two.",
        "Finish the upgrade; upgrade the target first.",
        "standby is older (Kafka 3.7 or 3.8) than primary (4.1 or newer)",
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
