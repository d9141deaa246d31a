"""The status page: one HTML file, and its values as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from importlib.resources import files

from aiohttp import web

from failover.serve.access import ApiError
from failover.serve.history import History

_EVERY_SECONDS = 2.0
_MOST_LISTENERS = 20
_NONCE = "{{nonce}}"


class StatusPage:
    """Serves ``/ui`` and ``/ui/events``; those who listen share what is looked up."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._page = (files("failover.serve") / "status.html").read_text("utf-8")
        self._listeners = 0
        self._ended = asyncio.Event()
        self._event = b""
        self._due = 0.0

    def routes(self) -> list[web.RouteDef]:
        """Gives the routes."""
        return [web.get("/ui", self.page), web.get("/ui/events", self.events)]

    async def end(self, _: web.Application) -> None:
        """Ends what is being sent: the server shuts down."""
        self._ended.set()

    async def page(self, _: web.Request) -> web.Response:
        """Answers the page, which may load nothing from elsewhere and run nothing but its own script."""
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self';"
            " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        headers = {"Content-Security-Policy": policy, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        return web.Response(text=self._page.replace(_NONCE, nonce), content_type="text/html", headers=headers)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Sends what the page shows, now and every two seconds, until the page is gone."""
        if self._listeners >= _MOST_LISTENERS:
            raise ApiError(503, f"{_MOST_LISTENERS} pages are open already")
        self._listeners += 1
        try:
            stream = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
            await stream.prepare(request)
            with contextlib.suppress(ConnectionError):
                while not self._ended.is_set():
                    await stream.write(self._latest())
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._ended.wait(), _EVERY_SECONDS)
            return stream
        finally:
            self._listeners -= 1

    def _latest(self) -> bytes:
        now = asyncio.get_running_loop().time()
        if now >= self._due:
            self._event = f"data: {json.dumps(self._history.now())}\n\n".encode()
            self._due = now + _EVERY_SECONDS / 2
        return self._event
