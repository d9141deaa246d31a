"""Workers that share a flow: killed, frozen, woken and joined under traffic; what they cannot agree on is said."""

from __future__ import annotations

import contextlib

from tests.system.pair import Pair
from tests.system.replicating import Flow, contents
from tests.system.sharing_side import Shared, freeze, part, settled, wake


def test_kills_freezes_and_joins_under_traffic(pair: Pair) -> None:
    shared = Shared(pair, "group")
    flow = shared.flow
    group = ("--group-id", shared.stem)
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(flow.worker(*group)) for _ in range(3)]
        stack.enter_context(shared.under_traffic())
        settled(pair, *workers)
        shared.grows()

        # killed: the others have its part within its session
        leader = next(worker for worker in workers if part(worker)[1])
        leader.kill()
        frozen, other = (worker for worker in workers if worker is not leader)
        settled(pair, frozen, other)
        shared.grows()

        # frozen for longer than its session, and woken: it finds itself shut out, and is given a part anew
        freeze(frozen)
        settled(pair, other)
        shared.grows()
        wake(frozen)
        frozen.says("this process stood still")
        settled(pair, frozen, other)

        # joined; a topic that comes meanwhile is made by the leader and copied by whoever has its shards
        joined = stack.enter_context(flow.worker(*group))
        settled(pair, frozen, other, joined)
        late = pair.create_topic("a", f"{shared.stem}.late", shared.partitions)
        shared.topics.append(late)
        shared.begin([late])
        pair.b.until(lambda: flow.remote(late) in pair.b.topics(), what=f"{late} is mirrored", seconds=60)
        shared.grows()
        made = [worker for worker in (frozen, other, joined) if worker.lines("Created topic", flow.remote(late))]
        assert len(made) == 1

        shared.end()
        shared.same()
        for worker in (joined, frozen, other):
            worker.stop()
        shared.same()  # nothing came behind
        assert shared.positions() == shared.source_ends()
        assert not [line for worker in workers for line in worker.lines("Traceback")]
