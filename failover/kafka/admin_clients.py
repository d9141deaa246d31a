"""The librdkafka client of one cluster: what it complains of, and when the cluster counts as silent."""

from __future__ import annotations

import logging
import queue
import re
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from failover.errors import ClusterError, ClusterUnreachable, CredentialsRefused
from failover.kafka.admin_convert import fault_of
from failover.kafka.faults import NO_ANSWER, fault
from failover.kafka.login import client_properties, without_token
from failover.model.names import Fault

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient

    from failover.config.clients import ClientSettings

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

BRIEF = 1.0
"""Seconds allowed to an answer once part of the cluster proved silent: what is well answers in
milliseconds, and waiting in full again for each thing behind a dead broker would add up."""

_TICK = 0.05
_LOG = logging.getLogger("failover.librdkafka")
_COMPLAINT = re.compile(r"^(?:\w+://)?(?P<server>\S+?)/(?:bootstrap|\d+): (?P<what>.*?)(?: \(after .*)?$", re.DOTALL)
# librdkafka gives these the code of the step that was under way when the connection broke: they are a
# sign of a dying broker or a plain network fault, never of refused credentials.
_BROKEN = ("timed out", "transport failure", "disconnected", "connection reset", "broken pipe", "timeout")
# A broker that does not accept the client's certificate says so by an alert after the handshake (TLS 1.3), which
# librdkafka reports as a broken transport. Alerts 0, 80 and 90 say nothing of credentials.
_ALERT = re.compile(r"alert number (?!(?:0|80|90)\b)\d+")


class Connections:
    """Holds the client of one cluster and decides, once, that it is silent or refuses the credentials.

    ``timeout``: the longest accepted silence in seconds. Calls may come from several threads.
    """

    def __init__(self, alias: str, settings: ClientSettings, *, timeout: float) -> None:
        self.alias = alias
        self.timeout = timeout
        self._settings = settings
        self._client: AdminClient | None = None
        self._lock = threading.Lock()
        self._complaints: dict[str, str] = {}
        self._refused: str | None = None
        self._enders: set[str] = set()
        self._answered = False
        self._brief = False
        self._verdict: ClusterError | None = None
        self._closed = False

    @property
    def patience(self) -> float:
        """Gives the seconds that one answer may take now."""
        return min(self.timeout, BRIEF) if self._brief else self.timeout

    def be_brief(self) -> None:
        """Says that part of the cluster proved silent, so that nobody waits in full for it again."""
        self._brief = True

    def client(self) -> AdminClient:
        """Gives the client, made when first asked for and kept until ``close``: futures end only while it lives."""
        with self._lock:
            if self._client is None:
                if self._closed:
                    raise ClusterUnreachable(f"the connections to {self.alias} were closed", alias=self.alias)
                self._client = self._connect()
            return self._client

    def serve(self) -> None:
        """Lets the client hand over its complaints and log lines."""
        client = self._client
        if client is not None:
            client.poll(0)
        if self._refused is not None and not self._answered:
            token = self._settings.sasl.token if self._settings.sasl is not None else None
            if token is not None and (failure := token.provider().failure) is not None:
                raise self.decide(without_token(self.alias, failure))
            raise self.decide(
                CredentialsRefused(
                    f"cluster {self.alias} refuses the credentials: {self._refused}",
                    alias=self.alias,
                    hint=self._remedy(self._refused),
                )
            )

    def check(self) -> None:
        """Raises again what was decided about the cluster, without asking it once more."""
        if self._verdict is not None:
            raise self._verdict

    def answered(self) -> None:
        """Notes that the cluster answered: from now on a refused connection is one broker's matter."""
        self._answered = True

    def silent(self, seconds: float) -> ClusterError:
        """Decides that the cluster as a whole gives no answer; returns the error to raise.

        One that takes TLS sessions and ends each before it answers anything refuses them: its alert may be lost as it
        closes, and that must not pass for a dead cluster.
        """
        if self._enders:
            return self.decide(
                CredentialsRefused(
                    f"cluster {self.alias}: {', '.join(sorted(self._enders)[:3])} ends each TLS session before it "
                    "answers anything",
                    alias=self.alias,
                    hint="does it want a client certificate (ssl.client.auth=required) that is missing or not trusted? "
                    f"Check failover.cluster.{self.alias}.ssl.keystore.location (else MM2's)",
                )
            )
        seen = "; ".join(tuple(self._complaints.values())[:3])
        return self.decide(
            ClusterUnreachable(
                f"cluster {self.alias} gave no answer for {round(seconds, 1):g} s" + (f": {seen}" if seen else ""),
                alias=self.alias,
                hint=f"check that the brokers at {self._servers()} run and can be reached from here",
            )
        )

    def wait(self, futures: Mapping[K, Future[V]]) -> dict[K, V | Fault]:
        """Waits for futures of requests sent just now; gives each one's value or its fault.

        Each answer starts the accepted silence anew. Raises ``CredentialsRefused`` as soon as
        that is known, ``ClusterUnreachable`` when not one answer came and nothing else answers.
        """
        self.check()
        done: queue.SimpleQueue[K] = queue.SimpleQueue()
        for key, future in futures.items():
            future.add_done_callback(lambda _, key=key: done.put(key))  # type: ignore[misc]
        answers: dict[K, V | Fault] = {}
        lost = 0
        began = last = time.monotonic()
        while len(answers) < len(futures):
            try:
                key = done.get(timeout=_TICK)
            except queue.Empty:
                self.serve()
                # librdkafka ends a request at its own time limit; the extra second lets it say so itself
                if time.monotonic() - last > self.patience + 1.0:
                    break
                continue
            answers[key] = answer = outcome(futures[key])
            last = time.monotonic()
            if _lost(answer):
                lost += 1
        self.serve()
        if lost == len(answers) and futures and not self.alive():
            raise self.silent(max(self.patience, time.monotonic() - began))
        if len(answers) < len(futures) or lost:
            self.be_brief()
        unanswered = fault(NO_ANSWER, f"no answer for {self.patience:g} s")
        for key in futures:
            answers.setdefault(key, unanswered)
        self.answered()
        return answers

    def ask_each(
        self,
        items: Collection[K],
        request: Callable[[AdminClient, list[K], float], Mapping[K, Future[V]]],
    ) -> dict[K, V | Fault]:
        """Asks for items, again for those whose fault passes by itself, within the accepted silence.

        Items without an answer from a cluster that is alive otherwise are asked for once more, of
        another broker.
        """
        self.check()
        self.client()  # connects by itself, while what comes next is loaded
        from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_delay, wait_random_exponential

        answers: dict[K, V | Fault] = {}
        left: list[K] = list(dict.fromkeys(items))
        lost_before = False

        def once() -> bool:
            nonlocal left, lost_before
            if left:
                found: dict[K, V | Fault] = self.wait(request(self.client(), left, self.patience))
                answers.update(found)
            lost = [item for item in left if _lost(answers[item])]
            left = [item for item in left if _passes(answers[item])]
            if lost and not lost_before:
                left, lost_before = left + lost, True
            return bool(left)

        def give_up(_: RetryCallState) -> bool:
            return False

        Retrying(
            retry=retry_if_result(bool),
            stop=stop_after_delay(self.patience),
            wait=wait_random_exponential(0.05, max=0.5),
            retry_error_callback=give_up,
        )(once)
        return answers

    def alive(self) -> bool:
        """Says whether a cluster that answered before still does: one silent broker is not the cluster.

        If so, later requests get a new client, since this one was bound to that broker.
        """
        from confluent_kafka import KafkaException

        if not self._answered:
            return False
        try:
            # a client of its own: one that knows the silent broker asks that one again
            self._connect().list_topics(timeout=min(self.timeout, BRIEF))
        except KafkaException:
            return False
        with self._lock:
            self._client = None
        return True

    def call(self, function: Callable[[AdminClient, float], V]) -> V:
        """Runs a blocking request of librdkafka aside, so that complaints are seen while it waits."""

        def ask(client: AdminClient, _: list[None], wait: float) -> dict[None, Future[V]]:
            box: Future[V] = Future()

            def run() -> None:
                try:
                    box.set_result(function(client, wait))
                except Exception as error:  # noqa: BLE001 - handed to the waiting thread
                    box.set_exception(error)

            threading.Thread(target=run, name=f"failover-{self.alias}", daemon=True).start()
            return {None: box}

        answer = self.ask_each([None], ask)[None]
        if isinstance(answer, Fault):
            raise self.silent(self.timeout)
        return answer

    def close(self) -> None:
        """Ends every connection."""
        with self._lock:
            self._closed = True
            self._client = None

    def _connect(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        try:
            properties = client_properties(self._settings, alias=self.alias)
        except CredentialsRefused as refused:
            raise self.decide(refused) from refused.__cause__
        milliseconds = max(1000, int(self.timeout * 1000))
        properties |= {
            "error_cb": self._complain,
            "logger": _LOG,
            "socket.connection.setup.timeout.ms": milliseconds,
            "socket.timeout.ms": min(300_000, milliseconds + 1000),
            "reconnect.backoff.max.ms": 1000,
        }
        return AdminClient(properties)

    def _complain(self, error: KafkaError) -> None:
        code, text = error.name(), error.str()
        match = _COMPLAINT.match(text)
        server, what = (match["server"], match["what"]) if match else ("", text)
        broken = any(word in text.lower() for word in _BROKEN)
        if (code in ("_AUTHENTICATION", "_SSL") and not broken) or _ALERT.search(text):
            self._refused = f"{what} at {server}" if server else what
        elif code != "_ALL_BROKERS_DOWN" and len(self._complaints) < 100:
            self._complaints[server] = _in_words(code, server, what)
            ended = "APIVERSION_QUERY" in text and "timed out" not in text.lower()
            if ended and self._settings.tls is not None:
                self._enders.add(server)
            else:  # what it did last counts: it may have died since
                self._enders.discard(server)

    def decide(self, error: ClusterError) -> ClusterError:
        """Keeps the first verdict on the whole cluster and gives it back."""
        if self._verdict is None:
            self._verdict = error
        return self._verdict

    def _remedy(self, refused: str) -> str:
        if "ssl" in refused.lower():
            from failover.config.tls import tls_hint

            return tls_hint(refused, self.alias)
        if self._settings.sasl is not None and self._settings.sasl.token is not None:
            return "does the cluster take tokens of this issuer, audience and scope, and do the clocks agree?"
        return f"check the security settings of {self.alias} in the configuration"

    def _servers(self) -> str:
        return ", ".join(f"{host}:{port}" for host, port in self._settings.bootstrap[:3])


def _lost(answer: object) -> bool:
    return isinstance(answer, Fault) and answer.number < 0


def _passes(answer: object) -> bool:
    # UNKNOWN_TOPIC_OR_PARTITION counts as retriable for Kafka's clients; asked by name it is the answer
    return isinstance(answer, Fault) and answer.retriable and answer.number > 0 and answer.number != 3


def outcome(future: Future[V]) -> V | Fault:
    """Gives a finished future's value, or the fault of the KafkaException it ended with."""
    from confluent_kafka import KafkaException

    try:
        return future.result(timeout=0)
    except KafkaException as error:
        return fault_of(error.args[0])


def _in_words(code: str, server: str, what: str) -> str:
    if code == "_RESOLVE":
        reason = what.rsplit(": ", 1)[-1]
        return f"{server} does not resolve ({reason})"
    if "Connection refused" in what:
        return f"connection refused at {server}"
    return f"{what} at {server}" if server else what
