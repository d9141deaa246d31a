"""The reason codes of a plan: why a partition or a group is committed, left or refused."""

REASONS: dict[str, tuple[str, str, str, str, str]] = {
    "translated": (
        "reason",
        "committed at the translated offset",
        "The group's position on the source was found on the target, and that offset is committed.",
        "Nothing.",
        "source commit 500, offset sync 500 -> 490: commits 490, re-reads 0",
    ),
    "at-log-end": (
        "reason",
        "committed at the end of the target's log",
        "The group has consumed all that there is; or --allow-unverified was given for a position beyond "
        "the log end or one that nothing places; "
        "or --missing names the end, or a time after the last record.",
        "Nothing, unless you gave one of these options: then records may be passed over (SKIP, UNKNOWN).",
        "source empty at 500, target [0,0): commits 0",
    ),
    "at-log-start": (
        "reason",
        "committed at the start of the target's log by --missing",
        "No position is known, and you asked to start at the oldest record there is, or at a time before it. Nothing "
        "is skipped.",
        "Expect the whole partition to be read.",
        "no checkpoint, target [40,1000), --missing earliest: commits 40",
    ),
    "at-time": (
        "reason",
        "committed at the first record of the time that --missing names",
        "No position is known, and you said from when on to read (at=TIME or ago=D). What lies before counts as "
        "skipped unless the source tells that it was read; that takes --allow-skip.",
        "Read SKIP: so many records may never be read.",
        "no checkpoint, --missing ago=1h: 640 is the first record of the last hour, commits 640",
    ),
    "gone-back": (
        "reason",
        "committed before the translated offset by --rewind-by",
        "You asked to go back by a time, counted from the record the group consumed last. What lies between comes "
        "again.",
        "Expect RE-READ to be that much larger.",
        "translated 812, the record before it is of 03:10; --rewind-by 5m: commits 640, the first record from 03:05 on",
    ),
    "raised-to-log-start": (
        "reason",
        "the translated offset lies before the target's log start",
        "Retention deleted the records from the translated offset on; the log start is the first that is left. "
        "Records in between are gone on the target, read or not.",
        "Keep retention on the target longer than the groups' lag. If the source is up, it may still hold the records.",
        "translated 480, target [600,1000): commits 600",
    ),
    "local-topic": (
        "reason",
        "a commit for the topic under its plain name",
        "After the failover producers write to the plain name on the target; the group starts there at its beginning.",
        "Nothing.",
        "--local-topics earliest: orders-0 is committed at its log start",
    ),
    "already-there": (
        "reason",
        "the target's commit is at the translated offset already",
        "There is nothing to write: MM2's group sync or an earlier execution put it there.",
        "Nothing.",
        "translated 480, standing commit 480",
    ),
    "would-rewind": (
        "reason",
        "the target's commit stands AHEAD of the translated offset",
        "Committing would move the group back. Left as it is, its consumers start at the standing commit and pass over "
        "the records in between, unless they consumed them on the target (ahead_because says what is known).",
        "Consumed there already: leave it. Otherwise: failover plan --allow-rewind moves the commit back.",
        "translated 480, standing commit 5480: skips up to 5,000 records",
    ),
    "no-checkpoint": (
        "reason",
        "no position of the group is known for this partition",
        "MM2 has written no checkpoint that fits, and nothing else places the source's commit. Without a standing "
        "commit the consumer's auto.offset.reset decides: latest would skip everything that is there.",
        "Wait for a checkpoint (emit.checkpoints.interval.seconds; a new group up to refresh.groups.interval.seconds), "
        "or --missing earliest.",
        "orders-2 has 5,000 records on the target and no checkpoint of payments",
    ),
    "source-never-committed": (
        "reason",
        "the group never committed this partition on the source",
        "There is no position to move. On the target as on the source its auto.offset.reset decides.",
        "Nothing, or --missing earliest.",
        "a group reads 3 of 4 partitions; the fourth has never had a record",
    ),
    "source-offset-expired": (
        "reason",
        "a checkpoint exists, but the source holds no commit any more",
        "The commit expired (offsets.retention.minutes), or somebody deleted it. On the source the group would start "
        "by auto.offset.reset; the old checkpoint is not used in its place.",
        "--missing earliest starts it at the log start; or leave it.",
        "the group stopped 8 days ago; the brokers keep offsets for 7",
    ),
    "not-mirrored": (
        "reason",
        "nothing of this partition was mirrored",
        "The group has a commit on the source, but the target's partition never got a record: the topic filters "
        "exclude it, or the mirror has not come to it.",
        "See whether the topic is in MM2's topics setting and its source connector runs; then plan again.",
        "source commit 500, target [0,0)",
    ),
    "topic-missing": (
        "reason",
        "the mirrored topic does not exist on the target",
        "The group has a position for a topic that the target does not have. This tool creates no topics.",
        "See whether MM2 runs and whether its replication policy is the same for every connector (naming-mismatch).",
        "a checkpoint for primary.orders-0; the target has only orders",
    ),
    "partition-missing": (
        "reason",
        "the target's topic has fewer partitions than the source's",
        "The source's topic grew and MM2 has not yet added the partitions (refresh.topics.interval.seconds).",
        "Wait for MM2's next refresh or add them by hand, then plan again.",
        "orders has 8 partitions, primary.orders has 6: orders-6 and orders-7",
    ),
    "older-than-first-sync": (
        "reason",
        "the group's commit is older than everything known of the mapping",
        "The group stands before the first offset sync, so its place on the target is unknown: MM2 began later, or its "
        "history was compacted.",
        "--missing earliest starts it at the log start, which skips nothing; --allow-unverified at the log end.",
        "source commit 100, the first sync is 5000 -> 0",
    ),
    "group-active": (
        "reason",
        "the group has members on the target",
        "Kafka refuses a commit from outside for such a group. Every state but Empty and Dead counts as active. A "
        "static member stays listed until its session timeout although its process is gone (up to 30 minutes).",
        "Stop the members that are named (client id and host), or let execute wait: failover execute --wait 5m.",
        "ledger is Stable: 2 members: app-1 10.0.3.7, app-2 10.0.3.9",
    ),
    "group-state-unknown": (
        "reason",
        "the target did not tell the group's state",
        "No answer is never taken for an empty or new group: it is treated as active.",
        "Run failover plan again; if it stays, look at the group's coordinator.",
        "DescribeGroups of payments: COORDINATOR_NOT_AVAILABLE",
    ),
    "group-unknown": (
        "reason",
        "the group was found nowhere",
        "Neither cluster knows the name and no checkpoint has it. Committing would create a group nobody uses.",
        "Check the spelling; --create-group if you mean it.",
        "failover plan --group payments-svr, where the group is payments-svc",
    ),
    "group-type-unsupported": (
        "reason",
        "the id belongs to a share or streams group",
        "Its positions are no consumer offsets and cannot be committed.",
        "Use another group id on the target, or remove that group there.",
        "group jobs is a share group on standby",
    ),
    "progressed": (
        "reason",
        "consumers went on from what was written",
        "Rolling back would make them read again what they consumed since, so the partition is left where it is.",
        "Nothing, if they are to go on here. To go back all the same: stop them, and plan the other direction.",
        "payments went on from 5000 to 5040 on primary.orders-3: going back would undo 40 records",
    ),
    "rolled-back": (
        "reason",
        "the partition stands as before the execution",
        "What stood before was written again; where nothing stood, the commit was deleted.",
        "Plan again before consumers start: failover plan.",
        "primary.orders-3: 5000 -> 4200",
    ),
    "commits-moving": (
        "reason",
        "the group's commits move although it has no members",
        "A consumer with manual assignment (assign, Flink, Spark) has no membership; it would write over the commit. "
        "Steps to MM2's own checkpoints do not count.",
        "Stop that client. A group whose consumers stopped a moment ago: plan again. --allow-moving-commits goes on.",
        "orders-0 moved from 100 to 140 in 6 s with no members",
    ),
    "beyond-log-end": (
        "reason",
        "the translated offset lies beyond the end of the target's log",
        "An old MM2 may have copied the source's number untranslated, or the topic was truncated or made again. "
        "Committed, consumers would fall out of range.",
        "Compare the topic on both sides. --allow-unverified commits the log end instead.",
        "checkpoint 48211 -> 48211, target [0,0)",
    ),
    "target-recreated": (
        "reason",
        "the target's topic was deleted and made again",
        "What is known of the mapping belongs to the old topic.",
        "Wait for checkpoints of the new topic, then plan again. With the source gone: --allow-unverified takes the "
        "new topic's end, with --missing earliest its start.",
        "primary.orders has another topic id than in the last plan",
    ),
    "target-truncated": (
        "reason",
        "the log start passed the planned offset since the plan",
        "Retention removed records from the planned offset on; auto.offset.reset would decide there.",
        "failover plan again: it raises the offset to the log start.",
        "planned 480, the log starts at 600 now",
    ),
    "two-sources": (
        "reason",
        "two sources mirror into this partition",
        "Under one name two clusters' records mix, so an offset of one means nothing to the other. failover replicate"
        " copies such a topic only for the flow that alone has copied it before.",
        "Use a replication policy that keeps the names apart, or exclude the topic in all flows but one.",
        "us->hub and eu->hub both write orders-0 under IdentityReplicationPolicy",
    ),
    "same-cluster": (
        "reason",
        "both aliases lead to one cluster",
        "The cluster ids are equal: a commit would hit the source's own groups.",
        "Correct bootstrap.servers of one of the aliases.",
        "primary and standby both answer with cluster id 4L6g3nShT-eMCtK--X86sw",
    ),
    "source-active": (
        "reason",
        "the group still has members on the source",
        "What they consume from now on is read again on the target. With --require-source-inactive it is refused.",
        "For a planned switchover stop them first and plan again.",
        "payments is Stable on primary with 4 members",
    ),
    "not-authorized": (
        "reason",
        "a right is missing",
        "Committing needs READ on the group and READ on each topic; reading needs DESCRIBE and READ on MM2's topics.",
        "Grant it to the user this tool connects with; failover.cluster.<alias>.* sets another user.",
        "GROUP_AUTHORIZATION_FAILED for payments on standby",
    ),
    "target-unavailable": (
        "reason",
        "the target gave no answer for it",
        "The partition has no leader, its log range or the group's offsets could not be read.",
        "Wait until the broker is back, then plan again.",
        "primary.orders-3 has no leader",
    ),
    "below-precision": (
        "reason",
        "the position is known less precisely than --precision asks",
        "The translation is right but may re-read more than you accept.",
        "Lower --precision, or wait for newer syncs and checkpoints.",
        "--precision exact, and only a checkpoint is known",
    ),
    "all-or-nothing": (
        "reason",
        "withheld, since another partition of the plan cannot be committed",
        "--all-or-nothing writes nothing at all unless every partition of every group in the plan can be written.",
        "Settle the other partition, plan without its group (--exclude-group), or leave the option out.",
        "orders-7 would rewind, so the other 11 partitions are withheld, and the other groups too",
    ),
    "locked": (
        "reason",
        "another execution on this target is at work",
        "A live holder has the lock; two executions at once could undo each other.",
        "Ask whoever is named. A dead holder's lock ends by itself.",
        "kim on host-2 executes plan 7f3a1c",
    ),
    "not-reached": (
        "reason",
        "the execution ended before it came to this group",
        "Nothing was sent for it.",
        "failover execute --resume RUN, or plan again.",
        "interrupted after 400 of 1,000 groups",
    ),
    "moved": (
        "reason",
        "the commit moved since the plan, without effect on it",
        "It stands below the planned offset still, so the commit overtakes it.",
        "Nothing.",
        "was 100, is 300 now, planned 480",
    ),
}
