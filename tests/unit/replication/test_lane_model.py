"""A lane against a target that loses answers, refuses, moves, forgets, is fenced, loses its end, has other writers."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from failover.kafka.wire.encode import builder
from failover.model.names import Fault, TopicPartition
from failover.replication.batches import Kind, Outgoing
from failover.replication.lane import IN_FLIGHT, Flight, Lane, State, Trouble
from tests.unit.replication.target_partition import EXPIRATION_MS, TargetPartition

PRODUCER = 7
LOST = Fault(-1, "NO_ANSWER")
NOT_LEADER = 6
# Of a request that a broker has taken up: (appended or not, its error).
OUTCOMES = [
    *[(True, 0)] * 8,
    *[(False, number) for number in (3, 6, 10, 19, 19, 100)],
    # answered so after the append too: DelayedProduce asks again who leads while it waits for the replicas
    *[(True, number) for number in (3, 6, 7, 20, 56)],
]


class Record(NamedTuple):
    offset: int
    timestamp: int


class Request(NamedTuple):
    flight: Flight
    data: bytes
    epoch: int


class Answer(NamedTuple):
    flight: Flight
    error: int
    base_offset: int


class Channel:
    """Is a connection: answers come in the order of the requests. ``stale``: it leads to a broker that led once."""

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.answers: deque[Answer] = deque()
        self.stale = False


class LaneMachine(RuleBasedStateMachine):
    """Owns a lane as a shard does.

    ``lost``: the target has lost what it had acknowledged, and the lane was not started since. ``stopped``: why the
    owner gave up.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lane = Lane(TopicPartition("orders", 0), TopicPartition("a.orders", 0))
        self.target = TargetPartition()
        self.source: list[Record] = []
        self.source_end = 0
        self.now = 1_000_000
        self.epoch = 0
        self.channels = [Channel()]
        self.late: deque[Request] = deque()
        self.held: list[Outgoing] = []
        self.lost = self.usurped = self.foreign = False
        self.stopped = ""

    @property
    def fresh_from(self) -> int:
        return self.now - EXPIRATION_MS // 2

    @initialize(offset=st.sampled_from([0, 5]), wrapping=st.booleans())
    def begin(self, offset: int, wrapping: bool) -> None:
        self.source_end = offset
        self.doubt()
        if wrapping:  # a producer that has written almost as much as sequences tell apart
            self.lane.sequence = (1 << 31) - 3
            self.target.producers.clear()

    # -- the source ------------------------------------------------------------------------------

    @rule(count=st.integers(1, 5), old=st.booleans(), gap=st.sampled_from([0, 0, 0, 2]))
    def write(self, count: int, old: bool, gap: int) -> None:
        self.source_end += gap
        for _ in range(count):
            self.source.append(Record(self.source_end, self.now - (3 * EXPIRATION_MS if old else 0)))
            self.source_end += 1

    @rule()
    def write_what_is_not_copied(self) -> None:
        self.source_end += 1

    @rule(sizes=st.lists(st.integers(1, 3), max_size=7), beyond=st.booleans())
    def read(self, sizes: list[int], beyond: bool) -> None:
        """Offers what lies at ``fetch_offset``; ``beyond``: up to the next record that is not offered."""
        position = self.lane.fetch_offset
        at = bisect_left(self.source, position, key=lambda record: record.offset)
        batches = []
        for size in sizes:
            records = self.source[at : at + size]
            if not records:
                break
            at += size
            position = records[-1].offset + 1
            following = self.source[at].offset if at < len(self.source) else self.source_end
            batches.append(outgoing(records, following if beyond else position))
        if beyond:
            position = self.source[at].offset if at < len(self.source) else self.source_end
        self.offer(batches, position)

    def offer(self, batches: list[Outgoing], position: int) -> None:
        if self.lane.state is State.OPEN:
            self.held += batches
        self.lane.offer(batches, position, 3)

    @precondition(
        lambda self: self.lane.state is State.OPEN and not self.lane.pending and not self.usurped and self.source
    )
    @rule(skipped=st.integers(0, 3))
    def lose_the_sources_head(self, skipped: int) -> None:
        at = bisect_left(self.source, self.lane.upstream, key=lambda record: record.offset)
        del self.source[at : at + skipped]
        self.lane.move(self.source[at].offset if at < len(self.source) else self.source_end)

    # -- the way there and back ------------------------------------------------------------------

    @rule(most=st.sampled_from([1, 2, 9]))
    def send(self, most: int) -> None:
        for _ in range(most):
            flight = self.lane.next(PRODUCER, self.epoch, fresh_from=self.fresh_from)
            if flight is None:
                break
            self.channels[-1].requests.append(Request(flight, bytes(flight.outgoing.data), self.epoch))

    @rule(which=st.integers(0, 2), outcome=st.sampled_from(OUTCOMES), count=st.sampled_from([1, 1, 9]))
    def take(self, which: int, outcome: tuple[bool, int], count: int) -> None:
        """Takes up requests; the first of them has the outcome, those behind it what they get."""
        channel = self.channels[which % len(self.channels)]
        for _ in range(min(count, len(channel.requests))):
            request = channel.requests.popleft()
            appended, error = (False, NOT_LEADER) if channel.stale else outcome
            base_offset = -1
            if appended:
                found, base_offset = self.target.produce(request.data)
                error = found or error
            channel.answers.append(Answer(request.flight, error, base_offset))
            outcome = True, 0

    @rule(which=st.integers(0, 2), count=st.sampled_from([1, 1, 9]))
    def answer(self, which: int, count: int) -> None:
        channel = self.channels[which % len(self.channels)]
        for _ in range(min(count, len(channel.answers))):
            flight, error, base_offset = channel.answers.popleft()
            if error:
                self.fail(flight, Fault(error, str(error)))
            else:
                self.watched(lambda f=flight, b=base_offset: self.lane.acknowledged(f, b))

    def fail(self, flight: Flight, fault: Fault) -> None:
        self.watched(lambda: self.lane.failed(flight, fault, fresh_from=self.fresh_from))

    def watched(self, step) -> None:
        """Holds a step to its word: it says whether the lane has just drained."""
        before = self.lane.state
        drained = step()
        assert drained == (before is not State.DRAINED and self.lane.state is State.DRAINED)

    @rule(which=st.integers(0, 2), taken=st.integers(0, 5), late=st.booleans(), backwards=st.booleans())
    def break_connection(self, which: int, taken: int, late: bool, backwards: bool) -> None:
        """``taken``: requests still taken up before the broker notices. ``late``: further ones come up any time."""
        channel = self.channels.pop(which % len(self.channels))
        self.channels = self.channels or [Channel()]
        open_flights = [each.flight for each in (*channel.answers, *channel.requests)]
        if not channel.stale:
            self.channels.append(Channel())
            for _ in range(min(taken, len(channel.requests))):
                self.target.produce(channel.requests.popleft().data)
            if late:
                self.late += channel.requests
        for flight in reversed(open_flights) if backwards else open_flights:
            self.fail(flight, LOST)

    @rule()
    def take_late(self) -> None:
        if self.late:
            self.target.produce(self.late.popleft().data)

    @rule()
    def move_leader(self) -> None:
        for channel in self.channels:
            channel.stale = True
        self.late.clear()
        self.channels = [*self.channels[-2:], Channel()]
        for channel in self.channels[:-3]:
            channel.requests.clear()

    # -- time ------------------------------------------------------------------------------------

    @rule()
    def tick(self) -> None:
        self.now += 5

    @precondition(lambda self: not self.late and not any(each.requests or each.answers for each in self.channels))
    @rule(pause=st.sampled_from([300, 800, 1500]))
    def pass_time(self, pause: int) -> None:
        self.now += pause

    def old_requests(self) -> bool:
        return bool(self.late) or any(
            request.epoch != self.epoch for channel in self.channels for request in channel.requests
        )

    # A request of an epoch before that lies about for longer than a broker remembers a producer is not the lane's to
    # prevent; neither is a newer owner that is forgotten.
    @precondition(lambda self: not self.usurped and not self.old_requests())
    @rule()
    def forget(self) -> None:
        self.target.forget(self.now)

    # -- the owner -------------------------------------------------------------------------------

    @rule()
    def decide(self) -> None:
        lane = self.lane
        if lane.state is not State.DRAINED:
            return
        if lane.trouble is Trouble.FENCED:
            assert self.usurped
            self.stop("fenced")
        elif lane.trouble is Trouble.DOUBT or not lane.retry(fresh_from=self.fresh_from):
            self.doubt()

    @rule()
    def hold(self) -> None:
        self.lane.hold()

    @rule()
    def doubt_a_neighbour(self) -> None:
        self.lane.hold()
        if self.lane.state is State.DRAINED:
            self.doubt()

    @precondition(lambda self: not self.stopped)
    @rule()
    def close_and_take_again(self) -> None:
        self.lane.close()
        self.check()
        self.doubt()

    def doubt(self) -> None:
        """Fences, locates and starts."""
        if self.stopped:
            return
        if self.usurped:
            self.stop("fenced")
            return
        self.epoch += 1
        self.target.fence(PRODUCER, self.epoch, self.now)
        values = self.target.values
        if values != [value_of(record) for record in self.source[: len(values)]]:
            self.stop("unknown position")
            return
        upstream = self.source[len(values) - 1].offset + 1 if values else 0
        self.lane.start(upstream, self.target.end, leader_epoch=2)
        self.lost = False

    def stop(self, why: str) -> None:
        self.lane.close()
        self.stopped = why

    # -- what else happens to the target ---------------------------------------------------------

    @precondition(lambda self: not self.usurped and not self.foreign)
    @rule(batches=st.integers(1, 4))
    def lose_the_targets_tail(self, batches: int) -> None:
        self.move_leader()
        self.target.lose(batches)
        end = self.target.end
        answered = [answer for channel in self.channels for answer in channel.answers if not answer.error]
        if end < self.lane.downstream or any(answer.base_offset >= end for answer in answered):
            self.lost = True

    @precondition(lambda self: not self.lost)
    @rule(chance=st.integers(0, 3))
    def write_beside(self, chance: int) -> None:
        if chance == 0:
            self.target.append_foreign()
            self.foreign = True

    @precondition(lambda self: not self.lost and not self.foreign and not self.stopped)
    @rule(chance=st.integers(0, 3), copies=st.booleans())
    def usurp(self, chance: int, copies: bool) -> None:
        """Another worker takes over and goes on where this one was."""
        if chance:
            return
        self.target.fence(PRODUCER, self.epoch + 1, self.now)
        self.usurped = True
        at = len(self.target.values)
        if copies and at < len(self.source):
            flight = Lane(self.lane.source, self.lane.target)
            flight.start(self.source[at].offset, self.target.end)
            flight.offer([outgoing(self.source[at : at + 1], self.source[at].offset + 1)], self.source[at].offset + 1)
            sent = flight.next(PRODUCER, self.epoch + 1, fresh_from=0)
            assert sent is not None
            assert self.target.produce(bytes(sent.outgoing.data))[0] == 0

    # -- what holds ------------------------------------------------------------------------------

    @rule()
    def record(self) -> None:
        if self.lost:
            return
        for upstream, downstream in self.lane.syncs():
            assert self.target.value_at(downstream) == b"%d" % upstream

    @invariant()
    def check(self) -> None:
        lane = self.lane
        self.held = [each for each in self.held if lane.upstream <= each.first_source_offset < lane.fetch_offset]
        assert lane.buffered == sum(len(each.data) for each in self.held)
        assert lane.pending == len(self.held)
        assert len(lane.flights) <= IN_FLIGHT
        assert lane.downstream <= lane.expected
        assert lane.upstream <= lane.fetch_offset
        if lane.state is State.DRAINED:
            assert all(flight.settled for flight in lane.flights)
        if lane.state is State.OPEN:
            assert lane.trouble is Trouble.NONE
        if self.lost:
            return
        source = [value_of(record) for record in self.source]
        ours = [value for value in self.target.values if value is not None]
        assert ours == source[: len(ours)]
        copied = bisect_left(self.source, lane.upstream, key=lambda record: record.offset)
        assert self.target.values_below(lane.downstream) == source[:copied]
        if lane.state is not State.CLOSED and not self.usurped:
            beyond = bisect_left(self.source, lane.fetch_offset, key=lambda record: record.offset)
            assert len(ours) <= beyond

    def teardown(self) -> None:
        """From here on all is well: everything arrives, or the owner has a reason to have given up."""
        self.write(1, old=False, gap=0)
        for _ in range(200):
            if self.stopped or (not self.lane.pending and self.lane.upstream == self.source_end and not self.lost):
                break
            for which in range(len(self.channels)):
                self.take(which, (True, 0), 9)
                self.answer(which, 9)
                self.check()
            if self.lane.state is State.OPEN:
                self.read([2] * 9, beyond=True)
                self.send(9)
            self.decide()
            self.check()
        self.record()
        if not self.stopped:
            assert self.lane.upstream == self.source_end
            if not self.usurped:
                assert [value for value in self.target.values if value] == [value_of(record) for record in self.source]
        elif self.stopped == "fenced":
            assert self.usurped
        else:
            assert self.lost or self.foreign


def value_of(record: Record) -> bytes:
    return b"%d" % record.offset


def outgoing(records: list[Record], following: int) -> Outgoing:
    batch = builder(0, 1 << 16)
    for at, record in enumerate(records):
        batch.append(at, record.timestamp, None, value_of(record), [])
    newest = max(record.timestamp for record in records)
    first, last = records[0].offset, records[-1].offset
    return Outgoing(first, last, following, len(records), newest, batch.build(), Kind.COALESCED)


TestLane = LaneMachine.TestCase
TestLane.settings = settings(max_examples=200, stateful_step_count=50)
