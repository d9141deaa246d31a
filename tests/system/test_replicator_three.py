"""Three clusters in one file, and a source of three brokers."""

from __future__ import annotations

from pathlib import Path

from tests.system.outage import one_source_broker_down
from tests.system.pair import Pair
from tests.system.several import IDENTITY, Net, same

USAGE = 2


def test_two_sources_into_one_target_and_on_from_there(pair: Pair, three: Pair, tmp_path: Path) -> None:
    """Prefixes keep the sources apart in copies and in plans, whatever topics and groups they both have."""
    stem = pair.name("tri")
    net = Net(
        pair,
        rf"(.+\.)?{stem}\..*",
        {"east": pair.a, "hub": pair.b, "south": three.a},
        ["east->hub", "south->hub", "hub->east"],
        {"groups": f"{stem}.*", "failover.checkpoint.interval.seconds": "1"},
    )
    east, hub, south = net["east"], net["hub"], net["south"]
    topic, own, group = f"{stem}.t", f"{stem}.h", f"{stem}.group"
    for side, name in ((pair.a, topic), (three.a, topic), (pair.b, own)):
        pair.create_topic(side.alias, name, 2) if side is not three.a else side.create_topic(name, 2)
        side.produce(name, 200)
    with net.worker() as worker:
        for side, alias in ((pair.a, east), (three.a, south)):
            same(side, topic, pair.b, f"{alias}.{topic}")
            side.commit(group, {(topic, 0): 30})
        same(pair.b, own, pair.a, f"{hub}.{own}")
        same(three.a, topic, pair.a, f"{hub}.{south}.{topic}")
        worker.says("Skipping topic", f"{east}.{topic}", "cycle")
        worker.stop()
    names = {name for side in (pair.a, pair.b) for name in side.topics() if stem in name}
    assert names == {
        topic,
        own,
        f"{east}.{topic}",
        f"{south}.{topic}",
        f"{hub}.{own}",
        f"{hub}.{south}.{topic}",
    }
    unclear = pair.run_cli("plan", "--group", group, config=net.config, state=tmp_path)
    assert unclear.code == USAGE
    assert f"{east}->{hub}" in unclear.err
    assert f"{south}->{hub}" in unclear.err
    for alias in (east, south):
        ran = pair.run_cli(
            "plan", "--source", alias, "--target", hub, "--group", group, "--format", "json", config=net.config
        )
        assert ran.code == 0, ran.err
        [planned] = ran.json()["groups"]
        assert {part["topic"] for part in planned["partitions"]} == {f"{alias}.{topic}"}
        assert [part["source_committed"] for part in planned["partitions"] if part["action"] == "commit"] == [30]


def test_one_kept_name_of_two_sources_is_never_mixed(pair: Pair, three: Pair) -> None:
    """Neither is copied while nobody owns the name; who has copied it goes on; the other finds strange records."""
    stem = pair.name("own")
    net = Net(
        pair,
        rf"{stem}\..*",
        {"us": pair.a, "hub": pair.b, "eu": three.a},
        ["us->hub", "eu->hub"],
        {"replication.policy.class": IDENTITY},
    )
    us, hub, eu = net["us"], net["hub"], net["eu"]
    pair.expect_topic(rf"{stem}\..*")
    both, ours, theirs = f"{stem}.both", f"{stem}.us", f"{stem}.eu"
    for side, other in ((pair.a, ours), (three.a, theirs)):
        for topic in (both, other):
            side.create_topic(topic, 1)
            side.produce(topic, 60)

    def apart() -> None:
        same(pair.a, ours, pair.b, ours)
        same(three.a, theirs, pair.b, theirs)

    with net.worker() as worker:
        for alias in (us, eu):
            worker.says("two-sources", f"topic {both} of {alias} becomes {both} on {hub}", "none of them is copied")
        apart()
        worker.stop()
    assert both not in pair.b.topics()
    with net.worker("--source", us) as worker:
        same(pair.a, both, pair.b, both)
        worker.stop()
    with net.worker("--source", eu) as worker:  # a process of its own knows of nobody else
        worker.says(f"{both}-0 -> {both}-0 stands still: position-unknown")
        worker.stop()
    pair.a.produce(both, 60)
    with net.worker() as worker:
        worker.says("two-sources", f"topic {both} of {eu}", f"{us}->{hub} copies it already")
        same(pair.a, both, pair.b, both)
        apart()
        worker.stop()


def test_one_of_three_source_brokers_is_down(three: Pair) -> None:
    one_source_broker_down(three, seconds=0)
