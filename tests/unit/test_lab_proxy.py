from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from failover.errors import LabError
from failover.lab import ProxyControl
from failover.lab.fault import APIS, api_key
from failover.lab.ports import LOOPBACK, free_ports

FETCH, COMMIT = APIS["fetch"], APIS["offset-commit"]


class Broker:
    """Answers each request with its correlation id and keeps what it received."""

    def __init__(self) -> None:
        self.server = socket.create_server((LOOPBACK, 0))
        self.port = self.server.getsockname()[1]
        self.received: list[bytes] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = self.server.accept()
                thread = threading.Thread(target=self._answer, args=(link,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _answer(self, link: socket.socket) -> None:
        data = b""
        with link, contextlib.suppress(OSError):
            while chunk := link.recv(65536):
                data += chunk
                self.received.append(chunk)
                while len(data) >= 4 and len(data) >= 4 + (length := struct.unpack_from(">i", data)[0]):
                    body = struct.pack(">i", struct.unpack_from(">i", data, 8)[0]) + b"answer"
                    link.sendall(struct.pack(">i", len(body)) + body)
                    data = data[4 + length :]

    def close(self) -> None:
        self.server.close()


@pytest.fixture
def broker() -> Iterator[Broker]:
    running = Broker()
    yield running
    running.close()


@pytest.fixture
def proxy(broker: Broker) -> Iterator[tuple[int, ProxyControl]]:
    port, control = free_ports(2)
    command = [sys.executable, "-m", "failover.lab.proxy", "--lab=test", str(control), f"{port}:{broker.port}"]
    process = subprocess.Popen(command)
    steering = ProxyControl(control)
    deadline = time.monotonic() + 10
    while True:
        try:
            steering.rules()
            break
        except LabError:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    yield port, steering
    process.kill()
    process.wait()


def request(api: int, correlation: int, size: int = 20) -> bytes:
    body = struct.pack(">hhi", api, 0, correlation) + b"x" * size
    return struct.pack(">i", len(body)) + body


def ask(link: socket.socket, api: int, correlation: int, size: int = 20) -> int:
    """Sends a request and returns the answer's correlation id; raises ConnectionError when the connection breaks."""
    link.sendall(request(api, correlation, size))
    data = b""
    while len(data) < 14:
        chunk = link.recv(100)
        if not chunk:
            raise ConnectionResetError
        data += chunk
    return int(struct.unpack_from(">i", data, 4)[0])


def connect(port: int) -> socket.socket:
    return socket.create_connection((LOOPBACK, port), 5)


def test_passes_everything_on_without_rules(proxy):
    with connect(proxy[0]) as link:
        assert [ask(link, FETCH, number, size=number * 50_000) for number in range(4)] == [0, 1, 2, 3]


def test_cuts_before_an_answer_after_the_request_arrived(proxy, broker):
    port, control = proxy
    rule = control.cut("answer", api=COMMIT)
    with connect(port) as link:
        assert ask(link, FETCH, 1) == 1
        with pytest.raises(ConnectionError):
            ask(link, COMMIT, 2)
    assert control.hits(rule) == 1
    assert b"".join(broker.received) == request(FETCH, 1) + request(COMMIT, 2)
    with connect(port) as link:
        assert ask(link, COMMIT, 3) == 3  # once, unless told otherwise


@pytest.mark.parametrize("passed", [0, 3, 12, 17])
def test_cuts_a_request_after_so_many_bytes(proxy, broker, passed):
    port, control = proxy
    control.cut("request", api=COMMIT, after_bytes=passed)
    with connect(port) as link, pytest.raises(ConnectionError):
        ask(link, COMMIT, 1)
    deadline = time.monotonic() + 5
    while len(b"".join(broker.received)) < passed:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert b"".join(broker.received) == request(COMMIT, 1)[:passed]


def test_skips_and_repeats_as_told(proxy):
    port, control = proxy
    control.cut("request", api=COMMIT, skip=1, times=2)
    outcomes = []
    for number in range(5):
        with connect(port) as link:
            try:
                outcomes.append(ask(link, COMMIT, number))
            except ConnectionError:
                outcomes.append(-1)
    assert outcomes == [0, -1, -1, 3, 4]


def test_delays_an_answer(proxy):
    port, control = proxy
    control.delay(0.3, api=FETCH, times=1)
    with connect(port) as link:
        link.settimeout(0.1)
        link.sendall(request(FETCH, 7))
        with pytest.raises(TimeoutError):
            link.recv(100)
        link.settimeout(5)
        assert struct.unpack_from(">i", link.recv(100), 4)[0] == 7


def test_a_held_answer_leaves_the_connection_open_and_silent(proxy):
    port, control = proxy
    control.hold("answer", api=COMMIT)
    with connect(port) as link:
        link.settimeout(0.2)
        with pytest.raises(TimeoutError):
            ask(link, COMMIT, 1)
    with connect(port) as link:
        assert ask(link, COMMIT, 2) == 2


def test_closed_ports_refuse_until_they_open(proxy):
    port, control = proxy
    with connect(port) as link:
        assert ask(link, FETCH, 1) == 1
        control.close(port)
        with pytest.raises(ConnectionError):
            ask(link, FETCH, 2)
    with pytest.raises(ConnectionError), connect(port) as link:
        ask(link, FETCH, 3)
    control.open()
    with connect(port) as link:
        assert ask(link, FETCH, 4) == 4


def test_open_connections_are_cut_now_and_rules_cleared(proxy):
    port, control = proxy
    control.cut("answer", times=0)
    control.clear()
    with connect(port) as link:
        assert ask(link, FETCH, 1) == 1
        control.cut_now()
        with pytest.raises(ConnectionError):
            ask(link, FETCH, 2)
    assert control.rules() == ()


def test_no_proxy_is_an_error():
    with pytest.raises(LabError, match="does not answer"):
        ProxyControl(free_ports(1)[0]).rules()


def test_an_unknown_request_name_is_an_error():
    assert api_key(None) is None
    with pytest.raises(LabError, match="no request named commit"):
        api_key("commit")
