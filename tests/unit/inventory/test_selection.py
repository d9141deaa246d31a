from __future__ import annotations

import pytest

from failover.errors import GroupNotFound, UsageError
from failover.inventory.selection import Known, Selection, choose, require_topics
from failover.model.groups import GroupType, ListedGroup
from failover.model.snapshot import NotPlanned


def listed(*names: str, type: GroupType = GroupType.CLASSIC, protocol: str = "consumer") -> dict[str, ListedGroup]:  # noqa: A002
    return {name: ListedGroup(name, type, "Empty", protocol) for name in names}


def known(source: object = (), target: object = (), checkpoints: object = (), **options: object) -> Known:
    return Known(source=dict(source), target=dict(target), checkpoints=set(checkpoints), **options)  # type: ignore[call-overload,arg-type]


def everything(_: str) -> bool:
    return True


def test_every_known_group_is_chosen_in_name_order_wherever_it_is_known_from() -> None:
    chosen = choose(Selection(), known(listed("c"), listed("a"), {"b"}), everything)
    assert chosen.groups == ("a", "b", "c")
    assert chosen.by_hand == frozenset()


def test_the_filter_leaves_groups_out_unless_they_are_named() -> None:
    where = known(listed("console-consumer-1", "app"))
    accepts = lambda name: not name.startswith("console")  # noqa: E731
    assert choose(Selection(), where, accepts).left_out == (NotPlanned("console-consumer-1", "excluded"),)
    named = choose(Selection(groups=("console-consumer-1",)), where, accepts)
    assert (named.groups, named.left_out) == (("console-consumer-1",), ())


def test_names_are_literal_and_never_split_or_matched() -> None:
    where = known(listed("a,b", "a.b", "axb"))
    assert choose(Selection(groups=("a,b",)), where, everything).groups == ("a,b",)
    assert choose(Selection(groups=("a.b",)), where, everything).groups == ("a.b",)


def test_a_pattern_matches_whole_names_and_the_filter_still_applies() -> None:
    where = known(listed("orders-1", "orders-2", "my-orders-3"))
    chosen = choose(Selection(pattern="orders-.*"), where, lambda name: name != "orders-2")
    assert chosen.groups == ("orders-1",)
    assert chosen.left_out == (NotPlanned("orders-2", "excluded"),)


def test_exclusion_wins_over_everything() -> None:
    chosen = choose(Selection(groups=("x", "y"), exclude=("x",)), known(listed("x", "y")), everything)
    assert chosen.groups == ("y",)
    chosen = choose(Selection(exclude=("x",)), known(listed("x", "y")), everything)
    assert (chosen.groups, chosen.left_out) == (("y",), (NotPlanned("x", "excluded"),))


@pytest.mark.parametrize(
    "name", ["failover.replicate.a-b", "failover.checkpoint.a-b", "drill.app", "mirrormaker2-cluster-b"]
)
def test_the_tools_own_groups_stay_out(name: str) -> None:
    assert choose(Selection(), known({}, listed(name)), everything).left_out == (NotPlanned(name, "excluded"),)


@pytest.mark.parametrize(("kind", "why"), [(GroupType.SHARE, "share"), (GroupType.STREAMS, "streams")])
def test_other_types_stay_out_unless_one_side_knows_the_id_as_a_consumer_group(kind: GroupType, why: str) -> None:
    assert choose(Selection(), known({}, listed("g", type=kind)), everything).left_out == (NotPlanned("g", why),)
    both = known(listed("g"), listed("g", type=kind))
    assert choose(Selection(), both, everything).groups == ("g",), "planned, to be refused aloud"
    assert choose(Selection(), known({}, listed("g", type=kind), {"g"}), everything).groups == ("g",)
    assert choose(Selection(groups=("g",)), known({}, listed("g", type=kind)), everything).groups == ("g",)


def test_connect_workers_are_no_consumer_groups() -> None:
    chosen = choose(Selection(), known({}, listed("a-mm2", protocol="connect")), everything)
    assert (chosen.groups, chosen.left_out) == ((), ())
    assert choose(Selection(groups=("a-mm2",)), known({}, listed("a-mm2", protocol="connect")), everything).groups


def test_a_mistyped_name_is_an_error_with_near_names() -> None:
    with pytest.raises(GroupNotFound, match="payments-svr exists on neither cluster") as caught:
        choose(Selection(groups=("payments-svr",)), known(listed("payments-svc"), listed("other")), everything)
    assert "payments-svc" in caught.value.hint


def test_an_unknown_name_goes_on_where_a_listing_was_incomplete_or_it_shall_be_created() -> None:
    partial = known(listed("x"), complete=False)
    assert choose(Selection(groups=("g",)), partial, everything).groups == ("g",)
    assert choose(Selection(groups=("g",), create=True), known(listed("x")), everything).groups == ("g",)


def test_every_mistyped_name_is_told_at_once() -> None:
    names = [f"nowhere-{number}" for number in range(8)]
    with pytest.raises(GroupNotFound, match=r"nowhere-0 exists .*; likewise nowhere-1, .* nowhere-5 and 2 more"):
        choose(Selection(groups=("x", *names)), known(listed("x")), everything)


def test_a_mistyped_name_to_leave_out_would_be_planned_and_is_an_error() -> None:
    where = known(listed("payments", "other"))
    with pytest.raises(GroupNotFound, match="--exclude-group: group paymets exists on neither") as caught:
        choose(Selection(exclude=("paymets",)), where, everything)
    assert caught.value.hint == "did you mean payments?"
    # it may be a group of the source alone, or of a broker that gave no answer
    for silent in (known({}, listed("x"), silent_source="a"), known(listed("x"), complete=False)):
        assert choose(Selection(exclude=("y",)), silent, everything).groups == ("x",)


def test_what_is_left_out_by_hand_is_said_even_of_connect_workers() -> None:
    where = known({}, listed("a-mm2", protocol="connect"))
    assert choose(Selection(exclude=("a-mm2",)), where, everything).left_out == (NotPlanned("a-mm2", "excluded"),)


def test_topics_by_their_name_on_either_side() -> None:
    mirrored = {"a.orders": "orders", "a.fees": "fees"}
    assert require_topics((), mirrored, "a->b") == mirrored
    assert require_topics(("orders",), mirrored, "a->b") == {"a.orders": "orders"}
    assert require_topics(("a.orders", "fees"), mirrored, "a->b") == mirrored
    with pytest.raises(UsageError, match="topic feed is not mirrored by a->b"):
        require_topics(("fees", "feed"), mirrored, "a->b")


def test_a_silent_source_is_named_in_the_error() -> None:
    with pytest.raises(GroupNotFound, match=r"primary was not asked or gave no answer"):
        choose(Selection(groups=("g",)), known({}, silent_source="primary"), everything)


def test_a_pattern_without_a_match_and_one_that_is_none_are_errors() -> None:
    with pytest.raises(GroupNotFound, match="no group matches"):
        choose(Selection(pattern="nothing.*"), known(listed("x")), everything)
    with pytest.raises(UsageError, match="is no regular expression"):
        choose(Selection(pattern="("), known(listed("x")), everything)
    with pytest.raises(GroupNotFound) as caught:
        choose(Selection(pattern="orders-*"), known(listed("orders-1")), everything)
    assert caught.value.hint == "if a shell pattern was meant, write orders-.*"


def test_a_pattern_is_read_as_the_flows_own_filter_is() -> None:
    chosen = choose(Selection(pattern=r"(?!old)\p{Lower}+"), known(listed("older", "newer", "UPPER")), everything)
    assert chosen.groups == ("newer",)


def test_five_thousand_groups_are_chosen_from_both_sides() -> None:
    source = listed(*(f"app-{number:04}" for number in range(5000)))
    target = listed(*(f"console-consumer-{number}" for number in range(2500)))
    chosen = choose(Selection(), known(source, target), lambda name: name.startswith("app-"))
    assert (len(chosen.groups), len(chosen.left_out)) == (5000, 2500)
