"""A lane against a target that loses answers, refuses, moves, forgets, is fenced, loses its end, has other writers."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from hypothesis import given, note, settings
from hypothesis import strategies as st

from failover.kafka.wire.encode import builder
from failover.model.names import Fault, TopicPartition
from failover.replication.batches import Kind, Outgoing, stamp
from failover.replication.lane import IN_FLIGHT, Flight, Lane, State, Trouble
from tests.examples import EXAMPLES
from tests.unit.replication.target_partition import EXPIRATION_MS, TargetPartition

PRODUCER = 7
LOST = Fault(-1, "NO_ANSWER")
NOT_LEADER = 6
# Of a request that a broker has taken up: (appended or not, its error).
OUTCOMES = [
    *[(True, 0)] * 20,
    *[(False, number) for number in (3, 6, 10, 19, 19, 100)],
    # answered so after the append too: DelayedProduce asks again who leads while it waits for the replicas
    *[(True, number) for number in (3, 6, 7, 20, 56)],
]


STEPS = {
    "rest": 1,
    "write_and_read": 12,
    "send": 20,
    "take": 20,
    "answer": 20,
    "decide": 8,
    "break_connection": 3,
    "take_late": 2,
    "move_leader": 3,
    "pass_time": 2,
    "forget": 2,
    "hold": 1,
    "shed": 1,
    "close": 1,
    "record": 2,
    "lose_the_sources_head": 1,
}
DANGERS = [{}, {"lose_the_targets_tail": 1}, {"write_beside": 1}, {"usurp": 1}]


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

    @property
    def flights(self) -> list[Flight]:
        return [each.flight for each in self.answers] + [each.flight for each in self.requests]


class World:
    """Owns a lane as a shard does, and is whatever befalls it: a script of steps, three bytes each.

    ``lost``: the target has lost what it had acknowledged, and the lane was not started since. ``stopped``: why the
    owner gave up.
    """

    def __init__(self) -> None:
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
        self._choice = 0

    def play(self, script: bytes) -> None:
        danger, *_ = script[:1]
        self.source_end = danger & 1
        self.doubt()
        if danger & 2:  # a producer that has written almost as much as sequences tell apart
            self.lane.sequence = (1 << 31) - 3
            self.target.producers.clear()
        dangers = DANGERS[danger >> 2 & 3]
        steps = [getattr(self, name) for name, weight in (STEPS | dangers).items() for _ in range(weight)]
        for at in range(1, len(script) - 2, 3):
            self._choice = int.from_bytes(script[at + 1 : at + 3])
            note(f"{steps[script[at] % len(steps)].__name__} {self._choice}")
            steps[script[at] % len(steps)]()
            self.check()
        self.finish()

    def pick(self, *options: Any) -> Any:
        """Chooses by the script; zeros choose the first."""
        self._choice, at = divmod(self._choice, len(options))
        return options[at]

    def rest(self) -> None:
        pass

    @property
    def fresh_from(self) -> int:
        return self.now - EXPIRATION_MS // 2

    # -- the source ------------------------------------------------------------------------------

    def write_and_read(self) -> None:
        self.write(self.pick(1, 3, 9, 0), age=self.pick(0, 0, 0, 400, 3 * EXPIRATION_MS), gap=self.pick(0, 0, 0, 2))
        self.read(self.pick([1] * 7, [2] * 5, [1, 3, 2], [1], []), beyond=self.pick(False, True))

    def write(self, count: int, *, age: int = 0, gap: int = 0) -> None:
        self.source_end += gap
        for _ in range(count):
            self.source.append(Record(self.source_end, self.now - age))
            self.source_end += 1

    def read(self, sizes: list[int], *, beyond: bool) -> None:
        """Offers what lies at ``fetch_offset``; ``beyond``: up to the next record that is not offered."""
        position = self.lane.fetch_offset
        at = self.index(position)
        batches = []
        for size in sizes:
            records = self.source[at : at + size]
            if not records:
                break
            at += size
            position = records[-1].offset + 1
            batches.append(outgoing(records, self.offset(at) if beyond else position))
        if beyond:
            position = self.offset(at)
        if self.lane.state is State.OPEN:
            self.held += batches
        self.lane.offer(batches, position, 3)

    def index(self, offset: int) -> int:
        return bisect_left(self.source, offset, key=lambda record: record.offset)

    def offset(self, at: int) -> int:
        return self.source[at].offset if at < len(self.source) else self.source_end

    def lose_the_sources_head(self) -> None:
        if self.lane.state is State.OPEN and not self.lane.pending and not self.usurped:
            at = self.index(self.lane.upstream)
            del self.source[at : at + self.pick(2, 1)]
            self.lane.move(self.offset(at))

    # -- the way there and back ------------------------------------------------------------------

    def send(self) -> None:
        for _ in range(self.pick(9, 1, 1, 2)):
            flight = self.lane.next(PRODUCER, self.epoch, fresh_from=self.fresh_from)
            if flight is None:
                break
            self.channels[-1].requests.append(Request(flight, bytes(flight.outgoing.data), self.epoch))

    def take(self) -> None:
        """Takes up requests; the last of them has the outcome, those before it what they get."""
        channel = self.pick(*reversed(self.channels), self.channels[-1])
        appended, error = True, 0
        last = min(self.pick(9, 1, 1, 2), len(channel.requests)) - 1
        for at in range(last + 1):
            request = channel.requests.popleft()
            if channel.stale:
                appended, error = False, NOT_LEADER
            elif at == last:
                appended, error = self.pick(*OUTCOMES)
            base_offset = -1
            if appended:
                found, base_offset = self.target.produce(request.data)
                error = found or error
            channel.answers.append(Answer(request.flight, error, base_offset))

    def answer(self) -> None:
        channel = self.pick(*reversed(self.channels), self.channels[-1])
        for _ in range(min(self.pick(9, 1, 1, 2), len(channel.answers))):
            flight, error, base_offset = channel.answers.popleft()
            if error:
                self.fail(flight, Fault(error, str(error)))
            else:
                self.watched(partial(self.lane.acknowledged, flight, base_offset))

    def fail(self, flight: Flight, fault: Fault) -> None:
        self.watched(partial(self.lane.failed, flight, fault, fresh_from=self.fresh_from))

    def watched(self, step: Callable[[], bool]) -> None:
        """Holds a step to its word: it says whether the lane has just drained."""
        before = self.lane.state
        drained = step()
        assert drained == (before is not State.DRAINED and self.lane.state is State.DRAINED)

    def break_connection(self) -> None:
        """Some requests are still taken up before the broker notices, or all come up at any time after."""
        channel = self.pick(*reversed(self.channels), self.channels[-1])
        self.channels.remove(channel)
        flights = channel.flights
        if not channel.stale:
            self.channels.append(Channel())
            for _ in range(min(self.pick(0, 1, 2, 9), len(channel.requests))):
                self.target.produce(channel.requests.popleft().data)
            if self.pick(False, True):
                self.late += channel.requests
        for flight in self.pick(list, reversed)(flights):
            self.fail(flight, LOST)

    def take_late(self) -> None:
        if self.late:
            self.target.produce(self.late.popleft().data)

    def move_leader(self) -> None:
        for channel in self.channels:
            channel.stale = True
        self.late.clear()
        self.channels.append(Channel())
        while len(self.channels) > 3:
            channel = self.channels.pop(0)
            for flight in channel.flights:
                self.fail(flight, LOST)

    # -- time ------------------------------------------------------------------------------------

    def pass_time(self) -> None:
        """Lets no request be on its way for long."""
        pause = self.pick(5, 300, 800, 1500)
        if pause == 5 or not (self.late or any(each.requests or each.answers for each in self.channels)):
            self.now += pause

    def forget(self) -> None:
        # A request of an epoch before that lies about for longer than a broker remembers a producer is not the lane's
        # to prevent; neither is a newer owner that is forgotten.
        old = self.late or any(request.epoch != self.epoch for each in self.channels for request in each.requests)
        if not old and not self.usurped:
            self.target.forget(self.now)

    # -- the owner -------------------------------------------------------------------------------

    def decide(self) -> None:
        lane = self.lane
        if lane.state is not State.DRAINED:
            return
        if lane.trouble is Trouble.FENCED:
            assert self.usurped
            self.stop("fenced")
            return
        if lane.trouble is Trouble.REFUSED and self.pick(False, True) and lane.begin_again():
            return  # read again, it comes in other batches
        if lane.trouble is Trouble.REFUSED and self.pick(False, True):
            lane.forget()
            self.check()
        if lane.trouble is Trouble.DOUBT or not lane.retry(fresh_from=self.fresh_from):
            self.doubt()

    def hold(self) -> None:
        """Another lane of the shard is in doubt, or was."""
        self.lane.hold()
        if self.lane.state is State.DRAINED and self.pick(False, True):
            self.doubt()

    def shed(self) -> None:
        """Others need the room."""
        self.lane.shed()

    def close(self) -> None:
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

    def lose_the_targets_tail(self) -> None:
        if self.usurped or self.foreign:
            return
        self.move_leader()
        self.target.lose(self.pick(1, 2, 4))
        end = self.target.end
        answered = [answer for channel in self.channels for answer in channel.answers if not answer.error]
        if end < self.lane.downstream or any(answer.base_offset >= end for answer in answered):
            self.lost = True

    def write_beside(self) -> None:
        self.target.append_foreign()
        self.foreign = True

    def usurp(self) -> None:
        """Another worker takes over and goes on where this one was."""
        if self.usurped:
            return
        self.target.fence(PRODUCER, self.epoch + 1, self.now)
        self.usurped = True
        at = len(self.target.values)
        if at < len(self.source) and self.pick(True, False):
            batch = outgoing(self.source[at : at + 1], self.source_end)
            stamp(batch.data, PRODUCER, self.epoch + 1, 0)
            assert self.target.produce(bytes(batch.data))[0] == 0

    # -- what holds ------------------------------------------------------------------------------

    def record(self) -> None:
        if self.lost:
            return
        for upstream, downstream in self.lane.syncs():
            assert self.target.value_at(downstream) == b"%d" % upstream

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
        copied = self.index(lane.upstream)
        assert self.target.values_below(lane.downstream) == source[:copied]
        if lane.state is not State.CLOSED and not self.usurped:
            assert len(ours) <= self.index(lane.fetch_offset)

    def finish(self) -> None:
        """From here on all is well: everything arrives, or the owner has a reason to have given up."""
        self.write(1)
        for _ in range(200):
            if self.stopped or (not self.lane.pending and self.lane.upstream == self.source_end and not self.lost):
                break
            self._choice = 0  # everything, and no trouble
            for channel in list(self.channels):
                self.channels.remove(channel)
                self.channels.append(channel)
                self.take()
                self.answer()
                self.check()
            self.channels.sort(key=lambda channel: not channel.stale)
            self.read([2] * 9, beyond=True)
            self.send()
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


# A byte is a step's number, two are its choices; zeros rest.
@settings(max_examples=EXAMPLES)
@given(st.binary(min_size=601, max_size=601))
def test_every_record_arrives_once_and_in_order_whatever_happens(script):
    World().play(script)
