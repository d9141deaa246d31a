"""Workers that start at the same moment: whoever took the leading shard last owns the flow, however they interleave."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest

from failover.kafka.wire.cluster import Leader
from failover.kafka.wire.producer_ids import Fence, ProducerFenced
from failover.model.names import Fault, TopicPartition
from failover.replication import shard as module
from failover.replication.lane import Lane, State
from failover.replication.route import Room, Route
from failover.replication.shard import Shard
from failover.replication.shards import LEAD

UNUSED = TopicPartition("positions", 0)
NUMBERS = (LEAD, 7, 11, 12, 30)
TOPIC_ID = b"t" * 16
OVERTAKEN = ProducerFenced("a newer owner", number=90, name="PRODUCER_FENCED")


class Coordinator:
    """Hands out epochs, each answer after a random while."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.epochs: Counter[str] = Counter()
        self.left_out: dict[TopicPartition, Fault] = {}

    async def _while(self) -> None:
        for _ in range(self._random.randrange(6)):
            await asyncio.sleep(0)

    async def leaders(self, partitions: Iterable[TopicPartition], *, refresh: bool) -> dict[TopicPartition, Leader]:
        await self._while()
        return {tp: Leader(1, 0, TOPIC_ID) for tp in partitions}

    async def fence(self, _, identity, __, *, owned=None, begun):
        await self._while()
        if owned is not None and owned[1] != self.epochs[identity]:
            raise OVERTAKEN
        self.epochs[identity] += 1
        epoch = self.epochs[identity]
        begun((1, epoch))
        await self._while()
        if self.epochs[identity] != epoch:
            raise OVERTAKEN
        return Fence(1, epoch, {}, {})

    async def fence_again(self, _, identity, __, epoch, partitions):
        await self._while()
        if self.epochs[identity] != epoch:
            raise OVERTAKEN
        return Fence(1, epoch, {tp: self.left_out[tp] for tp in partitions if tp in self.left_out}, {})


class Worker:
    def __init__(self, coordinator: Coordinator, numbers: Sequence[int] = NUMBERS) -> None:
        self._coordinator = coordinator
        lead = numbers[0]
        self.ended = False
        turns = asyncio.Semaphore(3)
        self.shards: dict[int, Shard] = {}
        for number in numbers:
            self.shards[number] = Shard(
                number,
                f"failover|a->b|{number}",
                coordinator,  # type: ignore[arg-type]
                start=self._start,
                events=self,  # type: ignore[arg-type]
                turns=turns,
                required=False,
                lead=self.shards.get(lead),
                unused=UNUSED,
            )
        self.tasks = [asyncio.create_task(shard.run()) for shard in self.shards.values()]
        self.shards[lead].begin()
        for number, shard in self.shards.items():
            if number != lead:
                route = Route(Lane(TopicPartition("t", number), TopicPartition("a.t", number)), shard, Room(1))
                route.target_id = TOPIC_ID
                shard.add([route])

    async def _start(self, routes):
        for route in routes:
            route.lane.start(0, 1)

    def started(self, routes):
        pass

    def fenced(self, shard, error):
        self.ended = True
        for task in self.tasks:
            task.cancel()

    def write(self) -> None:
        """Has each broker refuse what an old owner writes."""
        for shard in self.shards.values():
            if shard.sending and shard.epoch != self._coordinator.epochs[shard.transactional_id]:
                shard.doubt("INVALID_PRODUCER_EPOCH")

    def owns_all(self) -> bool:
        held = {number: shard.epoch for number, shard in self.shards.items()}
        newest = {number: self._coordinator.epochs[shard.transactional_id] for number, shard in self.shards.items()}
        opened = all(
            route.lane.state is State.OPEN for shard in self.shards.values() for route in shard.routes.values()
        )
        return held == newest and opened and all(shard.sending for shard in self.shards.values())


@pytest.fixture
def meet(monkeypatch):
    """Runs workers against one coordinator until ``done``; gives them."""
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.0005)
    monkeypatch.setattr(module, "_LONGEST_PAUSE", 0.0005)

    def run(seed, count, done, *, left_out=(), shares=None):
        coordinator = Coordinator(seed)
        coordinator.left_out = {tp: Fault(29, "TOPIC_AUTHORIZATION_FAILED") for tp in left_out}
        monkeypatch.setattr(module, "fence", coordinator.fence)
        monkeypatch.setattr(module, "fence_again", coordinator.fence_again)

        async def main():
            workers = []
            async with asyncio.timeout(10):
                for at in range(count):
                    workers.append(Worker(coordinator, shares[at] if shares else NUMBERS))
                    for _ in range(random.Random(seed).randrange(40)):
                        await asyncio.sleep(0)
                while not done(workers):
                    await asyncio.sleep(0)
                    for worker in workers:
                        if not worker.ended:
                            worker.write()
            for task in (task for worker in workers for task in worker.tasks):
                task.cancel()
            await asyncio.gather(*(task for worker in workers for task in worker.tasks), return_exceptions=True)
            return workers

        return asyncio.run(main())

    return run


@pytest.mark.parametrize("count", [1, 2, 3])
def test_exactly_one_remains_and_owns_every_shard(meet, count):
    for seed in range(25):

        def settled(workers):
            left = [worker for worker in workers if not worker.ended]
            assert left, "all have ended"
            return len(left) == 1 and left[0].owns_all()

        meet(seed, count, settled)


def test_workers_that_cut_a_flow_otherwise_do_not_take_a_shard_from_each_other_for_ever(meet):
    """One of them ends; neither has lost the shard by which it knows that it is the owner of its own."""

    def settled(workers):
        left = [worker for worker in workers if not worker.ended]
        assert left, "all have ended"
        return len(left) == 1 and left[0].owns_all()

    for seed in range(5):
        meet(seed, 2, settled, shares=[(1, 7, 30), (2, 7, 11)])


def test_without_a_place_to_prove_it_nobody_takes_a_shard_back(meet):
    """As before there was a leading shard: safe, though two that start together may both end."""

    def over(workers):
        return workers[0].ended or workers[1].ended

    for seed in range(5):
        meet(seed, 2, over, left_out=[UNUSED])


def test_others_wait_for_the_leading_shard_for_a_while_only(meet, monkeypatch):
    monkeypatch.setattr(module, "_LEAD_SECONDS", 0.001)
    taken = Shard.begin
    monkeypatch.setattr(Shard, "begin", lambda shard: None)

    def without_lead(workers):
        [worker] = workers
        return all(shard.sending for number, shard in worker.shards.items() if number != LEAD)

    [worker] = meet(1, 1, without_lead)
    assert not worker.shards[LEAD].owned
    monkeypatch.setattr(Shard, "begin", taken)
