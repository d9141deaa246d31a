"""The kinds of steps that speak HTTP, with a server in the process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runbook.test_steps import Scene, failure, result


class Server:
    """Answers by path: (status, body); keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[tuple[str, str, str, dict[str, str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                outer.asked.append((self.command, self.path, self.rfile.read(length).decode(), dict(self.headers)))
                status, body = outer.answers.get(self.path, (404, {"error_code": 404}))
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        if not self._thread.is_alive():
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_request_is_sent_once_and_its_answer_kept(scene, server):
    server.answers["/hook?token=secret"] = (200, {"ok": True})
    with_ = f"{{url: '{server.url}/hook?token=secret', method: POST, json: {{a: 1}}, headers: {{X-Y: z}}}}"
    step = f"uses: http, with: {with_}"
    assert scene.previewed(step) == f"would send POST {server.url}/hook"
    assert result(scene.run(step)) == {"status": 200, "body": '{"ok": true}'}
    [(method, _, body, headers)] = server.asked
    assert (method, json.loads(body), headers["X-Y"]) == ("POST", {"a": 1}, "z")


def test_another_answer_than_expected_fails_without_telling_the_token(scene, server):
    server.answers["/hook?token=secret"] = (500, {"no": 1})
    said = failure(scene.run(f"uses: http, with: {{url: '{server.url}/hook?token=secret'}}"))
    assert said == f'GET {server.url}/hook was answered with 500: {{"no": 1}}'
    assert result(scene.run(f"uses: http, with: {{url: '{server.url}/none', expect: [404]}}"))["status"] == 404


def test_no_answer_fails(scene, server):
    url = server.url
    server.close()
    assert failure(scene.run(f"uses: http, with: {{url: '{url}/x'}}")).startswith(f"GET {url}/x got no answer")


def test_a_webhook_is_told_where_the_run_is(scene, server):
    server.answers["/chat"] = (204, {})
    assert result(scene.run(f"uses: notify, with: {{url: '{server.url}/chat', text: 'It begins'}}")) == {"status": 204}
    told = json.loads(server.asked[0][2])
    assert told == {
        "text": "It begins",
        "run": "p-1",
        "playbook": "x",
        "step": "s0",
        "operator": "ann",
        "source": "a",
        "target": "b",
    }
    assert "answered with 404" in failure(scene.run(f"uses: notify, with: {{url: '{server.url}/none', text: x}}"))


def test_registries_are_compared_subject_by_subject(scene, server):
    for side in ("a", "b"):
        server.answers[f"/{side}/subjects"] = (200, ["orders-value", "paid/value"])
        server.answers[f"/{side}/subjects/orders-value/versions/latest"] = (200, {"id": 7})
        server.answers[f"/{side}/subjects/paid%2Fvalue/versions/latest"] = (200, {"id": 8})
    step = f"uses: schema-ids, with: {{source_url: '{server.url}/a', target_url: '{server.url}/b/'}}"
    assert scene.previewed(step) == "2 subjects are the same"
    assert result(scene.run(step)) == {"subjects": 2}
    server.answers["/b/subjects/orders-value/versions/latest"] = (200, {"id": 9})
    del server.answers["/b/subjects/paid%2Fvalue/versions/latest"]
    assert (
        failure(scene.run(step))
        == f"2 subjects differ: orders-value has id 7 and 9; paid/value is missing in {server.url}/b/"
    )
    server.answers["/a/subjects"] = (401, {})
    assert "answered 401 to subjects" in failure(scene.run(step))
