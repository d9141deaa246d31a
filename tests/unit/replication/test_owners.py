"""Several sources with one name for a topic of one target: it has one owner, or nobody writes it."""

from __future__ import annotations

import asyncio

from failover.inventory.flow import Flow
from failover.mm2.filters import NameFilter
from failover.mm2.internal_topics import InternalTopics
from failover.mm2.replication_policy import policy_from
from failover.mm2.topic_selection import selection_from
from failover.model.snapshot import FlowInfo
from failover.replication import owners as owners_file
from failover.replication.owners import Owners

CLASS = "replication.policy.class"
IDENTITY = {CLASS: "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
MAP = "failover.replication.policy.topic.map"


def flow(source, settings=IDENTITY, target="hub"):
    policy = policy_from(settings, source)
    return Flow(
        info=FlowInfo(source, target, policy.name, policy.separator),
        policy=policy,
        topics=selection_from(settings, source, target, policy),
        groups=NameFilter(None, None),
        internal=InternalTopics.of_flow(settings, source, target, policy),
    )


def settle(owners, *looks):
    """Lets flows look at the same time; each: (flow, topics, recorded, copied). Gives what each may not copy."""

    async def all_of_them():
        return await asyncio.gather(
            *(
                owners.settle(each, {t: each.target_topic(t) for t in topics}, recorded=recorded, copied=copied)
                for each, topics, recorded, copied in looks
            )
        )

    return [[(fault.topic, fault.code) for fault in faults] for faults in asyncio.run(all_of_them())]


US, EU, ASIA = flow("us"), flow("eu"), flow("asia")


def test_a_topic_of_two_sources_is_copied_by_neither_and_all_others_are():
    owners = Owners([US, EU])
    found = settle(owners, (US, ["orders", "only.us"], (), ()), (EU, ["orders", "only.eu"], (), ()))
    assert found == [[("orders", "two-sources")]] * 2


def test_who_has_a_position_on_record_goes_on_alone():
    owners = Owners([US, EU, ASIA])
    found = settle(owners, (US, ["orders"], {"orders"}, ()), (EU, ["orders"], (), ()), (ASIA, ["orders"], (), ()))
    assert found == [[], [("orders", "two-sources")], [("orders", "two-sources")]]
    [fault] = asyncio.run(owners.settle(EU, {"orders": "orders"}, recorded=(), copied=()))
    assert "us->hub copies it already, so this one is not copied" in str(fault)
    assert "orders of flow asia->hub, orders of flow us->hub" in str(fault)
    # once copied it stays its own, also where another has an old position
    assert settle(owners, (EU, ["orders"], {"orders"}, ()), (US, ["orders"], {"orders"}, {"orders"})) == [
        [("orders", "two-sources")],
        [],
    ]


def test_two_with_positions_have_both_written_and_neither_goes_on():
    owners = Owners([US, EU])
    found = settle(owners, (US, ["orders"], {"orders"}, ()), (EU, ["orders"], {"orders"}, ()))
    assert found == [[("orders", "two-sources")]] * 2
    [fault] = asyncio.run(owners.settle(US, {"orders": "orders"}, recorded={"orders"}, copied=()))
    assert "none of them is copied" in str(fault)


def test_a_topic_that_appears_later_is_nobodys_but_the_first_ones():
    owners = Owners([US, EU])
    assert settle(owners, (US, ["orders"], (), ()), (EU, [], (), ())) == [[], []]
    assert settle(owners, (EU, ["orders"], (), ())) == [[("orders", "two-sources")]]
    assert settle(owners, (US, ["orders"], (), {"orders"})) == [[]]
    owners.left(US)
    assert settle(owners, (EU, ["orders"], (), ())) == [[("orders", "two-sources")]], "it may come back"


def test_maps_meet_other_names_too():
    mapped = flow("eu", {MAP: "sales:us.orders"})
    default = flow("us", {})
    found = settle(Owners([default, mapped]), (default, ["orders"], (), ()), (mapped, ["sales", "x"], (), ()))
    assert found == [[("orders", "two-sources")], [("sales", "two-sources")]]


def test_prefixes_never_meet_and_other_targets_are_another_matter(monkeypatch):
    monkeypatch.setattr(owners_file, "PATIENCE_SECONDS", 60.0)
    us, eu = flow("us", {}), flow("eu", {})
    assert settle(Owners([us, eu]), (us, ["orders"], (), ())) == [[]], "nobody is waited for"
    assert settle(Owners([US, flow("eu", target="dr")]), (US, ["orders"], (), ())) == [[]]
    assert settle(Owners(), (US, ["orders"], (), ())) == [[]]


def test_one_that_does_not_come_is_waited_for_a_while(monkeypatch):
    monkeypatch.setattr(owners_file, "PATIENCE_SECONDS", 0.01)
    owners = Owners([US, EU])
    assert settle(owners, (US, ["orders"], (), ())) == [[]]
    monkeypatch.setattr(owners_file, "PATIENCE_SECONDS", 60.0)
    gone = Owners([US, EU])
    gone.left(EU)
    assert settle(gone, (US, ["orders"], (), ())) == [[]]
