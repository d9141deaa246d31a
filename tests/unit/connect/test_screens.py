"""Screens that stay one screen whatever a connector is called or says."""

from __future__ import annotations

from failover.connect.acting import Acted
from failover.connect.deploying import Change, Deployment, Step
from failover.connect.mirrors import Mirror
from failover.connect.values import Offset, Task
from failover.report.connect_text import acted_text, deployment_text, list_text, offsets_text, question, status_text
from failover.report.encode import to_json

HOSTILE = "\x1b[31mred\n<script>\u202e"
BAD = Mirror(
    name=HOSTILE,
    kind="source",
    source=HOSTILE,
    target="b",
    state="RUNNING",
    tasks=(Task(0, "FAILED", HOSTILE, f"{HOSTILE}\n\tat x"),),
)
GOOD = Mirror(name="ok", kind="heartbeat", source="a", target="b", state="RUNNING", tasks=(Task(0, "RUNNING"),))


def test_nothing_from_outside_reaches_the_terminal_as_it_is():
    step = Step(
        name=HOSTILE,
        kind="source",
        action="update",
        changes=(Change(HOSTILE, HOSTILE, ""),),
        errors={HOSTILE: (HOSTILE,)},
    )
    deployment = Deployment(flow=HOSTILE, url="u", connect_version=HOSTILE, steps=(step,), extra=(HOSTILE,))
    acted = Acted(verb="stop", flow=HOSTILE, at=HOSTILE, outcome="undone", connectors=(BAD,), undone=(HOSTILE,))
    screens = [
        list_text(HOSTILE, HOSTILE, [BAD], [(HOSTILE, HOSTILE, HOSTILE)]),
        status_text(HOSTILE, [BAD]),
        offsets_text([(HOSTILE, Offset({"cluster": HOSTILE, "topic": HOSTILE, "partition": 0}, {"offset": 1}))]),
        deployment_text(deployment),
        acted_text(acted),
        question("stop", [BAD], HOSTILE),
        to_json(acted),
    ]
    for screen in screens:
        assert "\x1b" not in screen
        assert "\u202e" not in screen
        assert "red" in screen


def test_what_failed_comes_first_with_its_reason_and_the_next_command():
    lines = status_text("c:8083", [GOOD, BAD]).splitlines()
    assert lines[0] == "c:8083   2 connectors, 1 failed"
    assert lines[3].split()[1] == "source"
    assert "task 0" in "\n".join(lines)
    assert lines[-1].startswith("next: failover connect restart --only-failed")
    assert max(map(len, question("stop", [GOOD], "https://connect.example:8083").splitlines())) <= 100


def test_a_flow_that_all_have_is_named_once():
    assert "FLOW" in list_text("c", "4.1.1", [GOOD, BAD], [])
    one = status_text("c", [GOOD])
    assert one.startswith("a->b on c   1 connector, all running")
    assert "FLOW" not in one


def test_positions_name_the_record_that_comes_next():
    rows = [("s", Offset({"cluster": "a", "topic": "t", "partition": 3}, {"offset": 41}))]
    rows.append(("h", Offset({"sourceClusterAlias": "a", "targetClusterAlias": "b"}, {"offset": 0})))
    text = offsets_text(rows)
    assert "t-3" in text
    assert "41" in text
    assert "42" in text
    assert "1 entry of checkpoints and heartbeats" in text
    assert "No position is stored" in offsets_text([])


def test_running_says_that_states_are_not_all():
    assert "do not say" in status_text("c", [GOOD])
    assert "next: failover connect deploy" in list_text("c", "4.1.1", [], [])
