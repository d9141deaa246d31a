"""Who may ask what."""

from __future__ import annotations

import asyncio
import base64
import ssl
from pathlib import Path

import pytest
from aiohttp import ClientSession

from failover.config.load import load_config
from failover.config.secret import Secret
from failover.errors import ConfigError, UsageError
from failover.lab.certs import make_certificates
from failover.serve.server import application, listening
from failover.serve.settings import RestSettings, read_rest
from tests.unit.serve.scenes import SECRET, asked, board, flow

GUARDED = RestSettings("127.0.0.1", 0, token=Secret(SECRET), user="ops", password=Secret("pa:ss"))


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def statuses(made, settings, requests):
    async def ask(client):
        found = []
        for method, path, headers in requests:
            answer = await client.request(method, path, headers=headers)
            found.append(answer.status)
            if answer.status == 401:
                assert "WWW-Authenticate" in answer.headers
        return found

    return asked(made, ask, settings)


def test_without_credentials_nothing_but_health_answers(tmp_path):
    made = board(tmp_path, flow())

    async def every_path(client):
        found = {}
        for route in client.app.router.routes():
            path = route.resource.canonical
            for name, value in {"connector": next(iter(made.connectors)), "task": "0", "logger": "failover"}.items():
                path = path.replace(f"{{{name}}}", value)
            found[route.method, path.replace("{plugin}", "MirrorSource")] = 0
        for method, path in found:
            answer = await client.request(method, path)
            found[method, path] = answer.status
        return found

    found = asked(made, every_path, GUARDED)
    assert len(found) > 25
    assert {each for each in found if found[each] != 401} == {("GET", "/health"), ("HEAD", "/health")}
    assert not any(connector.switch.turns for connector in made.connectors.values())
    odd: list[tuple[str, str, dict[str, str]]] = [
        ("GET", "/health/", {}),
        ("GET", "/health/metrics", {}),
        ("PUT", "/health", {}),
    ]
    assert statuses(made, GUARDED, odd) == [401, 401, 401]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (f"Bearer {SECRET}", 200),
        (f"bearer {SECRET}", 200),
        (basic("ops:pa:ss"), 200),
        (f"Bearer {SECRET}x", 401),
        ("Bearer ", 401),
        ("Bearer", 401),
        (f"Token {SECRET}", 401),
        (basic("ops:wrong"), 401),
        (basic(f":{SECRET}"), 401),
        ("Basic !!!", 401),
        ("Basic " + base64.b64encode(b"\xff\xfe").decode(), 401),
    ],
)
def test_credentials(tmp_path, header, status):
    assert statuses(board(tmp_path, flow()), GUARDED, [("GET", "/connectors", {"Authorization": header})]) == [status]


def test_pages_elsewhere_cannot_steer_a_browser_here(tmp_path):
    made = board(tmp_path, flow())
    open_here = RestSettings("127.0.0.1", 0)
    stop = f"/connectors/{next(iter(made.connectors))}/stop"
    requests = [
        ("GET", "/connectors", {"Host": "evil.example:8083"}),
        ("GET", "/metrics", {"Host": "evil.example"}),
        ("PUT", stop, {"Origin": "https://evil.example"}),
        ("PUT", stop, {"Origin": "null"}),
        ("GET", "/connectors", {"Host": "localhost:8083"}),
        ("GET", "/connectors", {"Host": "[::1]:8083"}),
    ]
    assert statuses(made, open_here, requests) == [403, 403, 403, 403, 200, 200]
    assert not any(connector.switch.turns for connector in made.connectors.values())


# -- settings ---------------------------------------------------------------------------------------


def read(tmp_path: Path, address: str, **settings: str) -> RestSettings:
    path = tmp_path / "mm2.properties"
    lines = [f"failover.rest.{key.replace('_', '.')} = {value}" for key, value in settings.items()]
    path.write_text("\n".join(["clusters = A, B", "A.bootstrap.servers = a:1", "B.bootstrap.servers = b:1", *lines]))
    return read_rest(load_config(path).failover, address)


def test_here_nothing_is_asked_of_callers_unless_it_is_set(tmp_path):
    for address, host in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:8083", "::1"), ("localhost:1", "localhost")]:
        found = read(tmp_path, address)
        assert (found.host, found.guarded, found.tls()) == (host, False, None)
    assert read(tmp_path, "[::1]:8083").url == "http://[::1]:8083"
    found = read(tmp_path, "127.0.0.1:1", token=SECRET)
    assert found.guarded
    assert SECRET not in repr(found)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.1", "mirror.example"])
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "needs TLS (failover.rest.ssl.certificate, .ssl.key) and a token"),
        ({"token": "t"}, "needs TLS"),
        ({"ssl_certificate": "c.pem"}, "needs a token (failover.rest.token)"),
    ],
)
def test_beyond_this_machine_both_tls_and_credentials_are_required(tmp_path, host, settings, words):
    with pytest.raises(UsageError, match="beyond this machine") as caught:
        read(tmp_path, f"{host}:8083", **settings)
    assert words in caught.value.message


def test_with_both_it_listens_anywhere(tmp_path):
    found = read(tmp_path, "0.0.0.0:8083", ssl_certificate="c.pem", ssl_key="k.pem", user="u", password=SECRET)
    assert (found.guarded, found.url) == (True, "https://0.0.0.0:8083")
    with pytest.raises(ConfigError, match=r"failover.rest.ssl.certificate \(c.pem\)"):
        found.tls()


def test_half_a_pair_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="go together"):
        read(tmp_path, "127.0.0.1:1", user="u")
    with pytest.raises(ConfigError, match="go together"):
        read(tmp_path, "127.0.0.1:1", password="p")


@pytest.mark.parametrize("address", ["8083", ":8083", "host:", "host:http", "host:70000", "127.0.0.1"])
def test_what_is_no_address(tmp_path, address):
    with pytest.raises(UsageError, match="no HOST:PORT"):
        read(tmp_path, address)


def test_over_tls_with_a_token(tmp_path, caplog):
    files = make_certificates(tmp_path, client="ops")
    settings = read(tmp_path, "127.0.0.1:0", ssl_certificate=str(files.server), token=SECRET)
    made = board(tmp_path, flow())
    app = application(settings, metrics=lambda: "", health=lambda: made.health)

    async def ask() -> list[int]:
        trusted = ssl.create_default_context(cafile=str(files.ca))
        async with listening(settings, app) as url, ClientSession() as session:
            assert url.startswith("https://127.0.0.1:")
            headers = {"Authorization": f"Bearer {SECRET}"}
            found = []
            for path, sent in [("/health", {}), ("/metrics", {}), ("/metrics", headers)]:
                async with session.get(f"{url}{path}", headers=sent, ssl=trusted) as answer:
                    found.append(answer.status)
            return found

    assert asyncio.run(ask()) == [200, 401, 200]
    assert SECRET not in caplog.text


def test_an_address_that_is_taken(tmp_path):
    made = board(tmp_path, flow())

    async def twice() -> None:
        first = application(RestSettings("127.0.0.1", 0), metrics=lambda: "", health=lambda: made.health)
        async with listening(RestSettings("127.0.0.1", 0), first) as url:
            port = int(url.rpartition(":")[2])
            second = application(RestSettings("127.0.0.1", port), metrics=lambda: "", health=lambda: made.health)
            async with listening(RestSettings("127.0.0.1", port), second):
                pass

    with pytest.raises(UsageError, match="cannot listen on 127"):
        asyncio.run(twice())
