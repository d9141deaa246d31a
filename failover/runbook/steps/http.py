"""One HTTP request."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

from failover.errors import StepFailed
from failover.runbook.kinds import Context, Kind, Result

_KEPT = 16_384


class Http(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``url``; ``method``; ``headers``; ``json``: the body, sent as JSON; ``ca_file``: authorities to trust instead.

    ``expect``: the answers that are success.
    """

    url: str
    method: str = "GET"
    headers: dict[str, str] = {}
    json: Any = None
    ca_file: str = ""
    expect: tuple[int, ...] = (200, 201, 202, 204)


class HttpKind(Kind[Http]):
    """Sends one HTTP request, within the step's time; it is sent once, never repeated by itself."""

    parameters = Http
    results = {"status": "the answer's status", "body": f"the first {_KEPT:,} characters of its body"}  # noqa: RUF012

    def preview(self, given: Http, context: Context) -> str:  # noqa: ARG002 - the same whoever runs it
        return f"would send {given.method} {_plain(given.url)}"

    def run(self, given: Http, context: Context) -> Result:
        status, body = send(given, context.remaining())
        if status not in given.expect:
            raise StepFailed(f"{given.method} {_plain(given.url)} was answered with {status}: {body[:200]}")
        return {"status": status, "body": body}

    def by_hand(self, given: Mapping[str, Any]) -> str:
        return f"curl -X {given.get('method', 'GET')} {shlex.quote(_plain(str(given.get('url', ''))))}"


def send(given: Http, seconds: float, *, kept: int = _KEPT) -> tuple[int, str]:
    """Sends the request and gives status and the body's beginning. Raises ``StepFailed`` when no answer comes."""
    import urllib3

    pool = urllib3.PoolManager(ca_certs=given.ca_file or None)
    try:
        with pool:
            answer = pool.request(
                given.method,
                given.url,
                headers=given.headers,
                timeout=urllib3.Timeout(total=seconds),
                retries=False,
                redirect=False,
                **({} if given.json is None else {"json": given.json}),
            )
            return answer.status, answer.data.decode("utf-8", "replace")[:kept]
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise StepFailed(
            f"{given.method} {_plain(given.url)} got no answer: {type(error).__name__}",
            hint="is the address right, and reachable from here?",
        ) from error


def _plain(url: str) -> str:
    """Gives an address without user, password and query, which may hold a token."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"


KIND = HttpKind()
