"""Workers of one group killed, frozen, woken, stopped and joined in random order for minutes, under traffic.

``FAILOVER_CHAOS_SEED`` repeats a run's choices, ``FAILOVER_CHAOS_ROUNDS`` says how many rounds.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
from collections.abc import Callable

import pytest

from tests.system.pair import Pair
from tests.system.replicating import Worker
from tests.system.sharing_side import SESSION_SECONDS, Shared, freeze, settled, wake

ROUNDS = int(os.environ.get("FAILOVER_CHAOS_ROUNDS", "12"))
MOST = 4


@pytest.mark.timeout(3600)
def test_rounds_of_moves(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("FAILOVER_CHAOS_SEED", "0")) or random.randrange(1, 1 << 30)
    chance = random.Random(seed)

    def say(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}")

    say(f"FAILOVER_CHAOS_SEED={seed}")
    shared = Shared(pair, "moves", topics=4, partitions=6)
    workers: list[Worker] = []
    frozen: list[Worker] = []
    with contextlib.ExitStack() as stack:

        def join() -> None:
            workers.append(stack.enter_context(shared.flow.worker("--group-id")))

        def kill() -> None:
            workers.pop(chance.randrange(len(workers))).kill()

        def stop() -> None:
            workers.pop(chance.randrange(len(workers))).stop()

        def pause() -> None:
            frozen.append(workers.pop(chance.randrange(len(workers))))
            freeze(frozen[-1])

        def resume() -> None:
            workers.append(frozen.pop(0))
            wake(workers[-1])

        def blink() -> None:
            """Freezes for about as long as a session, so that it is not sure who wins."""
            worker = chance.choice(workers)
            freeze(worker)
            time.sleep(chance.uniform(0.5, 1.3) * SESSION_SECONDS)
            wake(worker)

        for _ in range(2):
            join()
        stack.enter_context(shared.under_traffic())
        settled(pair, *workers)
        for number in range(ROUNDS):
            choices: list[Callable[[], None]] = [blink]
            choices += [join] * (len(workers) + len(frozen) < MOST)
            choices += [resume] * bool(frozen)
            choices += [kill, stop, pause] * (len(workers) > 1)
            choice = chance.choice(choices)
            say(f"{number}: {choice.__name__}, {len(workers)} at work, {len(frozen)} frozen")
            choice()
            if chance.random() < 0.6:  # else the next comes while shards move
                settled(pair, *workers)
                shared.grows()
                shared.so_far()
        while frozen:
            resume()
        settled(pair, *workers)
        shared.end()
        shared.same()
        for worker in workers:
            worker.stop()
        shared.same()
        assert shared.positions() == shared.source_ends()


def test_a_worker_from_outside_ends_and_the_group_goes_on(pair: Pair) -> None:
    """Started alone by mistake, it takes what the group has; the group takes it back, and it says so."""
    shared = Shared(pair, "stray", topics=1)
    flow = shared.flow
    with flow.worker("--group-id") as member, shared.under_traffic():
        settled(pair, member)
        shared.grows()
        with flow.worker() as stray:
            member.says("another worker has it now", seconds=90)
            assert stray.ended(seconds=120) == 3, stray.log
            assert stray.lines("error:", "another worker has taken over")
        shared.grows()
        shared.end()
        shared.same()
        member.stop()
        assert member.lines(f"no member of group failover.replicate.{flow.source}-{flow.target}; it is taken back")
