"""A client of Kafka Connect's REST interface (Kafka 2.4 to 4.3), synchronous, on urllib3."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import quote

import msgspec

from failover.connect.access import ConnectAccess
from failover.connect.values import (
    Expanded,
    Info,
    Offset,
    Offsets,
    Plugin,
    Refusal,
    Status,
    Validation,
    WorkerInfo,
)
from failover.errors import (
    ConnectAnswer,
    ConnectorNotFound,
    ConnectRefused,
    ConnectUnreachable,
    CredentialsRefused,
)

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

T = TypeVar("T")
Verb = Literal["pause", "resume", "stop"]

REBALANCE_SECONDS = 60.0
"""So long a request waits for Connect to become able to answer: a rebalance, a leader that is being elected."""
_LONGEST_TEXT = 2000
_TRIES = 3


class _Busy(Exception):
    """Says that Connect did not carry a request out, and may shortly (409, or a worker that is starting)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class _Lost(Exception):
    """Says that a connection failed; ``sent``: the request may have been carried out."""

    def __init__(self, message: str, *, sent: bool, certificate: bool = False) -> None:
        super().__init__(message)
        self.sent, self.certificate = sent, certificate


class ConnectClient:
    """Asks one Connect cluster by whichever of its workers answers.

    Calls that do the same when they are repeated are tried again after a broken connection; every call is while Connect
    says that it rebalances (409), for ``REBALANCE_SECONDS``. All raise ConnectUnreachable, CredentialsRefused,
    ConnectorNotFound, ConnectRefused (400) and ConnectAnswer. ``sleep`` waits, in seconds.
    """

    def __init__(
        self,
        access: ConnectAccess,
        *,
        sleep: Callable[[float], None] | None = None,
        rebalance_seconds: float = REBALANCE_SECONDS,
    ) -> None:
        self.access = access
        self._sleep = sleep
        self._patience = rebalance_seconds
        self._pool: PoolManager | None = None
        self._first = 0

    def close(self) -> None:
        """Closes its connections."""
        if self._pool is not None:
            self._pool.clear()
            self._pool = None

    def __enter__(self) -> ConnectClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- reading ---------------------------------------------------------------------------------

    def worker(self) -> WorkerInfo:
        """Gives the version of a worker and the id of the cluster it writes to."""
        return self._read("/", WorkerInfo)

    def connectors(self) -> dict[str, Expanded]:
        """Gives every connector with configuration and state, in one request (Kafka 2.3 and later)."""
        return self._read("/connectors?expand=info&expand=status", dict[str, Expanded])

    def operated(self) -> bool:
        """Says whether an operator may be at work: ``failover replicate`` answers too, and names no commit of Kafka."""
        return bool(self.worker().commit)

    def info(self, name: str) -> Info:
        """Gives a connector's configuration."""
        return self._read(_path(name), Info)

    def status(self, name: str) -> Status:
        """Gives the state of a connector and its tasks."""
        return self._read(_path(name, "status"), Status)

    def offsets(self, name: str) -> tuple[Offset, ...]:
        """Gives a connector's stored positions (Kafka 3.5 and later)."""
        return self._read(_path(name, "offsets"), Offsets).offsets

    def plugins(self) -> list[Plugin]:
        """Gives the connector classes the worker can run."""
        return self._read("/connector-plugins", list[Plugin])

    # -- changing --------------------------------------------------------------------------------

    def validate(self, config: Mapping[str, str]) -> Validation:
        """Has a configuration checked by its connector; nothing is changed."""
        plugin = quote(config["connector.class"], safe="")
        path = f"/connector-plugins/{plugin}/config/validate"
        return _decode(self._call("PUT", path, config, again=True), Validation, path)

    def put_config(self, name: str, config: Mapping[str, str]) -> None:
        """Makes a connector, or replaces its configuration."""
        self._call("PUT", _path(name, "config"), config, again=True)

    def create(self, name: str, config: Mapping[str, str], state: str) -> None:
        """Makes a connector in a state other than RUNNING (Kafka 3.7 and later); never sent twice."""
        self._call("POST", "/connectors", {"name": name, "config": config, "initial_state": state})

    def act(self, name: str, verb: Verb) -> None:
        """Asks for a connector to be paused, resumed or stopped (stop: Kafka 3.5); returns before it is."""
        self._call("PUT", _path(name, verb), again=True)

    def restart(self, name: str, *, only_failed: bool = False) -> None:
        """Restarts a connector with its tasks, or what of it failed; never sent twice."""
        wanted = f"?includeTasks=true&onlyFailed={str(only_failed).lower()}"
        self._call("POST", _path(name, "restart") + wanted)

    def patch_offsets(self, name: str, offsets: Offsets) -> str:
        """Sets stored positions of a stopped connector (Kafka 3.6 and later); gives what Connect says to it."""
        body = self._call("PATCH", _path(name, "offsets"), offsets, again=True)
        try:
            return msgspec.json.decode(body, type=Refusal).message
        except msgspec.DecodeError:
            return ""

    # -- inside ----------------------------------------------------------------------------------

    def _read(self, path: str, type_: type[T]) -> T:
        return _decode(self._call("GET", path, again=True), type_, path)

    def _call(self, method: str, path: str, body: object = None, *, again: bool = False) -> bytes:
        """Sends a request and gives the answer's body; ``again``: it may be sent twice."""
        from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

        lost = 0

        def passing(error: BaseException) -> bool:
            nonlocal lost
            if isinstance(error, _Lost):
                lost += 1
                return not error.certificate and (again or not error.sent) and lost < _TRIES
            return isinstance(error, _Busy)

        options: dict[str, Any] = {} if self._sleep is None else {"sleep": self._sleep}
        retrying = Retrying(
            stop=stop_after_delay(self._patience),
            wait=wait_random_exponential(multiplier=0.25, max=4),
            retry=retry_if_exception(passing),
            reraise=True,
            **options,
        )
        content = None if body is None else msgspec.json.encode(body)
        try:
            return retrying(self._any_worker, method, path, content)
        except _Busy as busy:
            raise ConnectUnreachable(
                f"{self.access.shown} does not answer {method} {_short(path)}: {busy.message}",
                alias=self.access.shown,
                hint="Connect rebalances or has no leader; look at its workers, then try again",
            ) from None
        except _Lost as gone:
            doubt = "" if again or not gone.sent else "; whether it was carried out is not known"
            raise ConnectUnreachable(
                f"no answer from {self.access.shown} to {method} {_short(path)}: {gone}{doubt}",
                alias=self.access.shown,
                hint=_hint(gone),
            ) from None

    def _any_worker(self, method: str, path: str, content: bytes | None) -> bytes:
        """Asks the worker that answered last, else the next that can be connected to."""
        urls = self.access.urls
        failure: _Lost | None = None
        for turn in range(len(urls)):
            at = (self._first + turn) % len(urls)
            try:
                answer = self._send(method, urls[at] + path, content)
            except _Lost as gone:
                failure = gone
                if gone.sent:
                    break
                continue
            self._first = at
            return self._judge(method, path, answer)
        assert failure is not None
        raise failure

    def _send(self, method: str, url: str, content: bytes | None) -> BaseHTTPResponse:
        from urllib3 import exceptions as http

        headers = {"Accept": "application/json"}
        if content is not None:
            headers["Content-Type"] = "application/json"
        if self.access.user and self.access.password is not None:
            from urllib3.util import make_headers

            headers |= make_headers(basic_auth=f"{self.access.user}:{self.access.password.reveal()}")
        try:
            # redirects are not followed: they would carry the password to wherever the answer says
            return self._connections().request(method, url, body=content, headers=headers, redirect=False)
        except http.NewConnectionError as error:
            raise _Lost(_cause(error), sent=False) from None
        except http.ConnectTimeoutError:
            raise _Lost("connecting took too long", sent=False) from None
        except http.SSLError as error:
            raise _Lost(_cause(error), sent=False, certificate=True) from None
        except http.TimeoutError:
            raise _Lost(f"nothing came for {self.access.timeout:g} s", sent=True) from None
        except http.HTTPError as error:
            raise _Lost(_cause(error), sent=True) from None

    def _connections(self) -> PoolManager:
        if self._pool is None:
            from urllib3 import PoolManager, Timeout

            context = ssl.create_default_context(cafile=self.access.ca or None)
            self._pool = PoolManager(
                timeout=Timeout(connect=min(10.0, self.access.timeout), read=self.access.timeout),
                retries=False,
                ssl_context=context,
            )
        return self._pool

    def _judge(self, method: str, path: str, answer: BaseHTTPResponse) -> bytes:
        status, data = answer.status, answer.data
        if 200 <= status < 300:
            return data
        message = _said(data) or f"HTTP {status}"
        what = f"{self.access.shown}: {method} {_short(path)}"
        match status:
            case 401 | 403:
                raise CredentialsRefused(
                    f"{what}: HTTP {status}: the user or password is refused",
                    alias=self.access.shown,
                    hint="--user and --password-file, or failover.connect.user and failover.connect.password",
                )
            case 404:
                raise ConnectorNotFound(f"{what}: {message}", hint="failover connect list shows its connectors")
            case 405 | 501:
                raise ConnectRefused(
                    f"{what}: HTTP {status}: this version of Connect has no such request",
                    hint="stop came with Kafka 3.5, setting offsets with 3.6; pause works in all",
                )
            case 409 | 503:
                raise _Busy(status, message)
            case 400 | 422:
                raise ConnectRefused(f"{what}: {message}", hint="correct what it names")
        raise ConnectAnswer(f"{what}: HTTP {status}: {message}", status=status, hint="look at the worker's log")


def _decode(data: bytes, type_: type[T], path: str) -> T:
    try:
        return msgspec.json.decode(data, type=type_)
    except msgspec.DecodeError as error:
        raise ConnectAnswer(
            f"GET {_short(path)}: what answers is no Kafka Connect: {error}", status=200, hint="is the URL right?"
        ) from None


def _path(name: str, *rest: str) -> str:
    return "/".join(["/connectors", quote(name, safe=""), *rest])


def _short(path: str) -> str:
    return path.partition("?")[0]


def _said(data: bytes) -> str:
    try:
        text = msgspec.json.decode(data, type=Refusal).message
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    return text[:_LONGEST_TEXT]


def _cause(error: BaseException) -> str:
    """Gives the reason of a failure without the objects urllib3 puts before it."""
    found = error
    while (inner := _inner(found)) is not None:
        found = inner
    if isinstance(found, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {found.verify_message}"
    text = str(found).rpartition("object at ")[2].partition(": ")[2] if " object at 0x" in str(found) else str(found)
    return text or type(found).__name__


def _inner(error: BaseException) -> BaseException | None:
    candidates = (getattr(error, "reason", None), *error.args[:1], error.__cause__)
    return next((one for one in candidates if isinstance(one, BaseException)), None)


def _hint(gone: _Lost) -> str:
    if gone.certificate:
        return "--ca-file names the authority's certificate; is it https at all?"
    return "is the address right and does the worker run? several may be given, with commas"
