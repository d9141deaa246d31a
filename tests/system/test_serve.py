"""``replicate --rest`` and ``checkpoint --rest`` on real brokers: what they tell is held against the truth."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.system.checkpointing import checkpointing
from tests.system.pair import Pair
from tests.system.replicating import Flow, Worker, contents, send
from tests.system.rest_side import Rest

TOKEN = "a-token-nobody-prints"
LISTEN = ("--rest", "127.0.0.1:0")
RECORDS = 300


class Serving(NamedTuple):
    """Is a flow of one topic with two partitions at work, and its REST."""

    flow: Flow
    worker: Worker
    rest: Rest
    topic: str

    @property
    def ends(self) -> dict[str, str]:
        return {"source": self.flow.source, "target": self.flow.target}

    def connector(self, kind: str) -> str:
        return f"{self.flow.name}.Mirror{kind}Connector"

    def lag(self) -> float:
        return sum(self.rest.metrics().all("failover_lag_records", topic=self.topic))

    def send(self, count: int) -> None:
        send(self.flow.pair, ((self.topic, b"%d" % n, None, n % 2, 0, []) for n in range(count)))

    def turn(self, verb: str, kind: str, state: tuple[str, int]) -> None:
        """Wants something of a connector and waits until it is so."""
        status, _ = self.rest.ask("PUT", f"/connectors/{self.connector(kind)}/{verb}")
        assert status == (204 if verb == "stop" else 202)
        self.worker.until(lambda: self.rest.state(self.connector(kind)) == state, what=f"{kind} is {state}")


@pytest.fixture(scope="module")
def serving(pair: Pair) -> Iterator[Serving]:
    topic = pair.create_topic("a", pair.name("served"), 2)
    settings = {
        "failover.rest.token": TOKEN,
        "failover.checkpoint.interval.seconds": "1",
        "{source}.sasl.jaas.config": f'x.PlainLoginModule required username="u" password="{TOKEN}";',
    }
    flow = Flow(pair, re.escape(topic), settings)
    with flow.worker(*LISTEN) as worker:
        (line,) = worker.says("REST on http://")
        rest = Rest(line.rpartition(" ")[2], TOKEN)
        worker.until(lambda: rest.ask("GET", "/health", token="")[0] == 200, what="healthy")
        yield Serving(flow, worker, rest, topic)
        worker.stop()
        assert TOKEN not in worker.log


def test_metrics_are_what_was_copied(serving: Serving) -> None:
    pair, worker, rest, topic = serving.flow.pair, serving.worker, serving.rest, serving.topic
    serving.send(RECORDS)
    group = pair.name("served-group")
    pair.commit("a", group, {(topic, 0): 100, (topic, 1): 150})
    worker.copied(topic)
    worker.until(lambda: serving.lag() == 0, what="all is copied")
    found = rest.metrics()
    counts = [
        found.one(
            "kafka_connect_mirror_mirrorsourceconnector_record_count", topic=serving.flow.remote(topic), partition=p
        )
        for p in "01"
    ]
    assert counts == [RECORDS / 2, RECORDS / 2]
    assert found.one("failover_records_total", **serving.ends) == RECORDS
    source = {"connector": serving.connector("Source"), "task": "0"}
    assert found.one("kafka_connect_source_record_write_total", **source) == RECORDS
    assert found.one("kafka_connect_source_record_poll_total", **source) == RECORDS
    assert found.one("failover_rpo_records", **serving.ends) == 0
    assert found.one("failover_rpo_seconds", **serving.ends) == 0
    assert sum(found.all("failover_batches_total")) > 0
    assert sum(found.all("failover_bytes_total")) > RECORDS
    beat = found.one("kafka_heartbeat_timestamp_seconds", **serving.ends) / 1000
    assert abs(time.time() - beat) < 30
    assert found.one("failover_flow_up", **serving.ends) == 1
    assert found.one("process_cpu_seconds_total") > 0
    worker.until(lambda: rest.metrics().all("failover_checkpoint_age_seconds", group=group), what="a checkpoint")
    worker.until(
        lambda: rest.metrics().one("failover_checkpoint_age_seconds", group=group) < 30, what="the group is exact"
    )
    assert rest.metrics().one("failover_groups_ready", **serving.ends) >= 1


def test_offsets_tasks_and_topics_are_true(serving: Serving) -> None:
    rest, name = serving.rest, serving.connector("Source")
    serving.worker.copied(serving.topic)
    serving.worker.until(lambda: serving.lag() == 0, what="all is copied")
    ends = serving.flow.pair.ends("a", serving.topic)
    offsets = {
        each["partition"]["partition"]: each["offset"]["offset"]
        for each in rest.get(f"/connectors/{name}/offsets")["offsets"]
    }
    assert offsets == {number: end - 1 for number, (_, end) in ends.items() if end}
    (task,) = rest.get(f"/connectors/{name}/tasks")
    assert set(task["config"]["task.assigned.partitions"].split(",")) == {f"{serving.topic}-{n}" for n in range(2)}
    assert rest.get(f"/connectors/{name}/topics") == {name: {"topics": [serving.flow.remote(serving.topic)]}}
    assert rest.get("/")["kafka_cluster_id"]
    back = f"{serving.flow.target}->{serving.flow.source}.MirrorHeartbeatConnector"
    assert set(rest.get("/connectors")) == {
        *(serving.connector(k) for k in ("Source", "Checkpoint", "Heartbeat")),
        back,
    }


def test_paused_and_stopped_nothing_is_copied_and_afterwards_everything_once(serving: Serving) -> None:
    worker, rest, topic = serving.worker, serving.rest, serving.topic
    for verb, state in (("pause", ("PAUSED", 1)), ("stop", ("STOPPED", 0))):
        worker.copied(topic)
        serving.turn(verb, "Source", state)
        before = rest.metrics().one("failover_records_total", **serving.ends)
        serving.send(100)
        # nothing is read, so the lag comes from the checkpoints' looks at the source
        worker.until(lambda: serving.lag() == 100, what="the lag shows though nothing is read")
        assert rest.metrics().one("failover_records_total", **serving.ends) == before
        assert rest.metrics().one("failover_rpo_records", **serving.ends) == 100
        serving.turn("resume", "Source", ("RUNNING", 1))
        source, target = worker.copied(topic)
        assert contents(target) == contents(source)
    assert rest.ask("POST", f"/connectors/{serving.connector('Source')}/restart")[0] == 204
    serving.send(50)
    source, target = worker.copied(topic)
    assert contents(target) == contents(source)


def test_heartbeats_and_checkpoints_stop_and_go_on(serving: Serving) -> None:
    worker, rest, pair = serving.worker, serving.rest, serving.flow.pair

    def beat() -> float:
        return rest.metrics().one("failover_heartbeat_timestamp_seconds", **serving.ends)

    def looked() -> float:
        return rest.metrics().one("failover_checkpoint_looked_timestamp_seconds", **serving.ends)

    worker.until(lambda: rest.metrics().all("failover_checkpoint_looked_timestamp_seconds"), what="a look")
    serving.turn("stop", "Heartbeat", ("STOPPED", 0))
    serving.turn("pause", "Checkpoint", ("PAUSED", 1))
    last, seen = beat(), looked()
    worker.until(lambda: time.time() - beat() > 3, what="no heartbeat for 3 s")
    assert (beat(), looked()) == (last, seen)
    serving.turn("resume", "Heartbeat", ("RUNNING", 1))
    serving.turn("resume", "Checkpoint", ("RUNNING", 1))
    worker.until(lambda: beat() > last, what="heartbeats go on")
    group = pair.name("served-later")
    pair.commit("a", group, {(serving.topic, 0): 1})
    worker.until(lambda: rest.metrics().all("failover_checkpoint_age_seconds", group=group), what="a new group")


def test_no_secret_leaves_and_nobody_comes_in_without(serving: Serving) -> None:
    rest = serving.rest
    for path in ("/connectors", "/metrics", f"/connectors/{serving.connector('Source')}/config"):
        assert rest.ask("GET", path, token="")[0] == 401
        assert rest.ask("GET", path, token="wrong")[0] == 401
    status, text = rest.ask("GET", "/connectors?expand=info&expand=status")
    assert (status, TOKEN in text, "********" in text) == (200, False, True)
    assert TOKEN not in rest.metrics().text


def test_a_checkpointer_tells_of_its_groups(pair: Pair, serving: Serving) -> None:
    topic = serving.topic
    group = pair.name("kept-by-one")
    pair.commit("a", group, {(topic, 0): 5})
    with checkpointing(pair, *LISTEN, config=serving.flow.config) as running:
        running.says("REST on http://")
        url = re.findall(r"REST on (\S+)", running.log.read_text())[-1]
        rest = Rest(url, TOKEN)
        assert rest.ask("GET", "/metrics", token="")[0] == 401
        pair.b.until(lambda: rest.ask("GET", "/health", token="")[0] == 200, what="healthy")
        pair.b.until(
            lambda: (ages := rest.metrics().all("failover_checkpoint_age_seconds", group=group)) and ages[0] < 30,
            what="the group is on record",
            seconds=90,
        )
        found = rest.metrics()
        assert found.one("failover_checkpoint_leader") == 1
        assert found.one("failover_checkpoint_positions", precision="exact") >= 1
        assert running.stop() == 143
        assert TOKEN not in running.log.read_text()
