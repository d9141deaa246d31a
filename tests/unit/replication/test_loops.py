from __future__ import annotations

import pytest

from failover.config.load import load_config
from failover.errors import ConfigError
from failover.replication.loops import Loops
from failover.replication.running import flows_of
from failover.replication.topics_seen import choose

IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
MAP = "failover.replication.policy.topic.map"


def configured(tmp_path, text, clusters="a, b"):
    path = tmp_path / "mm2.properties"
    names = [name.strip() for name in clusters.split(",")]
    addresses = "".join(f"{name}.bootstrap.servers = localhost:1\n" for name in names)
    path.write_text(f"clusters = {clusters}\n{addresses}{text}")
    config = load_config(str(path))
    flows = {f"{flow.source}->{flow.target}": flow for flow in flows_of(config)}
    return config, flows, Loops(list(flows.values()))


BOTH = "a->b.enabled = true\nb->a.enabled = true\n"


def refused(config, flows, loops):
    found = []
    for flow in config.enabled_flows:
        try:
            loops.refuse(flows[flow.name], flow)
        except ConfigError:
            found.append(flow.name)
    return found


def test_default_names_go_both_ways(tmp_path):
    config, flows, loops = configured(tmp_path, BOTH)
    assert loops.path(flows["a->b"], "orders") == ()
    assert refused(config, flows, loops) == []


@pytest.mark.parametrize("topics", ["", "topics = .*\n", "topics = orders.*, t\\\\.x\n"])
def test_kept_names_do_not_go_both_ways(tmp_path, topics):
    config, flows, loops = configured(tmp_path, BOTH + IDENTITY + topics)
    assert loops.path(flows["a->b"], "orders") == ("a", "b", "a")
    assert refused(config, flows, loops) == ["a->b", "b->a"]


def test_kept_names_one_way_are_fine(tmp_path):
    config, flows, loops = configured(tmp_path, "a->b.enabled = true\n" + IDENTITY)
    assert loops.path(flows["a->b"], "orders") == ()
    assert refused(config, flows, loops) == []


def test_each_topic_one_direction_is_fine_and_what_both_select_is_left_out(tmp_path):
    text = BOTH + IDENTITY + "a->b.topics = east.*, both.x\nb->a.topics = west.*, both.[x-z]\n"
    _, flows, loops = configured(tmp_path, text)
    found = choose(flows["a->b"], ["east1", "west1", "both.x"], loops)
    assert found.targets == {"east1": "east1"}
    assert [(fault.topic, fault.code) for fault in found.faults] == [("both.x", "loop")]
    assert "a -> b -> a" in found.faults[0].message
    assert "both.x" not in choose(flows["b->a"], ["both.x"], loops).targets


def test_a_circle_of_three(tmp_path):
    text = IDENTITY + "a->b.enabled = true\nb->c.enabled = true\nc->a.enabled = true\n"
    config, flows, loops = configured(tmp_path, text, "a, b, c")
    assert loops.path(flows["b->c"], "orders") == ("b", "c", "a", "b")
    assert refused(config, flows, loops) == ["a->b", "b->c", "c->a"]
    # the same with names that tell
    _, flows, loops = configured(tmp_path, text.removeprefix(IDENTITY), "a, b, c")
    assert loops.path(flows["b->c"], "orders") == ()


def test_a_map_that_keeps_a_name_is_a_circle(tmp_path):
    _, flows, loops = configured(tmp_path, BOTH + f"{MAP} = orders:orders\n")
    assert loops.path(flows["a->b"], "orders") == ("a", "b", "a")


def test_what_a_map_renamed_does_not_go_back(tmp_path):
    _, flows, loops = configured(tmp_path, BOTH + f"{MAP} = orders:orders.dr\n")
    assert loops.path(flows["a->b"], "orders") == ()
    found = choose(flows["b->a"], ["orders.dr", "bills", "a.bills"], loops)
    assert found.targets == {"bills": "b.bills"}
    assert found.skipped["orders.dr"] == "cycle: it is the copy of orders of a"
    # one way, nothing tells that it is a copy
    _, flows, loops = configured(tmp_path, "b->a.enabled = true\n" + f"{MAP} = orders:orders.dr\n")
    assert choose(flows["b->a"], ["orders.dr"], loops).targets == {"orders.dr": "b.orders.dr"}


def test_a_flow_that_cannot_be_worked_out_costs_no_other_one_its_rules(tmp_path):
    text = BOTH + "b->a.replication.policy.class = com.acme.Policy\n"
    _, flows, _ = configured(tmp_path, text)
    assert list(flows) == ["a->b"]


@pytest.mark.parametrize("written", ["orders", "heartbeats"])
def test_two_clusters_of_one_alias_do_not_add_prefixes_for_ever(tmp_path, written):
    """Each side's file calls itself ``local`` and the other ``remote``, so no name tells where a topic was written."""
    _, flows, loops = configured(
        tmp_path, "local->remote.enabled = true\nfailover.mm2.version = 4.1\n", clusters="local, remote"
    )
    flow = flows["local->remote"]
    here, there = {written}, set()
    for _ in range(10):
        there |= set(choose(flow, here, loops).targets.values())
        here |= set(choose(flow, there, loops).targets.values())
    assert there == {f"local.{written}"}
    assert here == {written, f"local.local.{written}"}
    [(topic, why)] = choose(flow, here, loops).skipped.items()
    assert (topic, why) == (
        f"local.local.{written}",
        "cycle: it came from local twice, so two clusters are called local",
    )


def test_a_plain_name_that_begins_with_the_alias_is_copied(tmp_path):
    _, flows, loops = configured(tmp_path, "a->b.enabled = true\n")
    assert choose(flows["a->b"], ["a.orders"], loops).targets == {"a.orders": "a.a.orders"}
