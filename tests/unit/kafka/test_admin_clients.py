"""How a cluster that gives no answer is told apart from one that refuses: on real sockets, without a broker."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest

from failover.config.clients import ClientSettings
from failover.errors import ClusterUnreachable
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
