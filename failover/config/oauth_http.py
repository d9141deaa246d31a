"""Asks a token endpoint for a token with client credentials (RFC 6749; as Kafka's own HttpJwtRetriever does)."""

from __future__ import annotations

import base64
import json
import time
from typing import Any, NoReturn
from urllib.parse import quote_plus, urlencode, urlsplit

from failover.config.oauth import ClientCredentials, Token, token_of
from failover.config.secret import MASK, Secret
from failover.config.tls import ssl_context
from failover.errors import TokenUnavailable

_ATTEMPTS = 4
_ALL_ATTEMPTS_SECONDS = 10.0
"""An operator waits for this; Kafka's clients would go on trying for as long as the process lives."""

_LONGEST_ANSWER = 1 << 20
_REFUSED = {
    "invalid_client": "check clientId and clientSecret",
    "unauthorized_client": "the client may not use the grant type client_credentials: ask whoever runs the endpoint",
    "invalid_scope": "check scope",
    "unsupported_grant_type": "the endpoint must allow the grant type client_credentials",
}


def request_token(source: ClientCredentials) -> Token:
    """Requests a token, again with pauses where the failure may pass by itself. Raises ``TokenUnavailable``."""
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_after_delay, wait_exponential

    def passes(error: BaseException) -> bool:
        return isinstance(error, TokenUnavailable) and error.passing

    retrying = Retrying(
        retry=retry_if_exception(passes),
        stop=stop_after_attempt(_ATTEMPTS) | stop_after_delay(_ALL_ATTEMPTS_SECONDS),
        wait=wait_exponential(multiplier=source.backoff_seconds, max=source.longest_backoff_seconds),
        reraise=True,
    )
    return retrying(_ask, source)


def _ask(source: ClientCredentials) -> Token:
    import urllib3

    place = shown(source.url.reveal())
    context = ssl_context(source.tls) if source.tls is not None else None
    form = {"grant_type": "client_credentials"}
    form |= {name: value for name, value in (("scope", source.scope), ("audience", source.audience)) if value}
    headers = {
        "Authorization": f"Basic {_basic(source)}",
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
        "Cache-Control": "no-cache",
    }
    began = time.time()
    try:
        # A pool of its own each time: a connection kept for hours would be dead when the token is due.
        with urllib3.PoolManager(ssl_context=context, retries=False, num_pools=1) as pool:
            answer = pool.request(
                "POST",
                source.url.reveal(),
                body=urlencode(form),
                headers=headers,
                timeout=urllib3.Timeout(connect=source.connect_seconds, read=source.read_seconds),
                redirect=False,
                preload_content=False,
            )
            body = answer.read(_LONGEST_ANSWER)
            answer.release_conn()
    except urllib3.exceptions.SSLError as error:
        raise TokenUnavailable(
            f"the token endpoint {place} gives no TLS session: {_reason(error)}",
            hint="its authority can be named in the JAAS options: ssl.truststore.location",
        ) from None
    except urllib3.exceptions.HTTPError as error:
        raise TokenUnavailable(
            f"the token endpoint {place} cannot be reached: {_reason(error)}",
            hint="check sasl.oauthbearer.token.endpoint.url, and that it can be reached from here",
            passing=True,
        ) from None
    said = _json(body)
    if answer.status != 200:
        _refused(place, answer.status, said, source.client_secret)
    text = said.get("access_token") or said.get("id_token")
    if not isinstance(text, str) or not text.isascii() or not text.isprintable() or " " in text:
        raise TokenUnavailable(
            f"the token endpoint {place} answers without an access_token",
            hint="is it the token endpoint of the identity provider (not its issuer URL)?",
        )
    lives = said.get("expires_in")
    try:
        seconds = float(lives) if lives is not None else None
    except (TypeError, ValueError):
        seconds = None
    return token_of(text, subject_claim=source.subject_claim, now=began, seconds=seconds)


def shown(url: str) -> str:
    """Gives an address as it may appear in a text: without the user, password and query it may hold."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _basic(source: ClientCredentials) -> str:
    pair = source.client_id, source.client_secret.reveal()
    if source.urlencode:
        pair = quote_plus(pair[0]), quote_plus(pair[1])
    return base64.b64encode(":".join(pair).encode()).decode()


def _json(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _refused(place: str, status: int, said: dict[str, Any], secret: Secret) -> NoReturn:
    # Only these two fields (RFC 6749, section 5.2), and with care: an answer may repeat what it was sent.
    code = str(said.get("error", ""))[:60]
    detail = str(said.get("error_description", "")).replace(secret.reveal(), MASK)[:200]
    told = ": ".join(part for part in (code, detail) if part)
    raise TokenUnavailable(
        f"the token endpoint {place} answers {status}" + (f", {told}" if told else ""),
        hint=_REFUSED.get(code, "check clientId, clientSecret and sasl.oauthbearer.token.endpoint.url"),
        passing=status == 429 or status >= 500,
    )


def _reason(error: Exception) -> str:
    """Takes the last part of urllib3's nested texts, which begin with object addresses."""
    cause = getattr(error, "reason", None) or error
    return str(cause).rpartition(": ")[2][:200] or type(error).__name__
