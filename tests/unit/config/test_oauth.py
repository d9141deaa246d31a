"""Where tokens come from, and when they are renewed."""

from __future__ import annotations

import base64
import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from failover.config import oauth
from failover.config.clients import SaslSettings
from failover.config.oauth import (
    ClientCredentials,
    Token,
    TokenFile,
    TokenProvider,
    TokenSettings,
    UnsecuredToken,
    claims_of,
    token_of,
)
from failover.config.oauth_http import request_token
from failover.config.secret import Secret
from failover.errors import TokenUnavailable


def jwt(**claims: object) -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": "RS256"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + ".c2ln"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Endpoint:
    """Gives tokens of 100 s, or fails."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.asked = 0
        self.fails: TokenUnavailable | None = None

    def __call__(self) -> Token:
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        return Token(Secret(f"t{self.asked}"), self.clock.now, self.clock.now + 100, "me")


def test_a_token_is_kept_for_four_fifths_of_its_life():
    clock = Clock()
    endpoint = Endpoint(clock)
    provider = TokenProvider(endpoint, clock=clock)
    assert provider.at_hand() is None
    first = provider.token()
    clock.now += 79
    assert provider.token() == provider.at_hand() == first
    clock.now += 1
    assert provider.at_hand() is None
    assert provider.token().value.reveal() == "t2"
    assert endpoint.asked == 2


def test_while_renewing_fails_the_old_token_serves_until_it_ends(caplog):
    clock = Clock()
    endpoint = Endpoint(clock)
    provider = TokenProvider(endpoint, clock=clock)
    first = provider.token()
    endpoint.fails = TokenUnavailable("down", hint="wait")
    clock.now += 85
    with caplog.at_level(logging.WARNING):
        assert provider.token() == first
    assert "down; the old token is used while it lasts" in caplog.text
    assert provider.failure is endpoint.fails
    assert (provider.token(), endpoint.asked) == (first, 2)  # not asked again within a second
    clock.now += 15
    with pytest.raises(TokenUnavailable, match="down"):
        provider.token()
    endpoint.fails = None
    clock.now += 1
    assert provider.token().value.reveal() == "t4"
    assert provider.failure is None


def test_many_who_ask_at_once_make_one_request():
    clock = Clock()
    endpoint = Endpoint(clock)
    provider = TokenProvider(endpoint, clock=clock)
    got: list[Token] = []
    threads = [threading.Thread(target=lambda: got.append(provider.token())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(set(got)), endpoint.asked) == (1, 1)


def test_librdkafka_and_the_raw_connection_have_one_provider():
    settings = TokenSettings(UnsecuredToken(claims=(("sub", "me"),), principal="me"), (("a", "b"),))
    again = TokenSettings(UnsecuredToken(claims=(("sub", "me"),), principal="me"), (("a", "b"),))
    assert settings.provider() is again.provider()
    callback = SaslSettings("OAUTHBEARER", token=settings).librdkafka()["oauth_cb"]
    text, ends, principal, extensions = callback("")
    token = settings.provider().token()
    assert (text, ends, principal, extensions) == (token.value.reveal(), token.expires, "me", {"a": "b"})


@pytest.mark.parametrize(
    ("claims", "seconds", "ends"),
    [
        ({"iat": 50, "exp": 80}, 10, 110),  # what the endpoint says wins
        ({"iat": 50, "exp": 80}, None, 130),  # else its own life, whatever its clock
        ({"exp": 180}, None, 180),
        ({}, None, 100 + oauth.WITHOUT_EXPIRY),
    ],
)
def test_when_a_token_ends(claims, seconds, ends):
    token = token_of(jwt(sub="me", **claims), subject_claim="sub", now=100, seconds=seconds)
    assert (token.expires, token.principal) == (ends, "me")


@pytest.mark.parametrize("text", ["opaque", "a.b.c", "a.!.c", jwt()[::-1], ".".join(["a", "WzFd", "c"])])
def test_an_opaque_token_has_no_claims(text):
    assert claims_of(text) == {}


def test_an_unsecured_token_says_who_and_how_long():
    source = UnsecuredToken(claims=(("sub", "me"), ("scope", ("a", "b")), ("n", 1.5)), principal="me", seconds=30)
    token = TokenSettings(source).provider().token()
    text = token.value.reveal()
    assert text.endswith(".")
    claims = claims_of(text)
    assert (claims["sub"], claims["scope"], claims["n"]) == ("me", ["a", "b"], 1.5)
    assert claims["exp"] - claims["iat"] == token.expires - token.obtained == 30


def test_a_token_file_is_read_again_when_its_token_is_due(tmp_path, monkeypatch):
    path = tmp_path / "token"
    source = TokenSettings(TokenFile(path=str(path)))
    with pytest.raises(TokenUnavailable, match="cannot be read: No such file"):
        source.provider().token()
    monkeypatch.setattr(source.provider(), "_failed", 0.0)
    path.write_text(jwt(sub="me", exp=4e9) + "\n")
    assert source.provider().token().principal == "me"


@pytest.mark.parametrize(("text", "words"), [("", "one token"), ("a b", "one token"), ("ä", "one token")])
def test_a_file_that_is_no_token(tmp_path, text, words):
    (tmp_path / "token").write_text(text)
    with pytest.raises(TokenUnavailable, match=words):
        TokenSettings(TokenFile(path=str(tmp_path / "token"))).provider().token()


def test_a_token_file_nobody_renews(tmp_path):
    (tmp_path / "token").write_text(jwt(exp=1000))
    with pytest.raises(TokenUnavailable, match="has expired") as caught:
        TokenSettings(TokenFile(path=str(tmp_path / "token"))).provider().token()
    assert "still run" in caught.value.hint


# -- the token endpoint --------------------------------------------------------------------------


@contextmanager
def endpoint(*answers: tuple[int, object]) -> Iterator[tuple[str, list[tuple[dict[str, str], str]]]]:
    """Answers requests with these, the last one again and again; gives its address and what was asked."""
    asked: list[tuple[dict[str, str], str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"])).decode()))
            status, said = answers[min(len(asked), len(answers)) - 1]
            body = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def credentials(url: str, **options: Any) -> ClientCredentials:
    given: dict[str, Any] = {"client_id": "app", "client_secret": Secret("hunter2&ü"), "backoff_seconds": 0.001}
    return ClientCredentials(url=Secret(url), **(given | options))


def test_client_credentials_are_shown_as_kafka_shows_them():
    text = jwt(sub="me")
    with endpoint((200, {"access_token": text, "expires_in": 30})) as (url, asked):
        token = request_token(credentials(url, scope="a b", audience="kafka"))
    headers, body = asked[0]
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode() == "app:hunter2&ü"
    assert parse_qs(body) == {"grant_type": ["client_credentials"], "scope": ["a b"], "audience": ["kafka"]}
    assert token.value.reveal() == text
    assert token.expires - token.obtained == 30
    assert text not in repr(token)


def test_id_and_secret_are_url_encoded_if_asked_for():
    with endpoint((200, {"id_token": "opaque"})) as (url, asked):
        request_token(credentials(url, urlencode=True))
    shown = base64.b64decode(asked[0][0]["Authorization"].removeprefix("Basic ")).decode()
    assert shown == "app:hunter2%26%C3%BC"


def test_what_passes_is_asked_for_again():
    with endpoint((503, b"busy"), (429, {}), (200, {"access_token": "x"})) as (url, asked):
        assert request_token(credentials(url)).value.reveal() == "x"
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("status", "said", "words", "hint", "asked_for"),
    [
        (401, {"error": "invalid_client", "error_description": "bad secret"}, "401, invalid_client: bad secret",
         "clientSecret", 1),
        (401, {"error": "no", "error_description": "'hunter2&ü' is wrong"}, "no: '********' is wrong", "clientId", 1),
        (400, {"error": "invalid_scope"}, "answers 400, invalid_scope", "check scope", 1),
        (404, b"<html>", "answers 404", "token.endpoint.url", 1),
        (302, b"", "answers 302", "token.endpoint.url", 1),
        (200, {}, "without an access_token", "not its issuer URL", 1),
        (200, {"access_token": "two words"}, "without an access_token", "not its issuer URL", 1),
        (200, b"[1]", "without an access_token", "not its issuer URL", 1),
        (503, {"error": "x" * 900}, f"answers 503, {'x' * 60}", "clientId", 4),
    ],
)  # fmt: skip
def test_refusals_say_why_and_show_no_secret(status, said, words, hint, asked_for):
    with endpoint((status, said)) as (url, asked), pytest.raises(TokenUnavailable) as caught:
        request_token(credentials(url.replace("//", "//user:hunter2@") + "?key=hunter2"))
    assert words in caught.value.message
    assert hint in caught.value.hint
    assert "hunter2" not in caught.value.message + caught.value.hint
    assert len(caught.value.message) < 400
    assert len(asked) == asked_for
    assert caught.value.exit_code == 8


def test_an_endpoint_that_is_not_there():
    with pytest.raises(TokenUnavailable, match=r"127\.0\.0\.1:1/token cannot be reached: .*refused"):
        request_token(credentials("http://127.0.0.1:1/token"))


def test_an_endpoint_that_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = credentials(f"http://127.0.0.1:{silent.getsockname()[1]}/token", read_seconds=0.01)
        with pytest.raises(TokenUnavailable, match=r"cannot be reached: .*timed out"):
            request_token(source)


def test_a_plain_endpoint_is_no_https():
    with endpoint((200, {})) as (url, _), pytest.raises(TokenUnavailable, match="no TLS session") as caught:
        request_token(credentials(url.replace("http:", "https:")))
    assert "ssl.truststore.location" in caught.value.hint
