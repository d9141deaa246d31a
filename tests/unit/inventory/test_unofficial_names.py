"""Names of settings that only guides write: plans go by what MirrorMaker 2 reads, the replicator by what is meant."""

from __future__ import annotations

import pytest

from failover.config.load import select_flow
from failover.inventory.flow import flow_of
from tests.unit.config.build import PAIR, load


@pytest.mark.parametrize("prefix", ["", "A->B."])
def test_the_replicator_reads_what_guides_write(tmp_path, prefix):
    text = f"{prefix}topics.regex = orders.*\n{prefix}groups.regex = app-.*\n{prefix}topics.blacklist = orders-tmp\n"
    config = load(tmp_path, PAIR + text)
    selected = select_flow(config)
    plan, copy = flow_of(config, selected), flow_of(config, selected, unofficial=True)
    assert [plan.topics.should_replicate(topic) for topic in ("orders", "bills", "orders-tmp")] == [True, True, True]
    assert [copy.topics.should_replicate(topic) for topic in ("orders", "bills", "orders-tmp")] == [True, False, False]
    assert (plan.groups.matches("other"), copy.groups.matches("other"), copy.groups.matches("app-1")) == (
        True,
        False,
        True,
    )


def test_mm2s_own_names_win(tmp_path):
    config = load(tmp_path, f"{PAIR}topics.regex = x\ntopics = orders\n")
    flow = flow_of(config, select_flow(config), unofficial=True)
    assert (flow.topics.should_replicate("orders"), flow.topics.should_replicate("x")) == (True, False)


def test_old_names_count_in_plans_where_the_running_mm2_reads_them(tmp_path):
    config = load(tmp_path, f"{PAIR}topics.blacklist = tmp\nfailover.mm2.version = 3.9\n")
    assert not flow_of(config, select_flow(config)).topics.should_replicate("tmp")
