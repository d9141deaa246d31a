"""The state machine against everything that can happen to a run: failures, refusals, crashes, resumption, undo."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from failover.runbook import events as e
from failover.runbook.engine import Ask, Begin, Finish, RunState, Settle, Skip, Status, Undo, decide, fold
from failover.runbook.playbook import Action, Confirm, Playbook, Retry, Step, When

NOW = datetime(2026, 11, 30, tzinfo=UTC)
MANUAL = Action(uses="manual")


def step(name: str, **more) -> Step:
    return Step(id=name, title=name, action=MANUAL, **more)


def book(*steps: Step) -> Playbook:
    return Playbook(name="book", description="", variables=(), steps=steps)


def started(**more) -> e.Started:
    return e.Started(
        at=NOW,
        run_id="p-1",
        playbook="book",
        digest="",
        variables=more.pop("variables", {}),
        operator="ann",
        host="h",
        tool_version="1",
        **more,
    )


def failed(name: str, exit_code: int = 3) -> e.Failed:
    return e.Failed(NOW, name, exit_code, "refused", "no")


def after(playbook: Playbook, *events: e.Event, undoable=()):
    return decide(playbook, fold(playbook, [started(), *events]), undoable)


def done(*names: str) -> list[e.Event]:
    return [event for name in names for event in (e.Begun(NOW, name, 1), e.Succeeded(NOW, name, {}))]


def test_steps_follow_one_another_and_the_run_ends():
    playbook = book(step("a"), step("b"))
    assert after(playbook) == Begin("a", 1, 0.0)
    assert after(playbook, *done("a")) == Begin("b", 1, 0.0)
    assert after(playbook, *done("a", "b")) == Finish("done", 0)


def test_a_failure_puts_back_in_reverse_the_failed_step_first_and_ends_with_4():
    playbook = book(step("a"), step("b"), step("c"))
    events: list[e.Event] = [*done("a", "b"), e.Begun(NOW, "c", 1), failed("c")]
    every = ("a", "b", "c")
    assert after(playbook, *events, undoable=every) == Undo("c")
    events += [e.UndoBegun(NOW, "c"), e.Undone(NOW, "c", "")]
    assert after(playbook, *events, undoable=every) == Undo("b")
    assert after(playbook, *events, undoable=("a", "c")) == Undo("a")
    events += [e.Undone(NOW, "b", ""), e.Undone(NOW, "a", "")]
    assert after(playbook, *events, undoable=every) == Finish("undone", 4, "c")


def test_where_nothing_was_to_be_put_back_the_failure_is_the_exit_code():
    playbook = book(step("a"), step("b"))
    assert after(playbook, *done("a"), e.Begun(NOW, "b", 1), failed("b", 8)) == Finish("failed", 8, "b")


def test_what_cannot_be_put_back_does_not_keep_the_rest_from_it():
    playbook = book(step("a"), step("b"))
    events: list[e.Event] = [
        *done("a"),
        e.Begun(NOW, "b", 1),
        failed("b", 8),
        e.UndoBegun(NOW, "b"),
        e.UndoFailed(NOW, "b", "no"),
    ]
    assert after(playbook, *events, undoable=("a", "b")) == Undo("a")
    events.append(e.Undone(NOW, "a", ""))
    assert after(playbook, *events, undoable=("a", "b")) == Finish("stuck", 8, "b")
    events += [e.Finished(NOW, "stuck", 8), e.Resumed(NOW, "bob", "h")]
    assert after(playbook, *events, undoable=("a", "b")) == Undo("b")


def test_after_the_point_of_no_return_nothing_is_put_back():
    playbook = book(step("a"), step("b", final=True), step("c"))
    events: list[e.Event] = [*done("a", "b"), e.Begun(NOW, "c", 1), failed("c", 6)]
    assert after(playbook, *events, undoable=("a", "b", "c")) == Finish("failed", 6, "c")
    assert after(playbook, *events, e.TurnedBack(NOW, "ann"), undoable=("a", "b", "c")) == Finish("failed", 6, "c")
    events = [*done("a"), e.Begun(NOW, "b", 1), failed("b", 6)]
    assert after(playbook, *events, undoable=("a", "b", "c")) == Finish("failed", 6, "b")


def test_a_wish_puts_everything_back_also_what_is_cut_short():
    playbook = book(step("a"), step("b"))
    events: list[e.Event] = [*done("a"), e.Begun(NOW, "b", 1), e.Resumed(NOW, "ann", "h"), e.TurnedBack(NOW, "ann")]
    assert after(playbook, *events, undoable=("a", "b")) == Undo("b")


def test_retries_are_counted_and_waited_for():
    playbook = book(step("a", retry=Retry(2, 7.0), on_failure="stop"))
    events: list[e.Event] = [e.Begun(NOW, "a", 1), failed("a")]
    assert after(playbook, *events) == Begin("a", 2, 7.0)
    events += [e.Begun(NOW, "a", 2), failed("a"), e.Begun(NOW, "a", 3), failed("a")]
    assert after(playbook, *events) == Finish("failed", 3, "a")
    events += [e.Finished(NOW, "failed", 3), e.Resumed(NOW, "bob", "h")]
    assert after(playbook, *events) == Begin("a", 1, 0.0)


def test_a_failure_to_go_on_after_makes_the_run_partly_done():
    playbook = book(step("a", on_failure="continue"), step("b"))
    events: list[e.Event] = [e.Begun(NOW, "a", 1), failed("a")]
    assert after(playbook, *events) == Begin("b", 1, 0.0)
    assert after(playbook, *events, *done("b")) == Finish("partly", 4, "a")


def test_questions_come_before_and_a_no_ends_it_until_it_is_resumed():
    playbook = book(step("a", confirm=Confirm("Go?")))
    assert after(playbook) == Ask("a")
    assert after(playbook, e.Declined(NOW, "a")) == Finish("declined", 3, "a")
    assert after(playbook, e.Declined(NOW, "a"), e.Resumed(NOW, "bob", "h")) == Ask("a")
    assert after(playbook, e.Confirmed(NOW, "a", "ann")) == Begin("a", 1, 0.0)


def test_what_was_cut_short_is_looked_at_before_anything_else():
    playbook = book(step("a"), step("b"))
    assert after(playbook, e.Begun(NOW, "a", 1), e.Resumed(NOW, "ann", "h")) == Settle("a")
    assert after(playbook, e.Begun(NOW, "a", 1), e.NotDone(NOW, "a")) == Begin("a", 1, 0.0)


def test_conditions_and_begin_at():
    playbook = book(
        step("a"), step("b", when=When("{{ x }}", "up", negated=True)), step("c", when=When("{{ steps.b.y }}"))
    )

    def following(*events: e.Event, **more):
        return decide(playbook, fold(playbook, [started(**more), *events]), ())

    assert following(variables={"x": "up"}, begins_at="b") == Skip("a", "begun later, by --from")
    skipped = e.Skipped(NOW, "a", "")
    assert following(skipped, variables={"x": "up"}, begins_at="b") == Skip("b", "its condition does not hold")
    assert following(skipped, variables={"x": "down"}, begins_at="b") == Begin("b", 1, 0.0)
    last = following(skipped, e.Skipped(NOW, "b", ""), variables={"x": "up"}, begins_at="b")
    assert isinstance(last, Skip)
    assert "nothing is known of steps.b.y" in last.why


steps: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    on_failure=st.sampled_from(["stop", "continue", "undo", "undo"]),
    retry=st.sampled_from([None, None, Retry(1, 1.0)]),
    confirm=st.sampled_from([None, None, Confirm("Go?")]),
    final=st.sampled_from([False, False, False, True]),
    when=st.sampled_from([None, None, None, When(False)]),
)


@given(st.lists(steps, min_size=1, max_size=5), st.data())
def test_whatever_happens_the_order_holds_and_nothing_is_put_back_after_a_final_step(rows, data):
    playbook = book(*(step(f"s{number}", **row) for number, row in enumerate(rows)))
    undoable = {each.id for each in playbook.steps if data.draw(st.booleans())}
    names = [each.id for each in playbook.steps]
    events: list[e.Event] = [started()]
    undone: list[str] = []
    clock = NOW
    for _ in range(200):
        clock += timedelta(seconds=1)
        state = fold(playbook, events)
        following = decide(playbook, state, undoable)
        if isinstance(following, Finish):
            check_end(playbook, state, following, undoable)
            events.append(e.Finished(clock, following.outcome, following.exit_code))
            if following.outcome in ("done", "undone") or not data.draw(st.booleans()):
                return
            events.append(e.Resumed(clock, "bob", "h"))
            undone.clear()
            continue
        name = following.step
        match following:
            case Skip():
                events.append(e.Skipped(clock, name, following.why))
            case Ask():
                yes = data.draw(st.booleans())
                events.append(e.Confirmed(clock, name, "ann") if yes else e.Declined(clock, name))
            case Begin():
                before = [state.steps[each] for each in names[: names.index(name)]]
                assert not undone
                assert all(
                    each.status in (Status.DONE, Status.SKIPPED)
                    or (each.status is Status.FAILED and playbook.steps[number].on_failure == "continue")
                    for number, each in enumerate(before)
                )
                assert state.steps[name].confirmed or playbook.step(name).confirm is None
                events.append(e.Begun(clock, name, following.attempt))
                outcome = data.draw(st.sampled_from(["done", "done", "failed", "crash"]))
                if outcome == "crash":
                    events.append(e.Resumed(clock, "bob", "h"))
                else:
                    events.append(e.Succeeded(clock, name, {}) if outcome == "done" else failed(name))
            case Settle():
                assert isinstance(events[-1], (e.Resumed, e.TurnedBack))
                events.append(
                    data.draw(st.sampled_from([e.Succeeded(clock, name, {}), e.NotDone(clock, name), failed(name, 7)]))
                )
            case Undo():
                assert not state.final_begun
                assert name in undoable
                assert not undone or names.index(name) <= names.index(undone[-1])
                undone.append(name)
                events.append(e.UndoBegun(clock, name))
                how = data.draw(st.sampled_from(["done", "done", "failed", "crash"]))
                if how == "done":
                    events.append(e.Undone(clock, name, ""))
                elif how == "failed":
                    events.append(e.UndoFailed(clock, name, "no"))
                else:
                    events.append(e.Resumed(clock, "bob", "h"))
        if data.draw(st.integers(0, 19)) == 0:
            events.append(e.TurnedBack(clock, "ann"))


def check_end(playbook: Playbook, state: RunState, end: Finish, undoable) -> None:
    statuses = {each.id: state.steps[each.id].status for each in playbook.steps}
    if end.outcome == "done":
        assert set(statuses.values()) <= {Status.DONE, Status.SKIPPED}
        assert end.exit_code == 0
    elif end.outcome == "undone":
        touched = {name for name, status in statuses.items() if status not in (Status.WAITING, Status.SKIPPED)}
        assert all(statuses[name] is Status.UNDONE for name in touched & undoable)
        assert end.exit_code == 4
        assert not state.final_begun
    elif end.outcome == "stuck":
        assert Status.STUCK in statuses.values()
        assert end.exit_code != 0
    else:
        assert end.exit_code != 0
