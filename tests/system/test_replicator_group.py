"""Workers that share a flow: killed, frozen, woken and joined under traffic; what they cannot agree on is said."""

from __future__ import annotations

import contextlib
import socket

from failover.model import TopicPartition
from failover.replication.shards import SHARDS, shard_of
from tests.system.pair import Pair
from tests.system.replicating import STOPPED, Flow, Worker
from tests.system.rest_side import Rest
from tests.system.sharing_side import Shared, freeze, part, settled, wake


def test_kills_freezes_and_joins_under_traffic(pair: Pair) -> None:
    shared = Shared(pair, "group")
    flow = shared.flow
    group = ("--group-id", shared.stem, "--rest", "127.0.0.1:0")
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
        pair.b.until(lambda: flow.remote(late) in pair.b.topics(), what=f"{late} is mirrored", seconds=90)
        shared.grows()
        made = [worker for worker in (frozen, other, joined) if worker.lines("Created topic", flow.remote(late))]
        assert len(made) == 1
        tell_their_parts(flow, frozen, other, joined)

        shared.end()
        shared.same()
        for worker in (joined, frozen, other):
            worker.stop()
        shared.same()  # nothing came behind
        assert shared.positions() == shared.source_ends()
        assert not [line for worker in workers for line in worker.lines("Traceback")]


def tell_their_parts(flow: Flow, *workers: Worker) -> None:
    """Has each worker tell of its own part by metrics and REST."""
    asked = {worker: Rest(worker.says("REST on http://")[0].rpartition(" ")[2]) for worker in workers}
    shards: list[str] = []
    beat = "kafka_heartbeat_timestamp_seconds"
    for worker, rest in asked.items():
        number, leads = part(worker)
        seen = rest.metrics()
        assert seen.one("failover_worker_shards") == number
        assert seen.one("failover_worker_leader") == leads
        assert seen.one("failover_worker_info", worker=f"{socket.gethostname()} (process {worker.pid})") == 1
        (task,) = rest.get(f"/connectors/{flow.name}.MirrorSourceConnector/tasks")
        shards += task["config"]["task.assigned.shards"].split(",")
        for kind in ("MirrorCheckpointConnector", "MirrorHeartbeatConnector"):
            assert rest.state(f"{flow.name}.{kind}") == ("RUNNING", int(leads))
        if leads:
            worker.until(lambda: rest.metrics().all(beat, source=flow.source), what="it writes heartbeats")  # noqa: B023
        else:
            assert not seen.all(beat, source=flow.source)
    assert sorted(map(int, shards)) == list(range(1, SHARDS + 1))


def test_fixed_parts_and_who_contradicts_them(pair: Pair) -> None:
    """Two halves copy a flow; a worker with the same part, or with another number of parts, is told from them."""
    shared = Shared(pair, "halves")
    flow = shared.flow
    copied = {shard_of(TopicPartition(topic, number)) for topic in shared.topics for number in range(shared.partitions)}
    assert {number % 2 for number in copied} == {0, 1}, "each half copies something"
    with flow.worker("--shard", "1/2") as first, flow.worker("--shard", "2/2") as second, shared.under_traffic():
        shared.grows()
        assert [bool(each.lines("Created topic")) for each in (first, second)] == [True, False]
        # the same part again: it takes over, and the one before says who it was
        with flow.worker("--shard", "2/2") as same:
            assert second.ended(seconds=90) == 3, second.log
            [said] = second.lines("error:")
            assert f"flow {flow.name}, --shard 2/2: another worker has taken part of it" in said
            assert second.lines("hint:", "--shard I/2", "an I of its own")
            shared.grows()
            # thirds beside halves: they contend for the shards that copy something, and one of the workers ends
            number = next(number for number in (3, 2, 1) if any(shard % 3 == number % 3 for shard in copied))
            with flow.worker("--shard", f"{number}/3") as third:
                workers = {"1/2": first, "2/2": same, f"{number}/3": third}
                pair.b.until(
                    lambda: any(each.code() is not None for each in workers.values()), what="one gives way", seconds=90
                )
                for part_of, each in workers.items():
                    each.terminate()
                    if each.ended(seconds=90) != STOPPED:
                        assert each.code() == 3
                        assert f"--shard {part_of}: another worker has taken part of it" in each.lines("error:")[0]
        shared.end()
    # whatever they disagreed about, each record is there once
    with flow.worker() as alone:
        shared.same()
        alone.stop()


def test_a_group_that_others_use_is_refused(pair: Pair) -> None:
    stem = pair.name("taken")
    topic = pair.create_topic("a", f"{stem}.x")
    pair.create_topic("b", stem)
    flow = Flow(pair, rf"{stem}\..*")
    with pair.b.member(stem, [stem]):
        ran = pair.run_cli("replicate", "--group-id", stem, config=flow.config)
    assert (ran.code, ran.out) == (3, "")
    assert f"error: group {stem} of {flow.target} is used by " in ran.err
    assert "hint: give --group-id a name of its own" in ran.err
    pair.commit("b", f"{stem}.offline", {TopicPartition(stem, 0): 0})
    ran = pair.run_cli("replicate", "--group-id", f"{stem}.offline", config=flow.config)
    assert ran.code == 3
    assert f"group {stem}.offline of {flow.target} has committed offsets" in ran.err
    assert flow.remote(topic) not in pair.b.topics()
