"""Kafka Connect's REST for the connectors of the flows that run here: paths, status codes and shapes are Connect's.

What makes or deletes connectors is refused: they come from the configuration.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from failover import __version__
from failover.config.connect_json import kind_of
from failover.config.mm2_keys import SOURCE
from failover.errors import FailoverError
from failover.model.names import TopicPartition
from failover.replication.switch import Target
from failover.serve import offsets, plugins, shapes
from failover.serve.access import ApiError
from failover.serve.board import Board, Connector, State
from failover.serve.loggers import Loggers

_FIXED = "connectors come from the configuration; change it and start the process again"


class ConnectApi:
    """Answers for a board. ``worker``: host and port, by which Connect names a worker; ``clock``: epoch seconds."""

    def __init__(self, board: Board, *, worker: str, clock: Callable[[], float]) -> None:
        self._board = board
        self._worker = worker
        self._clock = clock
        self._loggers = Loggers()

    def routes(self) -> list[web.RouteDef]:
        """Gives the routes."""
        one = "/connectors/{connector}"
        fixed = [("POST", "/connectors"), ("DELETE", one), ("PUT", f"{one}/config"), ("PATCH", f"{one}/config")]
        return [
            web.get("/", self.root),
            web.get("/connectors", self.connectors),
            web.get(one, self.info),
            web.get(f"{one}/config", self.config),
            web.get(f"{one}/status", self.status),
            web.get(f"{one}/tasks", self.tasks),
            web.get(f"{one}/tasks/{{task}}/status", self.task_status),
            web.get(f"{one}/offsets", self.offsets),
            web.patch(f"{one}/offsets", self.alter_offsets),
            web.delete(f"{one}/offsets", self.reset_offsets),
            web.get(f"{one}/topics", self.topics),
            web.put(f"{one}/topics/reset", self.reset_topics),
            web.put(f"{one}/pause", self.pause),
            web.put(f"{one}/resume", self.resume),
            web.put(f"{one}/stop", self.stop),
            web.post(f"{one}/restart", self.restart),
            web.post(f"{one}/tasks/{{task}}/restart", self.restart_task),
            web.get("/connector-plugins", self.plugins),
            web.get("/connector-plugins/{plugin}/config", self.plugin),
            web.put("/connector-plugins/{plugin}/config/validate", self.validate),
            web.get("/admin/loggers", self.loggers),
            web.get("/admin/loggers/{logger}", self.logger),
            web.put("/admin/loggers/{logger}", self.turn_logger),
            *(web.route(method, path, self.fixed) for method, path in fixed),
        ]

    # -- what is there ---------------------------------------------------------------------------

    async def root(self, _: web.Request) -> web.Response:
        """Names the version and the target's cluster."""
        return _answer({"version": __version__, "commit": "", "kafka_cluster_id": self._board.cluster_id})

    async def connectors(self, request: web.Request) -> web.Response:
        """Lists connectors; with ``expand``, as much of each."""
        wanted = set(request.query.getall("expand", []))
        if not wanted:
            return _answer(list(self._board.connectors))
        parts: dict[str, Callable[[Connector], Any]] = {
            "info": shapes.info,
            "status": lambda each: shapes.status(each, self._worker),
        }
        chosen = {part: make for part, make in parts.items() if part in wanted}
        return _answer(
            {name: {part: make(each) for part, make in chosen.items()} for name, each in self._board.connectors.items()}
        )

    async def info(self, request: web.Request) -> web.Response:
        """Shows one connector."""
        return _answer(shapes.info(self._connector(request)))

    async def config(self, request: web.Request) -> web.Response:
        """Shows its settings, secrets masked."""
        return _answer(shapes.config_of(self._connector(request)))

    async def status(self, request: web.Request) -> web.Response:
        """Shows its state and those of its tasks."""
        return _answer(shapes.status(self._connector(request), self._worker))

    async def tasks(self, request: web.Request) -> web.Response:
        """Lists its tasks."""
        connector = self._connector(request)
        return _answer(shapes.tasks(connector, connector.flow.look(self._clock())))

    async def task_status(self, request: web.Request) -> web.Response:
        """Shows a task's state."""
        connector, number = self._task(request)
        return _answer(shapes.task_status(connector, number, self._worker))

    async def offsets(self, request: web.Request) -> web.Response:
        """Shows how far it is."""
        connector = self._connector(request)
        return _answer(shapes.offsets(connector, connector.flow.look(self._clock())))

    async def topics(self, request: web.Request) -> web.Response:
        """Lists the topics it writes to."""
        return _answer(shapes.topics(self._connector(request)))

    async def reset_topics(self, request: web.Request) -> web.Response:
        """Refuses: what is listed is what there is, not what was seen since."""
        self._connector(request)
        raise ApiError(403, "Topic tracking reset is disabled.")

    # -- what is wanted --------------------------------------------------------------------------

    async def pause(self, request: web.Request) -> web.Response:
        """Has it pause; it is told, and the answer does not wait."""
        self._connector(request).switch.turn(Target.PAUSED)
        return web.Response(status=202)

    async def resume(self, request: web.Request) -> web.Response:
        """Has it go on."""
        self._connector(request).switch.turn(Target.RUNNING)
        return web.Response(status=202)

    async def stop(self, request: web.Request) -> web.Response:
        """Has it stop: nothing is kept open for it."""
        self._connector(request).switch.turn(Target.STOPPED)
        return web.Response(status=204)

    async def restart(self, request: web.Request) -> web.Response:
        """Has it begin again; with ``onlyFailed``, if it has failed."""
        connector = self._connector(request)
        only_failed, with_tasks = (_flag(request, name) for name in ("onlyFailed", "includeTasks"))
        self._restart(connector, only_failed=only_failed)
        if not only_failed and not with_tasks:
            return web.Response(status=204)
        return _answer(shapes.status(connector, self._worker), status=202)

    async def restart_task(self, request: web.Request) -> web.Response:
        """Has a task begin again; it is the connector's only one."""
        connector, _ = self._task(request)
        self._restart(connector, only_failed=False)
        return web.Response(status=204)

    async def fixed(self, request: web.Request) -> web.Response:
        """Refuses what would make, change or delete a connector."""
        if "connector" in request.match_info:
            self._connector(request)
        raise ApiError(405, _FIXED)

    async def alter_offsets(self, request: web.Request) -> web.Response:
        """Has partitions of a stopped connector go on elsewhere, once it is resumed."""
        entries = offsets.read_body(await _text(request))
        connector = self._connector(request)
        if not connector.stopped:
            raise offsets.not_stopped(connector.name)
        offsets.check(connector.kind, entries)
        copied: dict[TopicPartition, int] = {}
        others: list[offsets.Altered] = []
        source = connector.flow.config.source.alias if connector.kind == SOURCE else ""
        for entry in entries:
            place = offsets.own_place(entry, source) if source else None
            if place is None:
                others.append(entry)
            else:
                copied[place] = 0 if entry.offset is None else entry.offset["offset"] + 1
        if copied:
            await self._choose(connector, copied)
        connector.stored.alter(others)
        return _answer({"message": offsets.ALTERED})

    async def reset_offsets(self, request: web.Request) -> web.Response:
        """Has every partition of a stopped connector begin as a new one, once it is resumed."""
        connector = self._connector(request)
        if not connector.stopped:
            raise offsets.not_stopped(connector.name)
        if connector.kind == SOURCE:
            await self._choose(connector, None)
        connector.stored.reset(shapes.own_offsets(connector, connector.flow.look(self._clock())))
        return _answer({"message": offsets.RESET})

    # -- plug-ins and loggers --------------------------------------------------------------------

    async def plugins(self, _: web.Request) -> web.Response:
        """Lists the connector classes."""
        return _answer(plugins.plugins())

    async def plugin(self, request: web.Request) -> web.Response:
        """Lists a class's settings."""
        return _answer(plugins.definitions(_plugin(request)))

    async def validate(self, request: web.Request) -> web.Response:
        """Says what is wrong with settings for a class; nothing is changed."""
        kind = _plugin(request)
        given = await _body(request)
        named = given.get("connector.class")
        if named is not None and kind_of(str(named)) != kind:
            raise ApiError(
                400, f"Included connector type {named} does not match request type {_name(request, 'plugin')}"
            )
        return _answer(
            plugins.validate(kind, {key: value if value is None else str(value) for key, value in given.items()})
        )

    async def loggers(self, _: web.Request) -> web.Response:
        """Lists the loggers that have a level."""
        return _answer(self._loggers.all())

    async def logger(self, request: web.Request) -> web.Response:
        """Shows a logger's level."""
        name = _name(request, "logger")
        found = self._loggers.one(name)
        if found is None:
            raise ApiError(404, f"Logger {name} not found.")
        return _answer(found)

    async def turn_logger(self, request: web.Request) -> web.Response:
        """Sets a level."""
        name, level = _name(request, "logger"), (await _body(request)).get("level")
        if level is None:
            raise ApiError(400, "Desired 'level' parameter was not specified in request.")
        changed = self._loggers.turn(name, str(level))
        if changed is None:
            raise ApiError(404, f"invalid log level '{level}', or no logger {name}.")
        return web.Response(status=204) if request.query.get("scope") == "cluster" else _answer(changed)

    # -- inside ----------------------------------------------------------------------------------

    def _connector(self, request: web.Request) -> Connector:
        name = _name(request, "connector")
        found = self._board.connectors.get(name)
        if found is None:
            raise ApiError(404, f"Connector {name} not found")
        return found

    def _task(self, request: web.Request) -> tuple[Connector, int]:
        connector, task = self._connector(request), _name(request, "task")
        if not task.isascii() or not task.isdigit() or int(task) >= connector.tasks:
            raise ApiError(404, f"No status found for task {connector.name}-{task}")
        return connector, int(task)

    async def _choose(self, connector: Connector, wanted: Mapping[TopicPartition, int] | None) -> None:
        opened = connector.flow.open
        try:
            done = opened is not None and await opened.choose(wanted)
        except FailoverError as error:
            raise ApiError(500, f"{error}; {error.hint}" if error.hint else str(error)) from error
        if not done:
            raise offsets.not_stopped(connector.name)

    def _restart(self, connector: Connector, *, only_failed: bool) -> None:
        if connector.state in (State.FAILED, State.RESTARTING):
            self._board.restart(connector.flow.name)
        elif not only_failed:
            connector.switch.restart()


def _answer(value: object, status: int = 200) -> web.Response:
    return web.json_response(value, status=status)


def _name(request: web.Request, part: str) -> str:
    return request.match_info[part]


def _flag(request: web.Request, name: str) -> bool:
    return request.query.get(name, "false").lower() == "true"


def _plugin(request: web.Request) -> str:
    name = _name(request, "plugin")
    kind = kind_of(name)
    if kind is None:
        raise ApiError(404, f"Unknown plugin {name}")
    return kind


async def _text(request: web.Request) -> str:
    return (await request.read()).decode(errors="replace")


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        found = json.loads(await _text(request))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ApiError(400, "the body must be a JSON object")
    return found
