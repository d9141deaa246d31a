"""The REST client: what is tried again, what is not, and what every failure is called."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from failover.config.secret import Secret
from failover.connect.access import ConnectAccess
from failover.connect.client import ConnectClient
from failover.connect.values import Offset, Offsets, first_line
from failover.errors import (
    ConnectAnswer,
    ConnectorNotFound,
    ConnectRefused,
    ConnectUnreachable,
    CredentialsRefused,
)
from tests.unit.connect.fake_connect import SOURCE, FakeConnect

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
def waited() -> list[float]:
    return []


@pytest.fixture
def client(fake: FakeConnect, waited: list[float]) -> Iterator[ConnectClient]:
    with ConnectClient(ConnectAccess((fake.url,), timeout=5), sleep=waited.append) as made:
        yield made


def test_a_rebalance_is_waited_for_also_by_what_is_never_sent_twice(fake: FakeConnect, client: ConnectClient, waited):
    fake.add("c", {"connector.class": SOURCE})
    fake.busy = 3
    client.restart("c")
    assert len(fake.requests) == 4
    assert len(waited) == 3
    assert all(0 <= pause <= 4 for pause in waited)


def test_a_rebalance_without_end_is_given_up(fake: FakeConnect):
    fake.busy = 10**6
    with (
        ConnectClient(ConnectAccess((fake.url,)), sleep=lambda _: None, rebalance_seconds=0.05) as client,
        pytest.raises(ConnectUnreachable, match="due to a rebalance") as raised,
    ):
        client.connectors()
    assert raised.value.exit_code == 8


def test_a_broken_connection_is_tried_again_only_where_that_does_the_same(fake: FakeConnect, client: ConnectClient):
    fake.add("c", {"connector.class": SOURCE})
    fake.drop = 1
    assert client.status("c").connector.state == "RUNNING"
    fake.drop = 1
    client.act("c", "stop")
    fake.drop, fake.requests = 1, []
    with pytest.raises(ConnectUnreachable, match="whether it was carried out is not known"):
        client.restart("c")
    assert len(fake.requests) == 1


def test_it_goes_on_to_the_next_worker_and_stays_with_it(fake: FakeConnect):
    with ConnectClient(ConnectAccess((NOWHERE, fake.url)), sleep=lambda _: None) as client:
        assert client.worker().version == "4.1.1"
        assert client.worker().version == "4.1.1"
        assert client._first == 1
    assert len(fake.requests) == 2


def test_nobody_there_is_an_error_that_names_the_address():
    with (
        ConnectClient(ConnectAccess((NOWHERE,)), sleep=lambda _: None) as client,
        pytest.raises(ConnectUnreachable, match=r"127\.0\.0\.1:1 to GET /connectors: .*refused"),
    ):
        client.connectors()


def test_credentials_are_sent_and_their_refusal_is_no_silence(fake: FakeConnect, client: ConnectClient):
    fake.credentials = "ops:s3 cret"
    with pytest.raises(CredentialsRefused):
        client.connectors()
    assert len(fake.requests) == 1
    with ConnectClient(ConnectAccess((fake.url,), "ops", Secret("s3 cret"))) as allowed:
        assert allowed.connectors() == {}


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        ((400, b'{"error_code":400,"message":"tasks.max is wrong"}'), ConnectRefused, "tasks.max is wrong"),
        ((404, b'{"error_code":404,"message":"Connector c not found"}'), ConnectorNotFound, "Connector c not found"),
        ((405, b""), ConnectRefused, "no such request"),
        ((500, b"<html>oops</html>"), ConnectAnswer, "HTTP 500"),
        ((302, b""), ConnectAnswer, "HTTP 302"),
        ((200, b"<html>a portal</html>"), ConnectAnswer, "no Kafka Connect"),
    ],
)
def test_each_answer_has_its_error(fake: FakeConnect, client: ConnectClient, answer, kind, said):
    fake.answer = answer
    with pytest.raises(kind, match=said):
        client.status("c")


def test_names_are_one_piece_of_the_path(fake: FakeConnect, client: ConnectClient):
    name = "a->b.Mirror/../Source?x=1 #é"
    fake.add(name, {"connector.class": SOURCE})
    assert client.status(name).name == name
    assert fake.requests[-1].count("/") == 3


def test_positions_are_set_only_of_a_stopped_connector(fake: FakeConnect, client: ConnectClient):
    fake.add("c", {"connector.class": SOURCE})
    body = Offsets((Offset({"cluster": "a", "partition": 0, "topic": "t"}, {"offset": 41}),))
    with pytest.raises(ConnectRefused, match="STOPPED"):
        client.patch_offsets("c", body)
    client.act("c", "stop")
    assert "altered" in client.patch_offsets("c", body)
    assert client.offsets("c") == body.offsets


def test_the_first_line_of_a_trace_says_why():
    assert first_line("\n\n  java.lang.X: no\n\tat a\n") == "java.lang.X: no"
    assert first_line("") == ""
