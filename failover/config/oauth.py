"""Tokens for SASL/OAUTHBEARER: where they come from, and one provider per identity that renews them in time.

librdkafka and the raw connections of a process ask the same provider, so that a cluster sees one identity and the
token endpoint few requests.
"""

from __future__ import annotations

import base64
import functools
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from failover.config.secret import Secret
from failover.errors import TokenUnavailable

if TYPE_CHECKING:
    from failover.config.clients import TlsSettings

_LOG = logging.getLogger(__name__)

RENEW_AT = 0.8
"""The share of its life after which a token is replaced (Kafka: sasl.login.refresh.window.factor)."""

WITHOUT_EXPIRY = 300.0
"""Seconds after which a token that does not say when it ends is asked for anew."""

_QUIET_AFTER_FAILURE = 1.0


class Token(NamedTuple):
    """Is one bearer token; times are seconds since 1970 by this machine's clock."""

    value: Secret
    obtained: float
    expires: float
    principal: str = ""


class ClientCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """Asks a token endpoint with an id and a secret (RFC 6749, section 4.4; Kafka: KIP-768).

    ``audience`` is Strimzi's addition. ``urlencode``: id and secret are URL-encoded before they become the Basic
    header (Kafka: sasl.oauthbearer.header.urlencode). An address may hold a password. Times in seconds.
    """

    url: Secret
    client_id: str
    client_secret: Secret
    scope: str = ""
    audience: str = ""
    subject_claim: str = "sub"
    urlencode: bool = False
    tls: TlsSettings | None = None
    connect_seconds: float = 5.0
    read_seconds: float = 10.0
    backoff_seconds: float = 0.1
    longest_backoff_seconds: float = 10.0


class TokenFile(msgspec.Struct, frozen=True, kw_only=True):
    """Reads the token from a file that something else renews (Kafka: a file: URL as the token endpoint)."""

    path: str
    subject_claim: str = "sub"


class UnsecuredToken(msgspec.Struct, frozen=True, kw_only=True):
    """Makes an unsigned token, as Kafka's clients do when told nothing else; only test brokers take it."""

    claims: tuple[tuple[str, str | float | tuple[str, ...]], ...]
    principal: str
    seconds: float = 3600.0


class AwsIam(msgspec.Struct, frozen=True, kw_only=True):
    """Signs a token with AWS credentials, found where the AWS SDK finds them (Amazon MSK's IAM access control)."""

    region: str
    profile: str = ""
    role_arn: str = ""
    role_session: str = ""


TokenSource = ClientCredentials | TokenFile | UnsecuredToken | AwsIam


class TokenSettings(msgspec.Struct, frozen=True):
    """Says where tokens come from, what goes with them (SASL extensions), and when they are renewed."""

    source: TokenSource
    extensions: tuple[tuple[str, str], ...] = ()
    renew_at: float = RENEW_AT

    def provider(self) -> TokenProvider:
        """Gives the process's one provider for these settings."""
        return _provider(self)


class TokenProvider:
    """Keeps a token and replaces it once ``renew_at`` of its life is over; may be asked from any thread.

    While replacing fails, the old token is given out until it ends; failures are not repeated within a second.
    """

    def __init__(
        self,
        fetch: Callable[[], Token],
        *,
        extensions: Mapping[str, str] | None = None,
        renew_at: float = RENEW_AT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.extensions = dict(extensions or {})
        self._fetch = fetch
        self._renew_at = renew_at
        self._clock = clock
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._failure: TokenUnavailable | None = None
        self._failed = 0.0

    @property
    def failure(self) -> TokenUnavailable | None:
        """Is why the last request for a token failed, None if it did not."""
        return self._failure

    def at_hand(self) -> Token | None:
        """Gives the token if it need not be renewed, without waiting for anybody."""
        token = self._token
        return token if token is not None and self._fresh(token) else None

    def token(self) -> Token:
        """Gives a token that is not due, asking for one if need be. Raises ``TokenUnavailable``."""
        with self._lock:
            now = self._clock()
            token = self._token
            if token is not None and self._fresh(token):
                return token
            alive = token is not None and now < token.expires
            if self._failure is not None and 0 <= now - self._failed < _QUIET_AFTER_FAILURE:
                if alive and token is not None:
                    return token
                raise self._failure
            try:
                self._token = self._fetch()
            except TokenUnavailable as failure:
                self._failure, self._failed = failure, self._clock()
                if alive and token is not None:
                    _LOG.warning("%s; the old token is used while it lasts", failure.message)
                    return token
                raise
            self._failure = None
            return self._token

    def for_librdkafka(self, _config: str) -> tuple[str, float, str, dict[str, str]]:
        """Is confluent-kafka's ``oauth_cb``: token, when it ends, principal, extensions."""
        token = self.token()
        return token.value.reveal(), token.expires, token.principal, self.extensions

    def _fresh(self, token: Token) -> bool:
        return self._clock() < token.obtained + (token.expires - token.obtained) * self._renew_at


@functools.cache
def _provider(settings: TokenSettings) -> TokenProvider:
    match settings.source:
        case ClientCredentials() as source:
            from failover.config.oauth_http import request_token

            fetch = functools.partial(request_token, source)
        case TokenFile() as source:
            fetch = functools.partial(_read_token, source)
        case UnsecuredToken() as source:
            fetch = functools.partial(_unsecured, source)
        case AwsIam() as source:
            from failover.config.oauth_aws import sign_token

            fetch = functools.partial(sign_token, source)
    return TokenProvider(fetch, extensions=dict(settings.extensions), renew_at=settings.renew_at)


def token_of(text: str, *, subject_claim: str, now: float, seconds: float | None = None) -> Token:
    """Makes a token of its text.

    How long it lives says ``seconds`` (a token endpoint's expires_in), else the token itself if it is a JWT, by its
    own two times where it has both: the endpoint's clock may be another than ours.
    """
    claims = claims_of(text)
    issued, ends = claims.get("iat"), claims.get("exp")
    if seconds is None and isinstance(ends, int | float):
        seconds = ends - (issued if isinstance(issued, int | float) else now)
    if seconds is None:
        seconds = WITHOUT_EXPIRY
    return Token(Secret(text), now, now + seconds, str(claims.get(subject_claim, "")))


def claims_of(text: str) -> dict[str, Any]:
    """Gives a JWT's claims, unverified (brokers verify it); none for an opaque token."""
    parts = text.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def _read_token(source: TokenFile) -> Token:
    try:
        text = Path(source.path).read_text("ascii").strip()
    except OSError as error:
        raise TokenUnavailable(
            f"the token file {source.path} cannot be read: {error.strerror or type(error).__name__}",
            hint="what renews it must put it there first",
            passing=True,
        ) from None
    except UnicodeDecodeError:
        text = ""
    if not text or len(text.split()) > 1:
        raise TokenUnavailable(
            f"the token file {source.path} does not hold one token", hint="a JWT on one line is expected"
        )
    now = time.time()
    ends = claims_of(text).get("exp")
    if isinstance(ends, int | float) and ends <= now:
        raise TokenUnavailable(
            f"the token in {source.path} has expired", hint="does what renews it still run?", passing=True
        )
    # Its age is unknown unless it says so; what matters here is the rest of its life.
    seconds = ends - now if isinstance(ends, int | float) else None
    return token_of(text, subject_claim=source.subject_claim, now=now, seconds=seconds)


def _unsecured(source: UnsecuredToken) -> Token:
    now = time.time()
    claims: dict[str, Any] = dict(source.claims)
    claims |= {"iat": now, "exp": now + source.seconds}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    text = ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."
    return Token(Secret(text), now, now + source.seconds, source.principal)
