"""A Connect cluster's REST interface in this process, for what a real one cannot be brought to do on purpose."""

from __future__ import annotations

import json
import re
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

SOURCE = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
CHECKPOINT = "org.apache.kafka.connect.mirror.MirrorCheckpointConnector"
HEARTBEAT = "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector"
TRACE = "org.apache.kafka.connect.errors.ConnectException: no such topic\n\tat x.Y.z(Y.java:1)\n"


class FakeConnect:
    """Is one worker with its connectors.

    ``busy``: so many requests are answered with 409 first. ``drop``: so many connections are closed without an answer.
    ``operator``: after so many looks at all connectors since a change, an operator makes everything run again.
    ``errors``: what validation says, by setting. ``requests``: method and path of each, in order.
    """

    def __init__(self) -> None:
        self.url = ""
        self.connectors: dict[str, dict[str, Any]] = {}
        self.stored: dict[str, list[dict[str, Any]]] = {}
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.busy = self.drop = 0
        self.operator: int | None = None
        self.errors: dict[str, list[str]] = {}
        self.credentials = ""
        self.answer: tuple[int, bytes] | None = None
        self.cluster_id = "target-id"
        self.plugins = [SOURCE, CHECKPOINT, HEARTBEAT]
        self.version, self.commit = "4.1.1", "abc"
        self._looks: int | None = None

    def add(
        self, name: str, config: dict[str, str], state: str = "RUNNING", tasks: tuple[str, ...] = ("RUNNING",)
    ) -> None:
        self.connectors[name] = {"config": {"name": name, **config}, "state": state, "tasks": list(tasks)}

    def add_flow(self, source: str = "a", target: str = "b", *, strimzi: bool = False) -> None:
        for class_ in (SOURCE, CHECKPOINT, HEARTBEAT):
            bare = class_.rpartition(".")[2]
            name = f"{source}->{target}.{bare}" if strimzi else f"{source}-{target}-{bare[6:-9].lower()}"
            config = {"connector.class": class_, "source.cluster.alias": source, "target.cluster.alias": target}
            self.add(name, config)

    def fail(self, name: str, task: int | None = 0, trace: str = TRACE) -> None:
        if task is None:
            self.connectors[name] |= {"state": "FAILED", "trace": trace}
        else:
            self.connectors[name]["tasks"][task] = "FAILED"
            self.connectors[name]["trace"] = trace

    def states(self) -> dict[str, str]:
        return {name: one["state"] for name, one in self.connectors.items()}

    # -- what it answers -------------------------------------------------------------------------

    def handle(self, method: str, path: str, query: str, body: Any) -> tuple[int, Any]:
        if path in ("", "/"):
            return 200, {"version": self.version, "commit": self.commit, "kafka_cluster_id": self.cluster_id}
        if path == "/connectors" and method == "POST":
            self.add(body["name"], body["config"], body["initial_state"], ())
            return 201, {"name": body["name"]}
        if path == "/connectors":
            return 200, self._all()
        if path == "/connector-plugins":
            return 200, [{"class": class_, "type": "source", "version": "4.1.1"} for class_ in self.plugins]
        if match := re.fullmatch(r"/connector-plugins/[^/]+/config/validate", path):
            rows = [{"definition": {}, "value": {"name": k, "errors": v}} for k, v in self.errors.items()]
            return 200, {"name": match.group(), "error_count": len(rows), "configs": rows}
        match = re.fullmatch(r"/connectors/([^/]+)(?:/([a-z/]+))?", path)
        assert match is not None, path
        name, rest = unquote(match[1]), match[2] or ""
        if rest == "config" and method == "PUT":
            new = name not in self.connectors
            self.add(name, {key: value for key, value in body.items() if key != "name"})
            return (201 if new else 200), {"name": name, "config": body}
        if name not in self.connectors:
            return 404, {"error_code": 404, "message": f"Connector {name} not found"}
        return self._one(method, name, rest, query, body)

    def _one(self, method: str, name: str, rest: str, query: str, body: Any) -> tuple[int, Any]:
        one = self.connectors[name]
        match method, rest:
            case "GET", "":
                return 200, {"name": name, "config": one["config"], "tasks": [], "type": "source"}
            case "GET", "status":
                return 200, self._status(name)
            case "GET", "offsets":
                return 200, {"offsets": self.stored.get(name, [])}
            case "PATCH", "offsets":
                if one["state"] != "STOPPED":
                    return 400, {"error_code": 400, "message": "Connectors must be in the STOPPED state"}
                self.stored[name] = body["offsets"]
                return 200, {"message": "The offsets for this connector have been altered successfully"}
            case "PUT", "pause":
                one["state"], one["tasks"] = "PAUSED", ["PAUSED"] * len(one["tasks"])
            case "PUT", "stop":
                one["state"], one["tasks"] = "STOPPED", []
            case "PUT", "resume":
                one["state"], one["tasks"] = "RUNNING", ["RUNNING"]
            case "POST", "restart":
                one["state"], one["tasks"] = "RUNNING", ["RUNNING"] * max(1, len(one["tasks"]))
                return 202, self._status(name)
            case _:
                return 405, {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}
        self._looks = 0
        return (204 if rest == "stop" else 202), None

    def _all(self) -> dict[str, Any]:
        if self.operator is not None and self._looks is not None:
            self._looks += 1
            if self._looks > self.operator:
                self._looks = None
                for one in self.connectors.values():
                    one["state"], one["tasks"] = "RUNNING", ["RUNNING"]
        return {
            name: {
                "info": {"name": name, "config": one["config"], "tasks": [], "type": "source"},
                "status": self._status(name),
            }
            for name, one in self.connectors.items()
        }

    def _status(self, name: str) -> dict[str, Any]:
        one = self.connectors[name]

        def row(state: str) -> dict[str, str]:
            return {"state": state, "worker_id": "w:8083"} | ({"trace": one["trace"]} if state == "FAILED" else {})

        tasks = [{"id": number, **row(state)} for number, state in enumerate(one["tasks"])]
        return {"name": name, "connector": row(one["state"]), "tasks": tasks, "type": "source"}


@contextmanager
def serving(fake: FakeConnect) -> Iterator[FakeConnect]:
    """Serves it on loopback while the block runs; sets its ``url``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Says nothing."""

        def answer(self) -> None:
            parsed = urlsplit(self.path)
            fake.requests.append(f"{self.command} {self.path}")
            fake.headers.append(dict(self.headers))
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if fake.drop:
                fake.drop -= 1
                self.close_connection = True
                return
            status, value = self.judged(parsed.path, parsed.query, json.loads(body) if body else None)
            content = value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def judged(self, path: str, query: str, body: Any) -> tuple[int, Any]:
            if fake.credentials:
                wanted = "Basic " + b64encode(fake.credentials.encode()).decode()
                if self.headers.get("Authorization") != wanted:
                    return 401, None
            if fake.busy:
                fake.busy -= 1
                return 409, {"error_code": 409, "message": "Cannot complete request momentarily due to a rebalance"}
            if fake.answer is not None:
                return fake.answer
            return fake.handle(self.command, path, query, body)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - http.server looks these names up

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
