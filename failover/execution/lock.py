"""The advisory lock of a flow's executions, kept as a log of claims on the target."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from failover.errors import FailoverError, Locked
from failover.execution.claims import RENEW_SECONDS, TTL_SECONDS, Claim, Holder, over, replay
from failover.execution.runlog import RunLog, Shared

PATIENCE_SECONDS = 3.0
"""How long an execution waits for the lock's topic to answer before it goes on without."""

_ATTEMPTS = 3
T = TypeVar("T")
_LOG = logging.getLogger(__name__)


class Lock:
    """Holds the claim of one process and renews it until ``release``.

    ``dead`` says of a holder whether its process is known to be gone; it then is released in its
    name. ``renew`` seconds pass between renewals.
    """

    def __init__(self, log: RunLog, me: Claim, *, dead: Callable[[Claim], bool], renew: float = RENEW_SECONDS) -> None:
        self._log = log
        self._me = me
        self._dead = dead
        self._renew = renew
        self._held = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(self, *, patience: float = PATIENCE_SECONDS, force: bool = False) -> tuple[Shared, str]:
        """Claims the lock; gives what the topic holds, and why there is no lock ("" when it is held).

        ``force``: a live holder is told, not obeyed. Raises ``Locked`` when somebody alive holds it. The topic
        has ``patience`` seconds to answer.
        """
        try:
            found = within(patience, self._claim, late=self._let_go)
        except TimeoutError:
            return Shared(), f"topic {self._log.partition.topic} gave no answer within {patience:g} s"
        except FailoverError as error:
            return Shared(), error.message
        shared, holder = found
        if holder is not None and holder.claim.id != self._me.id:
            if force:
                return shared, f"{held_text(holder)}; --ignore-lock goes on all the same"
            raise Locked(
                held_text(holder),
                hint="wait until it ends (a process that died holds it for a minute at most); --ignore-lock goes on",
            )
        self._hold()
        return shared, ""

    def release(self) -> None:
        """Ends the renewals and gives the lock back, as far as the topic answers."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._held:
            self._let_go()

    def _claim(self) -> tuple[Shared, Holder | None]:
        """Appends a claim and finds the holder at that point of the log."""
        reason = self._log.prepare()
        if reason:
            raise FailoverError(reason)
        shared, holder = Shared(), None
        for _ in range(_ATTEMPTS):
            offset = self._log.append_claim(self._me)
            shared = self._log.read(upto=offset)
            holder = replay(shared.claims)
            if holder is None or holder.claim.id == self._me.id or not self._dead(holder.claim):
                break
            self._log.append_claim(msgspec.structs.replace(holder.claim, do="release"))
        return shared, holder

    def _hold(self) -> None:
        self._held = True
        self._thread = threading.Thread(target=self._keep, name="failover-lock", daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        while not self._ended.wait(self._renew):
            try:
                self._log.append_claim(msgspec.structs.replace(self._me, do="renew"))
            except FailoverError as error:
                _LOG.info("the lock could not be renewed: %s", error.message)

    def _let_go(self) -> None:
        try:
            self._log.append_claim(msgspec.structs.replace(self._me, do="release"))
        except FailoverError as error:
            _LOG.info("the lock could not be released, it ends by itself: %s", error.message)


def within(seconds: float, work: Callable[[], T], *, late: Callable[[], None] | None = None) -> T:
    """Does some work aside and gives its result, or raises what it raises; ``TimeoutError`` after ``seconds``.

    The work then goes on by itself, and ``late`` is called once it has ended.
    """
    box: list[T] = []
    errors: list[BaseException] = []
    given_up = threading.Event()

    def run() -> None:
        try:
            box.append(work())
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread
            errors.append(error)
        if given_up.is_set() and late is not None:
            late()

    worker = threading.Thread(target=run, name="failover-aside", daemon=True)
    worker.start()
    worker.join(seconds)
    if errors:
        raise errors[0]
    if not box:
        given_up.set()
        raise TimeoutError
    return box[0]


def live_holder(log: RunLog, *, now: datetime, dead: Callable[[Claim], bool]) -> str:
    """Says who holds the lock, "" when nobody alive does or nobody can tell within ``PATIENCE_SECONDS``.

    Writes nothing and does not make the topic. ``now`` is this machine's clock, held against the
    brokers' append times: a difference between both shows.
    """

    def look() -> Holder | None:
        # A live holder has renewed within its time, so what is older cannot tell of one.
        since = int((now.timestamp() - 2 * TTL_SECONDS) * 1000)
        return replay(log.claims_since(since)) if log.exists() else None

    try:
        holder = within(PATIENCE_SECONDS, look)
    except (FailoverError, TimeoutError):
        return ""
    if holder is None or over(holder, int(now.timestamp() * 1000)) or dead(holder.claim):
        return ""
    return held_text(holder)


def held_text(holder: Holder) -> str:
    """Says who holds the lock, since when, and what they do."""
    claim = holder.claim
    since = datetime.fromtimestamp(holder.since / 1000, UTC)
    return f"{claim.operator} on {claim.host} (process {claim.pid}) is at it since {since:%H:%M:%S} UTC: {claim.what}"
