"""What the status page is told, and that it cannot be made to say anything else."""

from __future__ import annotations

import json
import math

import msgspec

from failover.replication.snapshot import ShareNow
from failover.serve.history import History
from failover.serve.server import application
from failover.serve.status_page import StatusPage
from tests.unit.serve.scenes import LOCAL, NOW, SECRET, ask_app, board, checkpoints, flow, partition


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def test_a_thousand_partitions_make_a_small_event_with_the_worst_first(tmp_path):
    parts = [partition("orders", number, lag=float(number)) for number in range(1000)]
    parts[3] = parts[3]._replace(reason="the target refuses it", open=False)
    exact = {f"group-{number}": int(NOW * 1000) - number * 1000 for number in range(1000)}
    history = History(board(tmp_path, flow(*parts, checkpoints=checkpoints(exact))), Clock())
    found = history.now()
    (only,) = found["flows"]
    assert len(json.dumps(found)) < 5_000
    assert (only["partitions"], only["still"], only["starting"]) == (1000, 1, 0)
    assert only["trouble"] == [["orders-3", "the target refuses it"]]
    assert only["behind"][0] == ["orders-999", 999.0, 3.5]
    assert len(only["behind"]) == 20
    assert only["groups"]["late"][0] == ["group-999", 999.0]
    assert only["rpo_records"] == sum(range(1000))


def test_it_remembers_an_hour(tmp_path):
    clock = Clock()
    made = board(tmp_path, flow())
    history = History(made, clock)
    for _ in range(400):
        history.look()
        clock.now += 10
    (only,) = history.now()["flows"]
    assert len(only["points"]) == 360
    assert only["points"][-1][:3] == (clock.now - 10, 7.0, 3.5)
    made.flows["A->B"].failed(ValueError("gone"), again=True)
    history.look()
    (only,) = history.now()["flows"]
    assert only["failure"] == "gone"
    assert "points" not in only


def test_a_part_of_a_flow_is_said_to_be_one(tmp_path):
    clock = Clock()
    (whole,) = History(board(tmp_path, flow()), clock).now()["flows"]
    share = ShareNow("dr-2 (process 9)", "dr", (3, 9), False)
    (part,) = History(board(tmp_path, flow(share=share)), clock).now()["flows"]
    assert whole["share"] == ""
    assert part["share"] == "dr-2 (process 9) copies 2 of 64 shards: what follows is of its part alone"


def test_what_is_unknown_is_null(tmp_path):
    seen = flow(partition(upstream=-1, lag=math.nan, seconds=math.nan))
    (only,) = History(board(tmp_path, msgspec.structs.replace(seen, heartbeat=None)), Clock()).now()["flows"]
    assert (only["rpo_records"], only["rpo_seconds"], only["heartbeat"], only["behind"]) == (None, None, None, [])


def test_the_page_runs_its_own_script_alone_and_events_follow(tmp_path):
    made = board(tmp_path, flow(partition("</script><b>", lag=5.0)))
    page = StatusPage(History(made, Clock()))
    app = application(LOCAL, metrics=lambda: "", health=lambda: made.health, routes=page.routes())

    async def ask(client):
        answer = await client.get("/ui")
        html, policy = await answer.text(), answer.headers["Content-Security-Policy"]
        async with client.get("/ui/events") as stream:
            assert stream.content_type == "text/event-stream"
            lines = [await stream.content.readline() for _ in range(2)]
        return html, policy, lines

    html, policy, (data, blank) = ask_app(app, ask)
    nonce = policy.partition("script-src 'nonce-")[2].partition("'")[0]
    assert html.count(f'nonce="{nonce}"') == 2
    assert "default-src 'none'" in policy
    assert "{{" not in html
    assert "://" not in html.replace("http://www.w3.org/2000/svg", "")  # nothing is loaded from elsewhere
    assert blank == b"\n"
    found = json.loads(data.removeprefix(b"data: "))
    assert found["flows"][0]["behind"] == [["</script><b>-0", 5.0, 3.5]]
    assert SECRET not in html + data.decode()


def test_too_many_pages_are_refused(tmp_path):
    made = board(tmp_path, flow())
    page = StatusPage(History(made, Clock()))
    app = application(LOCAL, metrics=lambda: "", health=lambda: made.health, routes=page.routes())

    async def ask(client):
        open_streams = [await client.get("/ui/events") for _ in range(20)]
        refused = await client.get("/ui/events")
        for stream in open_streams:
            stream.close()
        return refused.status

    assert ask_app(app, ask) == 503
