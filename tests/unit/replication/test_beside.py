from __future__ import annotations

import asyncio

import pytest

from failover.config.clients import ClientSettings
from failover.errors import BrokerError, MirrorMakerRuns
from failover.kafka.faults import fault
from failover.kafka.wire.cluster import WireCluster
from failover.model.groups import GroupInfo, GroupType, Member
from failover.replication import beside
from failover.replication.beside import look_beside


@pytest.fixture
def look(monkeypatch):
    def run(info, **options):
        async def describe_groups(cluster, groups, types):
            assert types == dict.fromkeys(groups, GroupType.CLASSIC)
            return dict.fromkeys(groups, info)

        async def looked():
            target = WireCluster(ClientSettings((("127.0.0.1", 1),)), alias="B")  # nobody is asked
            return await look_beside(target, "A-mm2", flow="A->B", **options)

        monkeypatch.setattr(beside, "describe_groups", describe_groups)
        return asyncio.run(looked())

    return run


def group(*members, **fields):
    return GroupInfo("A-mm2", True, GroupType.CLASSIC, "Stable" if members else "Empty", tuple(members), **fields)


def workers(count):
    return [Member(f"A->B-{number}", f"/10.0.0.{number}", f"id-{number}") for number in range(count)]


def test_a_running_mirror_maker_is_refused_by_name(look):
    with pytest.raises(MirrorMakerRuns) as caught:
        look(group(*workers(2)))
    assert (caught.value.exit_code, caught.value.code) == (3, "mirror-maker-runs")
    assert "A->B-0 on 10.0.0.0, A->B-1 on 10.0.0.1" in caught.value.message
    assert "group A-mm2 on cluster B" in caught.value.message
    assert "--alongside" in caught.value.hint
    with pytest.raises(MirrorMakerRuns) as caught:
        look(group(*workers(2)), alongside=None)
    assert caught.value.hint.startswith("stop it ")
    assert "--alongside" not in caught.value.hint


def test_of_many_workers_some_are_named(look):
    with pytest.raises(MirrorMakerRuns, match="and 15 more"):
        look(group(*workers(20)))


def test_alongside_goes_on_and_says_so(look, caplog):
    assert look(group(*workers(1)), alongside=True) == tuple(workers(1))
    assert "A->B-0 on 10.0.0.0" in caplog.text


@pytest.mark.parametrize("info", [group(), GroupInfo("A-mm2", False, GroupType.UNKNOWN, "Dead")])
def test_a_group_without_members_is_nobody(look, info, caplog):
    assert look(info) == ()
    assert caplog.messages == []


def test_what_may_not_be_looked_at_is_said_and_stops_nothing(look, caplog):
    assert look(group(fault=fault(30))) == ()
    assert "grant DESCRIBE" in caplog.text


def test_a_coordinator_that_gives_no_answer_is_an_error(look):
    with pytest.raises(BrokerError) as caught:
        look(group(fault=fault(15)))
    assert caught.value.name == "COORDINATOR_NOT_AVAILABLE"
