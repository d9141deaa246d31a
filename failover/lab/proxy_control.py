"""What a test tells the lab's proxy to do to the traffic, and the link to it."""

from __future__ import annotations

import socket
from typing import Literal

import msgspec

from failover.errors import LabError
from failover.lab.ports import LOOPBACK


class Rule(msgspec.Struct, kw_only=True):
    """Says what happens to which request.

    ``where`` request: before ``after_bytes`` + 1 bytes of it (its length field counts) reached
    the broker; answer: the request arrived, its answer is not passed on beyond ``after_bytes``
    bytes. ``action`` cut: both connections are reset; hold: nothing goes on, the connection stays
    open; delay: goes on after ``seconds``. ``api``: Kafka's api key, None for any. ``port``: the
    proxy's port, None for any. ``skip``: so many matching requests pass first. ``times``: applies
    so often, 0 without end. ``hits`` counts.
    """

    where: Literal["request", "answer"]
    action: Literal["cut", "hold", "delay"]
    api: int | None = None
    port: int | None = None
    after_bytes: int = 0
    seconds: float = 0.0
    skip: int = 0
    times: int = 1
    hits: int = 0
    id: int = 0

    def take(self, port: int, api: int) -> bool:
        """Says whether the rule applies to this request, and counts it."""
        if self.port not in (None, port) or self.api not in (None, api) or (self.times and self.hits >= self.times):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.hits += 1
        return True


class Command(msgspec.Struct, kw_only=True):
    """Is one line to the control port.

    ``add`` a rule, ``list`` them, ``clear`` all; ``close`` and ``open`` ports (none: all); ``cut``
    the connections that are open.
    """

    do: Literal["add", "list", "clear", "close", "open", "cut"]
    rule: Rule | None = None
    ports: tuple[int, ...] = ()


class Answer(msgspec.Struct, kw_only=True):
    """Is the answer to a command: the rules as they are now, and how many connections are open."""

    rules: tuple[Rule, ...] = ()
    connections: int = 0
    error: str = ""


class ProxyControl:
    """Steers a running proxy; each call is one short connection.

    Every method raises LabError when the proxy does not answer.
    """

    def __init__(self, port: int) -> None:
        self._port = port

    def add(self, rule: Rule) -> Rule:
        """Adds a rule and returns it with its id."""
        return self._ask(Command(do="add", rule=rule)).rules[-1]

    def cut(
        self,
        where: Literal["request", "answer"],
        *,
        api: int | None = None,
        after_bytes: int = 0,
        skip: int = 0,
        times: int = 1,
        port: int | None = None,
    ) -> Rule:
        """Resets the connection at the next matching request or answer, after so many bytes of it."""
        rule = Rule(where=where, action="cut", api=api, after_bytes=after_bytes, skip=skip, times=times, port=port)
        return self.add(rule)

    def delay(
        self,
        seconds: float,
        *,
        where: Literal["request", "answer"] = "answer",
        api: int | None = None,
        times: int = 0,
        port: int | None = None,
    ) -> Rule:
        """Holds matching requests or answers back for ``seconds`` each, without end unless ``times`` says."""
        return self.add(Rule(where=where, action="delay", api=api, seconds=seconds, times=times, port=port))

    def hold(
        self,
        where: Literal["request", "answer"],
        *,
        api: int | None = None,
        skip: int = 0,
        times: int = 1,
        port: int | None = None,
    ) -> Rule:
        """Lets nothing more through from the next matching request or answer on, with the connection left open."""
        return self.add(Rule(where=where, action="hold", api=api, skip=skip, times=times, port=port))

    def close(self, *ports: int) -> None:
        """Resets the connections of these ports (none named: all) and refuses new ones until ``open``."""
        self._ask(Command(do="close", ports=ports))

    def open(self, *ports: int) -> None:
        """Accepts connections again."""
        self._ask(Command(do="open", ports=ports))

    def cut_now(self, *ports: int) -> None:
        """Resets the connections that are open at this moment."""
        self._ask(Command(do="cut", ports=ports))

    def clear(self) -> None:
        """Removes every rule and accepts connections again; messages held already stay held."""
        self._ask(Command(do="clear"))

    def hits(self, rule: Rule) -> int:
        """Returns how often a rule has applied."""
        return next((known.hits for known in self.rules() if known.id == rule.id), 0)

    def rules(self) -> tuple[Rule, ...]:
        """Returns the rules as they stand."""
        return self._ask(Command(do="list")).rules

    def _ask(self, command: Command) -> Answer:
        try:
            with socket.create_connection((LOOPBACK, self._port), 5) as link, link.makefile("rwb") as stream:
                stream.write(msgspec.json.encode(command) + b"\n")
                stream.flush()
                answer = msgspec.json.decode(stream.readline(), type=Answer)
        except (OSError, msgspec.DecodeError) as failure:
            raise LabError(f"the proxy does not answer: {failure}", hint="failover lab status") from failure
        if answer.error:
            raise LabError(f"the proxy refused: {answer.error}")
        return answer
