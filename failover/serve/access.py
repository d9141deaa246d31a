"""Who may ask what: credentials for every path but ``/health``, and no help for a browser that others steer."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import logging

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from failover.serve.settings import RestSettings, is_loopback

_log = logging.getLogger(__name__)

HEALTH = "/health"
_READING = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})


class ApiError(Exception):
    """Says why a request fails, as Kafka Connect words it: a status and a message in JSON."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def error_response(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    """Gives an error as Kafka Connect does."""
    body = json.dumps({"error_code": status, "message": message})
    return web.Response(status=status, text=body, content_type="application/json", headers=headers)


@web.middleware
async def as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Makes JSON of every error; what nobody expects is logged and says nothing of itself."""
    try:
        return await handler(request)
    except ApiError as error:
        return error_response(error.status, error.message)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return error_response(error.status, f"HTTP {error.status} {error.reason}", headers)
    except Exception:  # noqa: BLE001 - a defect in an answer is no reason to end the copying
        _log.exception("REST %s %s: unexpected error", request.method, request.path)
        return error_response(500, "unexpected error; the log has it")


def guard(settings: RestSettings) -> Middleware:
    """Makes the middleware that lets through what may be asked."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path == HEALTH and request.method in _READING:
            return await handler(request)
        if settings.guarded:
            if not _known(settings, request.headers.get(hdrs.AUTHORIZATION, "")):
                how = 'Basic realm="failover", charset="UTF-8"' if settings.password is not None else "Bearer"
                return error_response(401, "credentials are required", {hdrs.WWW_AUTHENTICATE: how})
        elif not _local(settings, request.host):
            # A page elsewhere may have its own name lead to this machine, and then speak as if it came from here.
            return error_response(403, "the Host header names another machine")
        if request.method not in _READING and not _own_origin(request):
            return error_response(403, "the request comes from a page of another origin")
        return await handler(request)

    return guarded


def _known(settings: RestSettings, header: str) -> bool:
    scheme, _, value = header.partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer" and settings.token is not None:
        return _same(value, settings.token.reveal())
    if scheme.lower() == "basic" and settings.password is not None:
        try:
            decoded = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return False
        return _same(decoded, f"{settings.user}:{settings.password.reveal()}")
    return False


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _local(settings: RestSettings, host: str) -> bool:
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    name = name.strip("[]")
    return name == settings.host or is_loopback(name)


def _own_origin(request: web.Request) -> bool:
    origin = request.headers.get(hdrs.ORIGIN)
    return origin is None or origin.partition("://")[2] == request.host
