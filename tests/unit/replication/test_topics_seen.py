from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from failover.inventory.flow import Flow
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.mm2.filters import NameFilter
from failover.mm2.internal_topics import InternalTopics
from failover.mm2.replication_policy import policy_from
from failover.mm2.topic_selection import selection_from
from failover.model.names import TopicPartition
from failover.model.snapshot import FlowInfo
from failover.replication.topics_seen import Changes, Pair, TopicsSeen, changes, choose, missing

MAP = "failover.replication.policy.topic.map"
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def flow(**settings: str) -> Flow:
    given_settings = {key.replace("__", "."): value for key, value in settings.items()}
    policy = policy_from(given_settings, "a")
    return Flow(
        info=FlowInfo("a", "b", policy.name, policy.separator),
        policy=policy,
        topics=selection_from(given_settings, "a", "b", policy),
        groups=NameFilter(None, None),
        internal=InternalTopics.of_flow(given_settings, "a", "b", policy),
    )


def mapped(text: str) -> Flow:
    return flow(**{MAP.replace(".", "__"): text})


# -- which topics, by their names -------------------------------------------------------------------


def test_topics_are_taken_or_skipped_with_a_reason():
    found = choose(flow(topics="t.*"), ["t1", "other", "__consumer_offsets", "b.t1", "heartbeats", "mm2-x.internal"])
    assert found.targets == {"t1": "a.t1", "heartbeats": "a.heartbeats"}
    assert found.skipped == {
        "other": "not in topics",
        "__consumer_offsets": "internal topic",
        "b.t1": "not in topics",
        "mm2-x.internal": "internal topic",
    }
    assert found.faults == []


def test_what_came_from_the_target_does_not_go_back():
    found = choose(flow(), ["b.t1", "t1"])
    assert found.targets == {"t1": "a.t1"}
    assert found.skipped["b.t1"].startswith("cycle")


def test_identical_names_but_for_heartbeats():
    found = choose(flow(replication__policy__class=IDENTITY), ["t1", "heartbeats", "b.t1"])
    assert found.targets == {"t1": "t1", "heartbeats": "a.heartbeats", "b.t1": "b.t1"}


def test_two_topics_of_one_target_name_are_both_refused():
    found = choose(mapped("old-{topic}:{topic}, new-{topic}:{topic}"), ["old-x", "new-x", "new-y"])
    assert found.targets == {"new-y": "y"}
    assert {fault.topic: fault.code for fault in found.faults} == dict.fromkeys(("old-x", "new-x"), "name-collision")
    for fault in found.faults:
        assert all(word in fault.message for word in ("old-x", "new-x", "become x on b"))


def test_a_name_no_topic_may_have_is_refused():
    longest = "x" * 247
    found = choose(flow(), [longest, longest + "x"])
    assert found.targets == {longest: f"a.{longest}"}
    [fault] = found.faults
    assert (fault.code, "250 characters" in fault.message) == ("invalid-name", True)
    assert [fault.code for fault in choose(mapped("x:ü, y:.."), ["x", "y"]).faults] == ["invalid-name"] * 2


def test_no_topic_becomes_an_internal_one():
    text = "t1:__consumer_offsets, t2:mm2-offsets.a.internal, t3:failover-canary, t4:heartbeats"
    found = choose(mapped(text), ["t1", "t2", "t3", "t4", "checkpoints.internal", "t5"])
    assert found.targets == {"t5": "a.t5"}
    assert {fault.code for fault in found.faults} == {"reserved-name"}


# -- two looks ----------------------------------------------------------------------------------------

IDS = st.sampled_from([NO_TOPIC_ID, b"1" * 16, b"2" * 16, b"3" * 16])


@st.composite
def look(draw, before=TopicsSeen()):  # noqa: B008
    """A look as it can follow ``before``: topics of some partitions, of which the target has some."""
    pairs, wanted = {}, {}
    for topic in ("t", "u", "v"):
        count = draw(st.integers(0, 3))
        if not count:
            continue
        wanted[topic] = count
        source_id, target_id = draw(IDS), draw(IDS)
        for number in range(draw(st.integers(0, count))):
            tp = TopicPartition(topic, number)
            pairs[tp] = Pair(tp, TopicPartition(f"a.{topic}", number), source_id, target_id)
    return TopicsSeen(pairs=pairs, wanted=wanted, missing=missing(before, pairs, wanted))


@st.composite
def looks(draw):
    found = [TopicsSeen()]
    for _ in range(draw(st.integers(1, 5))):
        found.append(draw(look(found[-1])))
    return found


@given(looks())
def test_who_follows_the_changes_knows_what_there_is(found):
    """Routes kept by added and gone alone; their ids as of the changes told."""
    routes: dict[TopicPartition, Pair] = {}
    for before, after in itertools.pairwise(found):
        told = changes(before, after)
        for pair in told.gone:
            del routes[pair.source]
        for pair in told.added:
            assert pair.source not in routes
            routes[pair.source] = pair
        for pair in (*told.source_recreated, *told.target_recreated):
            assert pair.source in routes
        for pair in told.target_missing:
            assert pair.source in routes
            assert pair.source not in after.pairs
        anew = {pair.source for pair in (*told.source_recreated, *told.target_recreated)}
        for tp, pair in after.pairs.items():
            if tp not in anew:
                assert not _moved(routes[tp].source_id, pair.source_id)
                assert not _moved(routes[tp].target_id, pair.target_id)
            routes[tp] = pair
        assert routes.keys() == after.pairs.keys() | after.missing.keys()
        assert all(tp.partition < after.wanted[tp.topic] for tp in routes)


@given(looks())
def test_the_same_look_again_is_no_change(found):
    *_, last = found
    again = TopicsSeen(pairs=last.pairs, wanted=last.wanted, missing=missing(last, last.pairs, last.wanted))
    assert again.missing == last.missing
    assert changes(last, again) == Changes()
    assert not changes(last, again)


def test_a_target_that_was_away_is_known_to_be_another():
    tp, target = TopicPartition("t", 0), TopicPartition("a.t", 0)
    old, new = Pair(tp, target, b"1" * 16, b"2" * 16), Pair(tp, target, b"1" * 16, b"3" * 16)
    first = TopicsSeen(pairs={tp: old}, wanted={"t": 1})
    away = TopicsSeen(wanted={"t": 1}, missing=missing(first, {}, {"t": 1}))
    still = TopicsSeen(wanted={"t": 1}, missing=missing(away, {}, {"t": 1}))
    back = TopicsSeen(pairs={tp: new}, wanted={"t": 1})
    assert changes(first, away) == Changes(target_missing=(old,))
    assert changes(away, still) == Changes()
    assert changes(still, back) == Changes(target_recreated=(new,))
    assert changes(still, TopicsSeen()) == Changes(gone=(old,))


def _moved(before: bytes, after: bytes) -> bool:
    return before != after and NO_TOPIC_ID not in (before, after)
