"""How long applications stood still, read from a run's journal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from failover.runbook import events as e
from failover.runbook.library import find_playbook
from failover.runbook.outage import Outage, outages
from failover.runbook.playbook import Playbook


def at(second: int) -> datetime:
    return datetime(2026, 11, 30, tzinfo=UTC) + timedelta(seconds=second)


STARTED = e.Started(
    at=at(0), run_id="p-1", playbook="x", digest="", variables={}, operator="ann", host="h", tool_version="1"
)


def through(playbook: Playbook, *, until: str, missing: tuple[str, ...] = ()) -> list[e.Event]:
    """Is a journal in which each step takes ten seconds, up to one of them."""
    events: list[e.Event] = [STARTED]
    for number, step in enumerate(playbook.steps):
        if step.id not in missing:
            events += [e.Begun(at(10 * number), step.id, 1), e.Succeeded(at(10 * number + 9), step.id, {})]
        if step.id == until:
            break
    return events


def place(playbook: Playbook, name: str) -> int:
    return 10 * [step.id for step in playbook.steps].index(name)


def test_from_the_fence_to_the_producers_and_from_the_stop_to_the_consumers_seen_back():
    book = find_playbook("switchover")
    producers, consumers = outages(book, through(book, until="consumers-back"))
    begun = place(book, "fence")
    assert producers == Outage(
        what="producers",
        out="fence",
        begun=at(begun),
        back="move-producers",
        ended=at(place(book, "move-producers") + 9),
    )
    assert producers.seconds == place(book, "move-producers") + 9 - begun
    assert (consumers.out, consumers.back) == ("stop-consumers", "consumers-back")


def test_a_step_that_was_begun_again_began_the_first_time():
    book = find_playbook("switchover")
    events = through(book, until="fence")
    again = [*events, e.Resumed(at(500), "bob", "h"), e.Begun(at(510), "fence", 1), e.Succeeded(at(511), "fence", {})]
    assert [one.begun for one in outages(book, again)] == [at(place(book, "fence"))]


def test_those_who_are_not_back_have_no_length_and_a_way_back_ends_it():
    book = find_playbook("switchover")
    events = through(book, until="move-consumers")
    assert [(one.what, one.seconds) for one in outages(book, events)] == [("producers", None), ("consumers", None)]
    undone = ("move-consumers", "stop-consumers", "stop-producers", "fence")
    events += [e.Undone(at(900 + number), name, "") for number, name in enumerate(undone)]
    assert [(one.what, one.back, one.ended) for one in outages(book, events)] == [
        ("producers", "fence", at(903)),
        ("consumers", "stop-consumers", at(901)),
    ]


def test_where_nobody_stopped_them_it_counts_from_the_runs_beginning():
    book = find_playbook("failover")
    found = outages(book, through(book, until=book.steps[-1].id))
    assert [(one.what, one.out, one.begun, one.back) for one in found] == [
        ("producers", "", at(0), "move-producers"),
        ("consumers", "", at(0), "consumers-back"),
    ]
    assert outages(find_playbook("health-daily"), [STARTED]) == []
