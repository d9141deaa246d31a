"""How a cluster that gives no answer is told apart from one that refuses: on real sockets, without a broker."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from failover.config.clients import ClientSettings, SaslSettings, TlsSettings
from failover.config.oauth import TokenFile, TokenSettings
from failover.errors import ClusterUnreachable, CredentialsRefused
from failover.kafka.admin import KafkaCluster
from failover.kafka.admin_clients import BRIEF, Connections

TIMEOUT = 1.0


def cluster(*servers: tuple[str, int]) -> KafkaCluster:
    return KafkaCluster("primary", ClientSettings(bootstrap=servers), timeout=TIMEOUT)


@pytest.fixture
def mute() -> Iterator[int]:
    """Is the port of a server that takes connections and says nothing, as a frozen broker does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_a_closed_port_is_named(closed: int) -> None:
    found = cluster(("127.0.0.1", closed))
    with pytest.raises(
        ClusterUnreachable, match=rf"primary gave no answer for 1 s: connection refused at 127.0.0.1:{closed}"
    ):
        found.facts()
    found.close()


def test_a_name_that_does_not_resolve_is_named() -> None:
    found = cluster(("no-such-host.invalid", 9092))
    with pytest.raises(ClusterUnreachable, match=r"no-such-host.invalid:9092 does not resolve \("):
        found.facts()
    found.close()


def test_a_frozen_broker_is_silence_and_nothing_else(mute: int) -> None:
    found = cluster(("127.0.0.1", mute))
    with pytest.raises(ClusterUnreachable, match=r"gave no answer for 1 s$") as caught:
        found.facts()
    assert f"127.0.0.1:{mute}" in caught.value.hint
    found.close()


def test_silence_is_decided_once(mute: int) -> None:
    found = cluster(("127.0.0.1", mute))
    with pytest.raises(ClusterUnreachable) as first:
        found.facts()
    for ask in (found.facts, found.topics, found.list_groups, lambda: found.committed(["g"])):
        with pytest.raises(ClusterUnreachable) as again:
            ask()
        assert again.value is first.value
    found.close()


def test_librdkafkas_lines_go_to_the_log_and_not_to_the_terminal(
    closed: int, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "failover.librdkafka"):
        found = cluster(("127.0.0.1", closed))
        with pytest.raises(ClusterUnreachable):
            found.facts()
        found.close()
    assert capfd.readouterr() == ("", "")
    assert any("Connection refused" in record.getMessage() for record in caplog.records)


def complain(connections: Connections, name: str, text: str) -> None:
    class Error:
        def name(self) -> str:
            return name

        def str(self) -> str:
            return text

    connections._complain(Error())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "sasl_ssl://h:1/bootstrap: SaslAuthenticateRequest failed: Local: Timed out (after 9ms in state AUTH_REQ)",
        "sasl_ssl://h:1/bootstrap: SASL authentication error: Broker transport failure (after 2ms in state AUTH_REQ)",
        "sasl_ssl://h:1/1: SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?",
    ],
)
def test_a_broker_that_dies_while_it_authenticates_refuses_nothing(text: str) -> None:
    connections = Connections("primary", ClientSettings(bootstrap=(("h", 1),)), timeout=TIMEOUT)
    complain(connections, "_AUTHENTICATION" if "SSL hand" not in text else "_SSL", text)
    connections.serve()
    assert "at sasl_ssl" not in str(connections.silent(TIMEOUT))


TLS = ClientSettings(bootstrap=(("h", 1),), security_protocol="SSL", tls=TlsSettings())
STATE = "(after 1ms in state APIVERSION_QUERY)"


def test_an_alert_after_the_handshake_refuses_the_certificate() -> None:
    connections = Connections("primary", TLS, timeout=TIMEOUT)
    alert = "error:0A000412:SSL routines::ssl/tls alert bad certificate: SSL alert number 42"
    complain(connections, "_TRANSPORT", f"ssl://h:1/bootstrap: Receive failed: {alert} {STATE}")
    with pytest.raises(CredentialsRefused, match="alert bad certificate") as caught:
        connections.serve()
    assert "failover.cluster.primary.ssl.keystore.location" in caught.value.hint


def test_a_cluster_that_ends_each_tls_session_is_not_dead() -> None:
    connections = Connections("primary", TLS, timeout=TIMEOUT)
    complain(connections, "_TRANSPORT", f"ssl://h:1/bootstrap: Disconnected {STATE}")
    connections.serve()
    found = connections.silent(TIMEOUT)
    assert isinstance(found, CredentialsRefused)
    assert "cluster primary: h:1 ends each TLS session" in found.message
    assert "client certificate" in found.hint


def test_a_broker_that_ended_a_session_and_then_died_is_dead() -> None:
    connections = Connections("primary", TLS, timeout=TIMEOUT)
    complain(connections, "_TRANSPORT", f"ssl://h:1/bootstrap: Disconnected {STATE}")
    complain(connections, "_TRANSPORT", "ssl://h:1/bootstrap: Connect to ipv4#1.2.3.4:1 failed: Connection refused")
    assert isinstance(connections.silent(TIMEOUT), ClusterUnreachable)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (TLS, f"ssl://h:1/bootstrap: ApiVersionRequest failed: Local: Timed out {STATE}"),
        (TLS, "ssl://h:1/bootstrap: Connect to ipv4#1.2.3.4:1 failed: Connection refused (after 0ms in state CONNECT)"),
        (TLS, "ssl://h:1/bootstrap: Receive failed: SSL alert number 80 (after 0ms in state UP)"),
        (ClientSettings(bootstrap=(("h", 1),)), f"h:1/bootstrap: Disconnected {STATE}"),
    ],
)
def test_a_cluster_that_gives_no_answer_refuses_nothing(settings: ClientSettings, text: str) -> None:
    connections = Connections("primary", settings, timeout=TIMEOUT)
    complain(connections, "_TRANSPORT", text)
    connections.serve()
    assert isinstance(connections.silent(TIMEOUT), ClusterUnreachable)


def test_without_a_token_there_is_no_client_and_the_reason_is_the_endpoints(tmp_path: Path) -> None:
    token = TokenSettings(TokenFile(path=str(tmp_path / "none")))
    settings = ClientSettings((("127.0.0.1", 1),), "SASL_PLAINTEXT", SaslSettings("OAUTHBEARER", token=token))
    connections = Connections("primary", settings, timeout=TIMEOUT)
    with pytest.raises(CredentialsRefused, match="primary cannot be logged in to: the token file") as caught:
        connections.client()
    assert caught.value.hint == "what renews it must put it there first"
    with pytest.raises(CredentialsRefused, match="token file"):
        connections.check()
    later = Connections("primary", settings, timeout=TIMEOUT)
    complain(later, "_AUTHENTICATION", "Failed to acquire SASL OAUTHBEARER token: it raised an exception")
    with pytest.raises(CredentialsRefused, match="token file"):
        later.serve()


def test_one_silent_part_makes_later_waits_brief() -> None:
    connections = Connections("primary", ClientSettings(bootstrap=(("h", 1),)), timeout=10)
    assert connections.patience == 10
    connections.be_brief()
    assert connections.patience == BRIEF


@pytest.mark.timeout(30)
def test_closing_a_cluster_that_never_answered_does_not_wait_for_it(mute: int) -> None:
    found = cluster(("127.0.0.1", mute))
    with pytest.raises(ClusterUnreachable):
        found.facts()
    found.close()
