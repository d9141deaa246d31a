"""The findings: what an operator should know beside the offsets themselves."""

FINDINGS: dict[str, tuple[str, str, str, str, str]] = {
    "source-degraded": (
        "finding",
        "the source answers only in part",
        "Some brokers gave no answer, or partitions have no leader. Groups on them are planned from checkpoints.",
        "Plan again once the brokers are back, unless you must go now.",
        "1 of 3 brokers of primary does not answer",
    ),
    "group-excluded": (
        "finding",
        "the flow's filters leave groups out",
        "groups and groups.exclude of the configuration do not take them, so MM2 writes no checkpoints for them.",
        "--group NAME plans one all the same; or change the filters.",
        "console-consumer-123 matches groups.exclude",
    ),
    "topics-left-out": (
        "finding",
        "groups of this plan stand on topics that --topic leaves out",
        "Only the named topics' partitions are planned. On the others the groups' consumers start at a commit that "
        "stands there, or by auto.offset.reset.",
        "Plan the other topics too before these groups' consumers start.",
        "--topic orders: payments also reads refunds",
    ),
    "option-not-applied": (
        "finding",
        "an option was not applied to some partitions",
        "What it asks for would pass over unread records or move a commit back, which takes an option of its own; or "
        "nothing tells the time there.",
        "The finding names the option that accepts it.",
        "--missing ago=1h without --allow-skip: two partitions are left as they are",
    ),
    "checkpoint-stale": (
        "finding",
        "a group went on since its last checkpoint",
        "MM2 writes none for a quiet group, so age alone is no fault; but here the source's commit is beyond it. With "
        "the source silent only the age is told.",
        "See whether MM2's checkpoint connector runs.",
        "checkpoint of 500, 3 h old; the source's commit is 6,000",
    ),
    "checkpoint-unconfirmed": (
        "finding",
        "a checkpoint repeats the source's own number",
        "No offset sync confirms the mapping. MM2 before 3.3 copied offsets untranslated where it had no sync, and "
        "such records stay in the compacted topic.",
        "Compare the topic's ends on both clusters before you execute.",
        "checkpoint 48211 -> 48211 and no sync of the partition",
    ),
    "offsets-pending": (
        "finding",
        "an open transaction holds newer offsets",
        "A transactional consumer has sent offsets and not committed its transaction; the committed ones are used.",
        "Stop it cleanly and plan again, or accept that its last transaction is done again.",
        "settler has pending offsets on 2 partitions",
    ),
    "offsets-expire": (
        "finding",
        "offsets of a group without members are deleted after a time",
        "The target's offsets.retention.minutes counts from the commit for a group that never had members there. "
        "Told also for commits that are old already and that this plan leaves as they are; a plan that commits "
        "begins the time anew.",
        "Start the consumers before that, or raise the setting on the target's brokers (needs a restart).",
        "commits of 2 groups on standby are up to 6.1 days old and dropped after 7 days",
    ),
    "rollback-limited": (
        "finding",
        "a rollback could not take new commits away",
        "Offsets from before can be put back, but removing a commit that did not exist, or a group, takes DELETE "
        "on the group, which this tool's user does not have.",
        "Allow it: kafka-acls.sh --add --allow-principal User:NAME --operation Delete --group GROUP. Or go on and "
        "know it.",
        "payments is new on standby and this user may not delete it",
    ),
    "mm2-group-sync": (
        "finding",
        "MM2 writes group offsets on the target too",
        "With sync.group.offsets.enabled it moves the offsets of groups without members to its checkpoints, also over "
        "records nobody read there. An error when it is live beyond doubt.",
        "Stop MM2's checkpoint connector before consumers start.",
        "orders-0 moved to MM2's checkpoint between two looks",
    ),
    "min-isr-unsatisfiable": (
        "finding",
        "fewer replicas than min.insync.replicas",
        "Brokers up to 3.6 refuse every write with acks=all to such a topic (an error); newer ones count the "
        "replicas there are (a warning). The topic's own setting counts, else the brokers'; the brokers' release "
        "is told by inter.broker.protocol.version.",
        "Raise the replication factor or lower the setting of the topic: kafka-configs.sh --alter --entity-type "
        "topics.",
        "replication factor 1, min.insync.replicas 2",
    ),
    "partition-uncovered": (
        "finding",
        "no position is known and nothing is committed",
        "Consumers start there by their own auto.offset.reset: latest skips what is there, earliest reads it all.",
        "--missing earliest, or set auto.offset.reset with care.",
        "2 partitions of search have no checkpoint",
    ),
    "unmirrored-tail": (
        "finding",
        "the target holds records that never reached the source",
        "Failback: they were written there before the failover and the mirror did not get to them. Nobody read them on "
        "the source, so every group starts before them; consumers get them late, behind nothing of what came since.",
        "Nothing, or export them before the topic is made anew. Applications must bear records this old.",
        "30 records on a were never mirrored to b: orders-0 from offset 1000: 30",
    ),
    "no-original": (
        "finding",
        "the source wrote records of its own behind the copies",
        "Failback where names are kept: they exist on the source alone until a mirror brings them to the target.",
        "Bring them to the target, or let their consumers finish on the source first.",
        "at most 60 records were written on b itself and have no original on a: orders-0 from offset 1000: 60",
    ),
    "position-unknown": (
        "finding",
        "nobody can tell how far the mirror is",
        "No offset sync and no exact translation places the target's end on the source, so what is missing is unknown.",
        "Let the tool read MM2's offset-syncs topic.",
        "orders-3 has 4,000 records on the target and no known sync",
    ),
    "naming-mismatch": (
        "finding",
        "checkpoints and data use different topic names",
        "The connectors of the flow have different replication policies.",
        "Set the same replication.policy.class and separator for all of them.",
        "checkpoints for primary.orders, data in orders",
    ),
    "internal-topic-missing": (
        "finding",
        "MM2's checkpoints topic does not exist",
        "MM2 has never written a checkpoint for this flow.",
        "See whether emit.checkpoints.enabled is true and the checkpoint connector runs.",
        "primary.checkpoints.internal is not on standby",
    ),
    "internal-topic-unreadable": (
        "finding",
        "one of MM2's own topics could not be read",
        "What it holds is missing from this look.",
        "Grant READ and DESCRIBE on it.",
        "TOPIC_AUTHORIZATION_FAILED for mm2-offset-syncs.standby.internal",
    ),
    "unreadable-records": (
        "finding",
        "records in one of MM2's topics could not be decoded",
        "They were left out and counted.",
        "Find out who else writes to that topic.",
        "2 records of primary.checkpoints.internal; the first at offset 4",
    ),
    "mirror-stalled": (
        "finding",
        "the mirror makes no progress",
        "The first record that the target lacks was there at the plan before and still has no copy, or it was "
        "written more than 5 minutes ago. Where it is larger than the target's topic takes, that is said: such a "
        "record fails the task for ever. A partition that moved since the last plan is behind and does not count.",
        "See MM2's log or the task's trace (GET /connectors/NAME/status), then restart the task. Too large: raise "
        "max.message.bytes of the topic and TARGET.producer.max.request.size.",
        "replication of orders-0 stopped at 10: its next record has waited for 47 min",
    ),
    "rewound-upstream": (
        "finding",
        "a group was set back on the source",
        "Its commit on the target stays where it was, ahead of the new position.",
        "--allow-rewind moves it back too.",
        "checkpoints 900 -> 900, then 100 -> 100",
    ),
    "subscription-changes": (
        "finding",
        "consumers must read other topics on the target",
        "Mirrored topics carry the source's alias, and producers that move write the plain name: consumers need both.",
        "Change their subscription before they start.",
        "primary.orders AND orders",
    ),
    "local-topic-missing": (
        "finding",
        "the plain topic does not exist on the target",
        "Producers that move there would have it created by chance, with the brokers' num.partitions, or would fail.",
        "Create it with the source's partition count, as the finding's command does.",
        "orders is not on standby",
    ),
    "local-topic-uncovered": (
        "finding",
        "the group has no commit on the plain topic",
        "Its auto.offset.reset decides there: latest may pass over the first records written after the failover.",
        "failover plan --local-topics earliest commits the log's start there; or set auto.offset.reset=earliest.",
        "payments has no commit on orders-0 of standby",
    ),
    "partition-count-differs": (
        "finding",
        "a topic has another number of partitions",
        "A key goes to another partition, so its order breaks.",
        "Add the missing partitions before producers write there.",
        "orders has 12 partitions on primary, 6 on standby",
    ),
    "acl-missing": (
        "finding",
        "a right or user that applications have on the source is not on the target",
        "ACLs on this flow's topics (by their plain and their mirrored names) and groups, and SCRAM users named by "
        "them. MM2 copies topic ACLs by whole names, and no WRITE, no group rights, no users. It says what is "
        "written down: super users need no ACL.",
        "failover plan --format kafka-acls prints the commands that create them.",
        "User:payments has no READ on group payments",
    ),
    "streams-state": (
        "finding",
        "a Kafka Streams application keeps state beside its offsets",
        "Told by topics named after the group: GROUP-...-changelog and GROUP-...-repartition. They are copied "
        "apart from its offsets, so both may not fit, and their mirrored names are none that it looks for.",
        "Let it build its state anew on the target: an empty state.dir after kafka-streams-application-reset.sh.",
        "pricing has pricing-store-changelog",
    ),
    "clock-skew": (
        "finding",
        "clocks differ",
        "Records that MM2 wrote bear times more than 5 s ahead of this machine's clock, so ages are told too "
        "small. A clock that is behind cannot be told from a program that stands still.",
        "Compare the clocks (chronyc tracking, timedatectl) here and where MM2 runs.",
        "heartbeats on standby are 40 s ahead of this machine",
    ),
    "authorizer-missing": (
        "finding",
        "the target has no authorizer",
        "Whoever reaches its brokers may do anything, and MM2 copies no ACLs there. A warning where the source has "
        "ACLs.",
        "Nothing, if that is meant; else set authorizer.class.name on its brokers and controllers.",
        "SECURITY_DISABLED",
    ),
    "lock-unavailable": (
        "finding",
        "the lock could not be taken",
        "Nobody else is known to execute, but nothing keeps it so.",
        "See that no one else executes a plan for this target.",
        "no right to create mm2-failover-runs.primary.internal",
    ),
    "two-writers": (
        "finding",
        "two programs write the same offsets or topics",
        "MirrorMaker 2 and failover replicate both have members on the target for this flow: what both select is "
        "copied twice. The replicator tells the same of records that it did not write.",
        "Stop one of them, unless they mirror different topics (--alongside).",
        "groups primary-mm2 and failover.replicate.primary-standby both have members",
    ),
    "source-recreated": (
        "finding",
        "a source topic was deleted and made again",
        "Its id is another than in the plan before, or an offset sync names a record beyond its end. Old syncs and "
        "commits belong to the old topic.",
        "Wait for new offset syncs and checkpoints, then plan again.",
        "orders has another topic id",
    ),
    "source-truncated": (
        "finding",
        "the source's log starts beyond what is mirrored",
        "Retention deleted records before they were copied. MM2 goes on at the log start and says nothing; once it "
        "has, the gap looks like any other.",
        "They are lost; raise the topic's retention above the mirror's longest pause.",
        "mirrored to 1,000, the log starts at 5,000",
    ),
    "not-checked": (
        "finding",
        "something that findings go by was not told",
        "ACLs, users or settings could not be read, for want of rights or because no answer came within 2 s. "
        "Findings about them are missing from this plan; nothing else is.",
        "Allow DESCRIBE and DESCRIBE_CONFIGS on the cluster, if they are wanted.",
        "ACLs of standby (CLUSTER_AUTHORIZATION_FAILED)",
    ),
}
