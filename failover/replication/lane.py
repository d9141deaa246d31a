"""One partition's way to the target: what is sent, what came of it, and what may be sent next. Pure.

    source  ...──────────●━━━━━━━━━━━━━━━━━━━━━●━━━━━━━━━━━━━━━━━━━●
                     upstream     flights                waiting    fetch_offset
    target  ...──────────●
                     downstream

``(upstream, downstream)`` is the lane's anchor: whatever is to be copied of the source below ``upstream`` is on the
target below ``downstream``, and nothing else of this source is there from ``downstream`` on but what ``flights`` may
have brought.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable

from failover.model.names import Fault, TopicPartition
from failover.replication.batches import Outgoing, next_sequence, stamp
from failover.replication.sync_rows import Row, SyncRows

IN_FLIGHT = 5
"""Batches of one partition on their way at most: a broker remembers the last five of a producer, and only against
those it can tell a batch that comes again (measured on Kafka 4.1.1: the sixth from the end is refused)."""

_FENCED = frozenset({47, 90})  # INVALID_PRODUCER_EPOCH, PRODUCER_FENCED
# UNKNOWN_TOPIC_OR_PARTITION is retried: a broker that has just become the leader may not know it yet. What is not
# known for long is found by the next look at the topics.
_PASSING = frozenset({5, 9, 13, 19, 72, 74, 75, 78, 89})
# It may lie in the log: REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND, and what a broker answers that lost the
# partition, its lead or its disk while a batch it had appended waited for the replicas (Kafka: DelayedProduce).
_UNCERTAIN = frozenset({3, 6, 7, 20, 56})
_OUT_OF_ORDER, _UNKNOWN_TOPIC_ID = 45, 100
# A broker refuses these without having looked into its log, and the same bytes may be taken later.
_REFUSED = frozenset({2, 10, 17, 18, 29, 31, 32, 35, 38, 43, 44, 76, 87})


class Trouble(enum.IntEnum):
    """Says what stands in a lane's way, the graver the higher.

    ``RETRY``: it passes by itself, the same bytes are sent again. ``REFUSED``: the target does not take this batch
    (too large, no right, no space): again after a longer pause. ``DOUBT``: what the target holds must be looked up.
    ``FENCED``: a newer owner writes here.
    """

    NONE = 0
    RETRY = 1
    REFUSED = 2
    DOUBT = 3
    FENCED = 4


class State(enum.Enum):
    """Says what a lane may do. ``CLOSED``: nothing. ``OPEN``: read and send. ``DRAINING``: wait for its answers.

    ``DRAINED``: nothing is on its way, its owner decides.
    """

    CLOSED = "closed"
    OPEN = "open"
    DRAINING = "draining"
    DRAINED = "drained"


class Flight:
    """Is one batch on its way. ``expected``: the target offset its first record must get.

    ``settled``: its answer came or will not. ``placed``: its answer says that it lies where it was expected.
    ``uncertain``: it may lie in the target's log.
    """

    __slots__ = ("expected", "outgoing", "placed", "sequence", "settled", "uncertain")

    def __init__(self, outgoing: Outgoing, sequence: int, expected: int) -> None:
        self.outgoing = outgoing
        self.sequence = sequence
        self.expected = expected
        self.settled = False
        self.placed = False
        self.uncertain = False


class Lane:
    """Carries one source partition's batches to one target partition, exactly once while its producer's epoch is.

    Invariants:

    - What is sent continues what was sent: the first flight begins at the anchor, each further one where the one
      before it ends, on the source (but for what is not copied), on the target and in sequence.
    - A batch's bytes do not change from its first sending until it is acknowledged, so that a broker that has it
      recognises it (its first and last sequence); but for one that no broker has taken (``begin_again``).
    - The anchor moves only over acknowledged batches, in their order, and only where the broker put each at the very
      offset at which it was expected. So another writer, a lost log or a batch that lies there twice is noticed with
      the next answer.
    - Nothing is sent while an answer is open behind one that failed: a retried batch never overtakes another.
    - A batch goes alone where the broker may have forgotten its producer: first after a start, after a retry and after
      a pause, and always if its records, those before it or those it would go beside are so old that the broker may
      forget the producer at any moment (it ages producers by the timestamps of their records). Else a lost first batch
      could let the second one in before it.
    - What may lie in the log is sent again only while it is so young that the broker is sure to recognise it.
    """

    __slots__ = (
        "_again",
        "_alone",
        "_syncs",
        "_waiting",
        "_written",
        "buffered",
        "downstream",
        "expected",
        "failures",
        "fault",
        "fetch_offset",
        "flights",
        "leader_epoch",
        "records",
        "sequence",
        "source",
        "state",
        "target",
        "trouble",
        "upstream",
    )

    def __init__(self, source: TopicPartition, target: TopicPartition, *, offset_lag_max: int = 100) -> None:
        self.source = source
        self.target = target
        self.state = State.CLOSED
        self.trouble = Trouble.NONE
        self.fault: Fault | None = None
        self.failures = 0
        self.upstream = self.downstream = 0
        self.fetch_offset = self.expected = self.sequence = 0
        self.leader_epoch = -1
        self.flights: deque[Flight] = deque()
        self.buffered = 0
        self.records = 0
        self._waiting: deque[Outgoing] = deque()
        self._again: deque[Flight] = deque()
        self._alone = True
        self._written = 0
        self._syncs = SyncRows(offset_lag_max)

    # -- the owner's side ------------------------------------------------------------------------

    def start(self, upstream: int, downstream: int, *, leader_epoch: int = -1) -> None:
        """Opens the lane at an anchor for a producer whose sequences begin at 0 here.

        ``leader_epoch``: that of the source record before ``upstream``, -1 where it is not known.
        """
        self._drop_all()
        self.upstream = self.fetch_offset = upstream
        self.downstream = self.expected = downstream
        self.leader_epoch = leader_epoch
        self.sequence = 0
        self._written = 0
        self._syncs.begin(upstream, downstream)
        self._open()

    def retry(self, *, fresh_from: int) -> bool:
        """Sends again what is not acknowledged, the same bytes in the same order, the first of them alone.

        False, and nothing done, where a batch may lie in the log and is so old by now that the broker may not recognise
        it, or the trouble is graver than that: then what the target holds must be looked up.
        """
        if self.state is not State.DRAINED:
            raise ValueError(f"lane {self.source} is {self.state.value}, not drained")
        again = deque((*self.flights, *self._again))
        if self.trouble >= Trouble.DOUBT or any(_forgettable(flight, fresh_from) for flight in again):
            return False
        for flight in again:
            flight.settled = flight.placed = False
        self.flights.clear()
        self._again = again
        self._open()
        return True

    def begin_again(self) -> bool:
        """Reads what the target has refused again, so that it is sent in other batches, in the same sequences.

        False, and nothing done, where any of it may lie in the log.
        """
        if not self.forget():
            return False
        self._open()
        return True

    def forget(self) -> bool:
        """Lets go of what the target has refused, to be read again: a lane that stands still holds no memory then.

        False, and nothing done, where there is none or any of it may lie in the log: that must come again as it was.
        """
        if self.state is not State.DRAINED:
            raise ValueError(f"lane {self.source} is {self.state.value}, not drained")
        refused = (*self.flights, *self._again)
        if self.trouble >= Trouble.DOUBT or not refused or any(flight.uncertain for flight in refused):
            return False
        self.sequence, self.expected = refused[0].sequence, refused[0].expected
        self._drop_all()
        self.leader_epoch = -1
        return True

    def close(self) -> None:
        """Ends reading and sending; what is on its way or not yet sent is forgotten, the anchor stays."""
        self._drop_all()
        self.leader_epoch = -1
        self.state = State.CLOSED

    def hold(self) -> None:
        """Sends nothing more until the owner has decided, as it does when another lane of its epoch is in doubt."""
        if self.state is State.OPEN:
            self._stop()
            self._drained()

    def shed(self) -> None:
        """Lets go of what was read and never sent, to be read again; but for one batch if nothing else is pending."""
        kept = self._waiting.popleft() if self._waiting and not (self.flights or self._again) else None
        self._drop_waiting()
        if kept is not None:
            self._waiting.append(kept)

    def move(self, upstream: int) -> None:
        """Goes on reading at another place of the source: it lost records, or is another topic under the old name.

        Only while nothing is on its way.
        """
        if self.flights or self._again:
            raise ValueError(f"lane {self.source} is moved with {self.pending} batches on their way")
        self._drop_waiting()
        self.upstream = self.fetch_offset = upstream
        self.leader_epoch = -1
        self._syncs.begin(upstream)

    # -- the source's side -----------------------------------------------------------------------

    def offer(self, batches: Iterable[Outgoing], next_offset: int, leader_epoch: int = -1) -> None:
        """Takes what was read from ``fetch_offset`` on; the source is read up to ``next_offset`` then.

        What arrives while the lane is not open is left to be read again.
        """
        if self.state is not State.OPEN:
            return
        for batch in batches:
            self._waiting.append(batch)
            self.buffered += len(batch.data)
        self.fetch_offset = next_offset
        if leader_epoch >= 0:
            self.leader_epoch = leader_epoch
        if not self.pending:
            self.upstream = next_offset

    @property
    def pending(self) -> int:
        """Is the number of batches read and not acknowledged."""
        return len(self._waiting) + len(self._again) + len(self.flights)

    @property
    def pending_records(self) -> int:
        """Is the number of records read and not acknowledged."""
        return sum(
            batch.records
            for batches in (self._waiting, (flight.outgoing for flight in (*self._again, *self.flights)))
            for batch in batches
        )

    @property
    def on_the_way(self) -> bool:
        """Says whether an answer of the target is waited for."""
        return not all(flight.settled for flight in self.flights)

    @property
    def waiting(self) -> int:
        """Is the number of batches read and never sent."""
        return len(self._waiting)

    # -- the target's side -----------------------------------------------------------------------

    def next(self, producer_id: int, epoch: int, *, fresh_from: int) -> Flight | None:
        """Gives the next batch to send, stamped; None while none may be sent.

        ``fresh_from`` (epoch ms): records younger than this keep the producer in the broker's memory. If a batch that
        is to come again has become older than that meanwhile, the lane has drained in doubt.
        """
        if self.state is not State.OPEN:
            return None
        flying = len(self.flights)
        if flying and (self._alone or flying >= IN_FLIGHT):
            return None
        again = self._again
        if again and _forgettable(again[0], fresh_from):
            self._troubled(
                Trouble.DOUBT, Fault(-1, "TOO_OLD", "it may have been appended, and is too old to come again")
            )
            return None
        if not again and not self._waiting:
            return None
        batch = again[0].outgoing if again else self._waiting[0]
        if (
            flying
            and min(batch.newest_timestamp, self.flights[-1].outgoing.newest_timestamp, self._written) < fresh_from
        ):
            return None
        if again:
            flight = again.popleft()
        else:
            self._waiting.popleft()
            stamp(batch.data, producer_id, epoch, self.sequence)
            flight = Flight(batch, self.sequence, self.expected)
            self.sequence = next_sequence(self.sequence, batch.records)
            self.expected += batch.records
        self.flights.append(flight)
        return flight

    def acknowledged(self, flight: Flight, base_offset: int) -> bool:
        """Notes that the target has a batch at ``base_offset``; says whether the lane has just drained.

        An answer that comes after the lane was closed or started anew changes nothing.
        """
        if flight.settled or flight not in self.flights:
            return False
        flight.settled = True
        if base_offset != flight.expected:
            return self._troubled(
                Trouble.DOUBT,
                Fault(-1, "UNEXPECTED_OFFSET", f"appended at {base_offset} where {flight.expected} was due"),
            )
        # Where one before it fails yet, it comes again behind that one, though it is there.
        flight.placed = flight.uncertain = True
        while self.flights and self.flights[0].placed:
            self._advance(self.flights.popleft())
        return self._drained()

    def failed(self, flight: Flight, fault: Fault, *, fresh_from: int) -> bool:
        """Notes that a batch was refused or its answer lost (a negative ``fault.number``); says whether it drained.

        What may lie in the log is sent again only while the broker is sure to recognise it (``fresh_from``).
        """
        if flight.settled or flight not in self.flights:
            return False
        flight.settled = True
        flight.uncertain = flight.uncertain or fault.number < 0 or fault.number in _UNCERTAIN
        first = self.flights[0] is flight
        return self._troubled(self._weigh(flight, fault, first=first, fresh_from=fresh_from), fault)

    # -- for the record --------------------------------------------------------------------------

    def syncs(self) -> list[Row]:
        """Takes the pairs (source offset, target offset) of one record each that are to become offset syncs."""
        return self._syncs.take()

    # -- inside ----------------------------------------------------------------------------------

    def _advance(self, flight: Flight) -> None:
        batch = flight.outgoing
        self.buffered -= len(batch.data)
        self.records += batch.records
        self.failures = 0
        self._written = batch.newest_timestamp  # by it the broker ages the producer
        self.downstream = flight.expected + batch.records
        self._syncs.copied(
            (batch.first_source_offset, batch.last_source_offset), (flight.expected, self.downstream - 1)
        )
        self.upstream = batch.next_source_offset if self.pending else self.fetch_offset
        self._alone = not self.pending

    def _weigh(self, flight: Flight, fault: Fault, *, first: bool, fresh_from: int) -> Trouble:
        number = fault.number
        if number in _FENCED:
            return Trouble.FENCED
        if number == _OUT_OF_ORDER:
            return Trouble.DOUBT if first and self.trouble is Trouble.NONE else Trouble.RETRY
        if number in _REFUSED:
            return Trouble.REFUSED
        if number < 0 or number in _PASSING or number in _UNCERTAIN:
            return Trouble.DOUBT if _forgettable(flight, fresh_from) else Trouble.RETRY
        return Trouble.DOUBT

    def _troubled(self, trouble: Trouble, fault: Fault) -> bool:
        if trouble > self.trouble:
            self.trouble, self.fault = trouble, fault
        if self.state is State.OPEN:
            self.failures += 1
            self._stop()
        return self._drained()

    def _stop(self) -> None:
        """Begins to drain; what was not sent is read again later, so that a lane in trouble holds no memory."""
        self.state = State.DRAINING
        self._drop_waiting()

    def _drop_waiting(self) -> None:
        for batch in self._waiting:
            self.buffered -= len(batch.data)
        if self._waiting:
            self.fetch_offset = self._waiting[0].first_source_offset
            self.leader_epoch = -1  # that of a record that will be read again
        self._waiting.clear()

    def _drained(self) -> bool:
        if self.state is State.DRAINING and not self.on_the_way:
            self.state = State.DRAINED
            return True
        return False

    def _open(self) -> None:
        self.state, self.trouble, self.fault = State.OPEN, Trouble.NONE, None
        self._alone = True

    def _drop_all(self) -> None:
        self.flights.clear()
        self._again.clear()
        self._waiting.clear()
        self.buffered = 0
        self.fetch_offset = self.upstream


def _forgettable(flight: Flight, fresh_from: int) -> bool:
    """Says whether a batch may lie in the log without the broker's knowing whose it is."""
    return flight.uncertain and flight.outgoing.newest_timestamp < fresh_from
