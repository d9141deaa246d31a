"""Listens for HTTP while something else runs in the same event loop."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator

from aiohttp import web

from failover.errors import UsageError
from failover.serve.access import HEALTH, as_json, guard
from failover.serve.exposition import CONTENT_TYPE
from failover.serve.process_metrics import ProcessMetrics
from failover.serve.settings import RestSettings

_log = logging.getLogger(__name__)

_LARGEST_BODY = 1 << 20
_HEALTH = {
    "healthy": (200, "all that is to run runs"),
    "starting": (503, "the clusters have not answered yet"),
    "unhealthy": (500, "something does not run; the log says what"),
}


def application(
    settings: RestSettings,
    *,
    metrics: Callable[[], str],
    health: Callable[[], str],
    failed: Callable[[], Collection[str]] = tuple,
    routes: Iterable[web.RouteDef] = (),
) -> web.Application:
    """Makes the application: ``/metrics``, ``/health`` and ``routes``, behind the guard.

    ``metrics`` gives the page's own part; ``health`` says healthy, starting or unhealthy; ``failed`` names what does
    not run, and why is the log's to say, since anyone may ask for health.
    """
    process = ProcessMetrics()

    async def show_metrics(_: web.Request) -> web.Response:
        return web.Response(body=(metrics() + process.render()).encode(), headers={"Content-Type": CONTENT_TYPE})

    async def show_health(request: web.Request) -> web.Response:
        if "alive" in request.query:
            return web.json_response({"status": "alive", "message": "this process answers"})
        state = health()
        status, message = _HEALTH[state]
        if state == "unhealthy" and (names := sorted(failed())):
            message = f"{', '.join(names)} {'does' if len(names) == 1 else 'do'} not run; the log says why"
        return web.json_response({"status": state, "message": message}, status=status)

    found = web.Application(middlewares=[as_json, guard(settings)], client_max_size=_LARGEST_BODY)
    own = [web.get("/metrics", show_metrics), web.get(HEALTH, show_health)]
    found.add_routes(each for route in (*own, *routes) for each in _also_with_slash(route))
    return found


def _also_with_slash(route: web.RouteDef) -> Iterator[web.RouteDef]:
    """Gives a route, and the same with a slash at its end, which Kafka Connect takes as well."""
    yield route
    if not route.path.endswith("/"):
        yield web.RouteDef(route.method, f"{route.path}/", route.handler, route.kwargs)


@contextlib.asynccontextmanager
async def listening(settings: RestSettings, app: web.Application) -> AsyncIterator[str]:
    """Answers while the context lasts; gives the URL. Raises ``UsageError`` where the address cannot be had."""
    context = settings.tls()
    runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.host, settings.port, ssl_context=context)
        try:
            await site.start()
        except OSError as error:
            raise UsageError(
                f"--rest: cannot listen on {settings.host}:{settings.port}: {error.strerror or error}",
                hint="choose another HOST:PORT, or end who uses it",
            ) from error
        port = runner.addresses[0][1]
        url = f"{settings.url.rpartition(':')[0]}:{port}"
        _log.info("REST on %s", url)
        yield url
    finally:
        await runner.cleanup()
