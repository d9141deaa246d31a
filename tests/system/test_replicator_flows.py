"""Several flows in one process: both directions, several sources into one target, each failing by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from failover.lab.side import Side
from failover.model import TopicPartition
from tests.system.pair import Pair
from tests.system.replicating import Flow
from tests.system.several import IDENTITY, Net, active_active, same

MAP = "failover.replication.policy.topic.map"
REFUSED, UNREACHABLE, USAGE = 3, 8, 2


def test_active_active_under_traffic(pair: Pair) -> None:
    active_active(pair, seconds=12, kills=1)


def test_clusters_leaves_the_flows_into_others_alone(pair: Pair) -> None:
    stem = pair.name("only")
    net = Net(pair, rf"{stem}\..*", {"east": pair.a, "west": pair.b}, ["east->west", "west->east"], {})
    topic = f"{stem}.t"
    for alias in ("a", "b"):
        pair.create_topic(alias, topic, 1)
        pair.produce(alias, topic, 50)
    with net.worker("--clusters", net["west"]) as worker:
        same(pair.a, topic, pair.b, f"{net['east']}.{topic}")
        worker.stop()
    assert f"{net['west']}.{topic}" not in pair.a.topics()


def test_each_flow_fails_by_itself(pair: Pair) -> None:
    """One cluster is not there, one flow is misconfigured, one is taken over: the rest goes on to the end."""
    stem = pair.name("alone")
    clusters: dict[str, Side | str] = {"east": pair.a, "west": pair.b, "gone": "127.0.0.1:1"}
    net = Net(
        pair,
        rf"{stem}\..*",
        clusters,
        ["east->west", "west->east", "gone->west", "gone->east"],
        {"gone->east.replication.policy.class": "com.acme.Policy"},
    )
    east, west, gone = net["east"], net["west"], net["gone"]
    topic = f"{stem}.t"
    for alias in ("a", "b"):
        pair.create_topic(alias, topic, 1)
    with net.worker() as first:
        first.says(f"flow {gone}->{west}", "tried again")
        first.says(f"flow {gone}->{east}", "com.acme.Policy", "it has ended")
        pair.produce("a", topic, 100)
        same(pair.a, topic, pair.b, f"{east}.{topic}")
        with net.worker("--source", west, "--target", east) as second:
            second.says(f"{topic}-0", "from source offset")
            pair.produce("b", topic, 100)  # an idle worker finds out with the next record
            first.says(f"flow {west}->{east}", "another worker has taken over", "it has ended")
            pair.produce("a", topic, 100)
            same(pair.a, topic, pair.b, f"{east}.{topic}")
            same(pair.b, topic, pair.a, f"{west}.{topic}")
            second.stop()
        assert len(first.lines(f"flow {gone}->{west}")) == 1, "said once, however often it was tried"
        assert first.code() is None
        first.terminate()
        assert first.ended() == UNREACHABLE
    assert first.lines("3 of 4 flows ended with an error")


def test_two_names_for_one_cluster_are_refused(pair: Pair) -> None:
    net = Net(pair, "x", {"one": pair.a, "two": pair.a}, ["one->two"], {})
    ran = pair.run_cli("replicate", config=net.config)
    assert ran.code == REFUSED
    assert "same-cluster" in ran.err


@pytest.mark.parametrize("topics", [".*", "orders.*, bills"])
def test_kept_names_both_ways_are_refused(pair: Pair, topics: str) -> None:
    net = Net(
        pair,
        topics,
        {"one": pair.a, "two": pair.b},
        ["one->two", "two->one"],
        {"replication.policy.class": IDENTITY},
    )
    ran = pair.run_cli("replicate", config=net.config)
    assert ran.code == USAGE, ran.err
    assert f"{net['one']} -> {net['two']} -> {net['one']}" in ran.err


def test_kept_names_go_each_its_way(pair: Pair) -> None:
    """Topics with one direction each are copied; one that both directions select is by neither."""
    stem = pair.name("idn")
    net = Net(
        pair,
        "",
        {"one": pair.a, "two": pair.b},
        ["one->two", "two->one"],
        {
            "replication.policy.class": IDENTITY,
            "one->two.topics": rf"{stem}\.e\d, {stem}\.both.",
            "two->one.topics": rf"{stem}\.w\d, {stem}\.both[x-z]",
        },
    )
    pair.expect_topic(rf"{stem}\..*")
    for alias, names in (("a", ("e1", "bothx")), ("b", ("w1", "bothy"))):
        for name in names:
            pair.produce(alias, pair.create_topic(alias, f"{stem}.{name}"), 30)
    with net.worker() as worker:
        same(pair.a, f"{stem}.e1", pair.b, f"{stem}.e1")
        same(pair.b, f"{stem}.w1", pair.a, f"{stem}.w1")
        worker.says(f"topic {stem}.bothx", "would come back as itself")
        worker.says(f"topic {stem}.bothy", "would come back as itself")
        worker.stop()
    assert f"{stem}.bothx" not in pair.b.topics()
    assert f"{stem}.bothy" not in pair.a.topics()


def test_a_topic_map_and_its_copies_that_do_not_go_back(pair: Pair) -> None:
    stem = pair.name("map")
    net = Net(
        pair,
        rf"(.+\.)?{stem}\..*",
        {"one": pair.a, "two": pair.b},
        ["one->two", "two->one"],
        {MAP: f"{stem}.orders:{stem}.orders.dr, {stem}.secret:-"},
    )
    pair.expect_topic(rf"{stem}\..*")
    one, two = net["one"], net["two"]
    for alias, name in (("a", "orders"), ("a", "secret"), ("b", "own")):
        pair.produce(alias, pair.create_topic(alias, f"{stem}.{name}"), 30)
    with net.worker() as worker:
        same(pair.a, f"{stem}.orders", pair.b, f"{stem}.orders.dr")
        same(pair.b, f"{stem}.own", pair.a, f"{two}.{stem}.own")
        worker.says("Skipping topic", f"{stem}.orders.dr", f"the copy of {stem}.orders of {one}")
        worker.says("Skipping topic", f"{stem}.secret", "not to mirror")
        worker.stop()
    assert {name for name in pair.a.topics() if stem in name} == {
        f"{stem}.orders",
        f"{stem}.secret",
        f"{two}.{stem}.own",
    }


SUFFIX_POLICY = """
class SuffixPolicy:
    def format_remote_topic(self, source_alias, topic):
        return f"{topic}.of-{source_alias}"

    def topic_source(self, topic):
        name, mark, alias = topic.rpartition(".of-")
        return alias if mark else None

    def upstream_topic(self, topic):
        name, mark, alias = topic.rpartition(".of-")
        return name if mark else None
"""


def test_an_installed_python_policy_names_copies_and_plans(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_policies.py").write_text(SUFFIX_POLICY)
    about = tmp_path / "acme_policies-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-policies\nVersion: 1.0\n")
    entry = "[failover.replication_policies]\ncom.acme.SuffixPolicy = acme_policies:SuffixPolicy\n"
    (about / "entry_points.txt").write_text(entry)
    stem = pair.name("py")
    pair.expect_topic(rf"{stem}\..*")
    flow = Flow(pair, rf"{stem}\..*", {"replication.policy.class": "com.acme.SuffixPolicy"})
    refused = pair.run_cli("replicate", config=flow.config)
    assert refused.code == USAGE
    assert "the entry point com.acme.SuffixPolicy of the group failover.replication_policies" in refused.err
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    topic, group = pair.create_topic("a", f"{stem}.t"), f"{stem}.group"
    remote = f"{topic}.of-{flow.source}"
    pair.produce("a", topic, 100)
    pair.commit("a", group, {(topic, 0): 40})
    with flow.worker() as worker:
        same(pair.a, topic, pair.b, remote)
        worker.stop()
    ran = pair.run_cli("plan", "--group", group, "--format", "json", config=flow.config)
    assert ran.code == 0, ran.err
    made = ran.json()
    assert made["flow"]["replication_policy"] == "python:com.acme.SuffixPolicy"
    [only] = made["groups"][0]["partitions"]
    assert (only["topic"], only["source_topic"], only["action"]) == (remote, topic, "commit")
    ahead = [record for record in pair.b.read(remote)[0] if record.offset >= only["offset"]]
    assert [record.value for record in ahead] == [record.value for record in pair.a.read(topic)[0][40:]]


def test_positions_under_a_group_of_the_source(pair: Pair) -> None:
    """Standard tools show how far the copying is, transaction markers counted as copied."""
    stem = pair.name("lag")
    flow = Flow(pair, rf"{stem}\..*", {"failover.replicator.lag.group": "true"})
    group = f"mirrormaker2-cluster-{flow.target}"
    topic = pair.create_topic("a", f"{stem}.t", 2)
    pair.produce("a", topic, 100)
    with flow.worker() as worker:

        def ends() -> dict[TopicPartition, int]:
            return {TopicPartition(topic, number): end for number, (_, end) in pair.ends("a", topic).items()}

        worker.until(lambda: pair.committed("a", group) == ends(), what="no lag")
        pair.produce("a", topic, 50, transactions=[(25, True), (25, False)])
        worker.until(lambda: pair.committed("a", group) == ends(), what="no lag behind markers")
        worker.stop()
    planned = pair.run_cli("plan", "--format", "json", config=flow.config).json()
    assert group not in {each["group"] for each in planned["groups"]}
    assert {each["why"] for each in planned["not_planned"] if each["group"] == group} <= {"excluded"}


def test_where_a_record_came_from_in_its_headers(pair: Pair) -> None:
    """Off by default. Copies are found again by their content, these headers left out."""
    stem = pair.name("prov")
    flow = Flow(
        pair,
        rf"{stem}\..*",
        {"failover.replicator.provenance.headers": "true", "offset-syncs.topic.location": "target"},
    )
    topic = pair.create_topic("a", f"{stem}.t", 2)
    pair.produce("a", topic, 500)
    with flow.worker() as worker:
        worker.copied(topic)
        pair.commit("a", f"{stem}.g", {(topic, 0): 77})
        worker.kill()
    pair.produce("a", topic, 100)
    with flow.worker() as worker:
        source, target = worker.copied(topic)
        worker.stop()
    for tp, records in source.items():
        assert [record.value for record in target[tp]] == [record.value for record in records]
        assert [dict(record.headers) for record in target[tp]] == [
            {
                "failover.source.topic": topic.encode(),
                "failover.source.partition": str(tp.partition).encode(),
                "failover.source.offset": str(record.offset).encode(),
                "failover.source.timestamp": str(record.timestamp).encode(),
            }
            for record in records
        ]
    planned = pair.run_cli("plan", "--group", f"{stem}.g", "--format", "json", config=flow.config).json()
    [row] = [
        each for each in planned["groups"][0]["partitions"] if each["source_topic"] == topic and each["partition"] == 0
    ]
    assert (row["precision"], row["reread_max"]) == ("exact", 0)
