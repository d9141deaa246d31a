"""Constructed plans for the screens: one story each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from failover.model import Precision, Proof, TopicPartition, Translation
from failover.model.cluster import ClusterState, ClusterStatus, LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType, Member
from failover.model.plan import Plan, PlanOptions
from failover.model.snapshot import ClusterView, FlowInfo, InternalTopicReading, NotPlanned, SeenCheckpoint, Snapshot
from failover.planning.build import make_plan
from tests.unit.planning.worlds import TAKEN, checkpoint, empty, exact, plan, world

HOSTILE = "evil\x1b[31m\n| =cmd()\u202e<b>`x`"


def build(snapshot: Snapshot, options: PlanOptions | None = None) -> Plan:
    return make_plan(
        snapshot,
        options or PlanOptions(),
        plan_id="7f3a1c",
        operator="kim",
        reason="",
        ttl_seconds=3600.0,
        tool_version="0.1.0",
    )


def big(groups: int = 49, partitions: int = 12, *, source: ClusterState = ClusterState.DOWN, **more: Any) -> Snapshot:
    """Many groups on one topic; one stands ahead, one has members, one misses two checkpoints."""
    names = (*tuple(f"group-{n:04}" for n in range(groups - 3)), "fraud", "ledger", "search")
    numbers = range(partitions)
    tps = [TopicPartition("primary.orders", n) for n in numbers]
    when = int((TAKEN - timedelta(seconds=138)).timestamp() * 1000)
    checkpoints = {name: {tp: SeenCheckpoint(2000, 1990, when) for tp in tps} for name in names}
    translations = {
        name: {tp: Translation(2000, 1995, Precision.EXACT, Proof.SYNC_MATCH, 0, 0) for tp in tps} for name in names
    }
    for tp in tps[:2]:
        del checkpoints["search"][tp], translations["search"][tp]
    infos = {name: GroupInfo(name, False, GroupType.UNKNOWN, "Dead") for name in names}
    infos["fraud"] = GroupInfo("fraud", True, GroupType.CLASSIC, "Empty")
    members = (Member("app-1", "/10.0.3.7", "m-1"), Member("app-2", "", "m-2"))
    infos["ledger"] = GroupInfo("ledger", True, GroupType.CLASSIC, "Stable", members)
    fields: dict[str, Any] = {
        "taken": TAKEN,
        "flow": FlowInfo("primary", "standby", "default", "."),
        "source": ClusterView(
            ClusterStatus("primary", None, source, "no broker answered", TAKEN - timedelta(seconds=10))
        ),
        "target": ClusterView(
            ClusterStatus("standby", "TGT", ClusterState.UP),
            topics={"primary.orders": TopicInfo("primary.orders", partitions, "id-1", replication_factor=3)},
            logs={tp: LogRange(0, 2003) for tp in tps},
            groups=infos,
            commits={name: {} for name in names} | {"fraud": {tps[-5 if partitions > 5 else -1]: Commit(6995)}},
            settings={"offsets.retention.minutes": "10080"},
        ),
        "mirrored": {"primary.orders": "orders"},
        "groups": names,
        "checkpoints": checkpoints,
        "translations": translations,
        "not_planned": (
            *(NotPlanned(f"console-consumer-{n}", "excluded") for n in range(14)),
            NotPlanned("q", "share"),
        ),
        "outside_filters": tuple(f"console-consumer-{n}" for n in range(14)),
        "newest_syncs": dict.fromkeys(tps, (2000, 1995)),
        "last_source_ends": {
            TopicPartition("orders", n): 2010 if n in (1, 3) else 3198 if n == 2 else 2000 for n in numbers
        },
        "last_source_seen": TAKEN - timedelta(seconds=138),
        "group_offsets_synced": True,
    }
    fields["target"].logs[tps[-5 if partitions > 5 else -1]] = LogRange(0, 9000)
    return Snapshot(**(fields | more))


def source_down() -> Plan:
    return build(big())


def thousand() -> Plan:
    return build(big(1000, 4))


def all_ready() -> Plan:
    return plan(
        world(
            partitions=3,
            source_commits={0: 500, 1: 700, 2: 0},
            translations={0: exact(500, 490), 1: exact(700, 690)},
            newest_syncs={TopicPartition("primary.orders", n): (1000, 1000) for n in range(3)},
        )
    )


def all_refused() -> Plan:
    snapshot = big(7, 2)
    members = (Member("app-1", "/10.0.3.7", "m-1", "static-1"),)
    for name in snapshot.groups:
        snapshot.target.groups[name] = GroupInfo(name, True, GroupType.CONSUMER, "Stable", members)
    return build(snapshot)


def conservative() -> Plan:
    """The source is up, MM2's checkpoints are all there is."""
    return plan(
        world(
            partitions=4,
            source_commits={0: 50, 1: 900, 2: 400},
            checkpoints={0: checkpoint(50, 1), 1: checkpoint(800, 700, ago=4000), 2: checkpoint(400, 400)},
            target_commits={2: 650},
            target_log=(0, 1000),
        )
    )


def hostile() -> Plan:
    snapshot = world(
        group=HOSTILE,
        checkpoints={0: checkpoint(500, 480, metadata=b"\x1b[2J")},
        source=ClusterState.DOWN,
        info=GroupInfo(HOSTILE, True, GroupType.CLASSIC, "Stable", (Member("=1+1\n", "/h\x1b[0m|<i>", "m"),)),
        not_planned=(NotPlanned(HOSTILE + "2", "excluded", (HOSTILE,)),),
        outside_filters=(HOSTILE + "2",),
        readings=(InternalTopicReading("t", "standby", True, 9, 2, "offset 4: " + HOSTILE),),
    )
    return plan(snapshot)


def nothing() -> Plan:
    return plan(world(source_commits={}, info=empty()))
