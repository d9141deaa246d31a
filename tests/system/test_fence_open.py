"""A fence where brokers let everybody in who no ACL names: the first ACL must not shut out who only reads."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from failover.lab import APP, LabOptions, MirrorOptions
from failover.lab.clients import SILENT
from tests.system.inventory_side import cluster
from tests.system.pair import Pair
from tests.system.running import running

MIRROR = MirrorOptions(topics=r"t\..*", checkpoint_seconds=1, refresh_seconds=1, flush_seconds=1)
OPTIONS = LabOptions(
    aliases=("a", "b"),
    sasl=True,
    authorizer=True,
    quick=True,
    mirror=MIRROR,
    settings={"allow.everyone.if.no.acl.found": "true"},
)
BOOK = """
name: shut
description: Keeps producers out and waits until the source is quiet.
steps:
  - {{id: fence, title: Fence, uses: fence, with: {{topics: [{topic}]}}}}
  - {{id: quiet, title: Quiet, uses: verify-fence, timeout: 60s, with: {{topics: [{topic}], watch: 1s}}}}
  - {{id: look, title: Look, uses: approve, with: {{question: "Does everybody read who has to?"}}}}
"""


def test_whoever_reads_reads_on_and_open_transactions_end(tmp_path: Path) -> None:
    with running(tmp_path, OPTIONS) as pair:
        topic = pair.create_topic("a", "t.open")
        config = pair.config_path(user=APP)  # an ordinary user mirrors, and fences
        pair.lab.start_mirror(config)
        ends, dies = (_transactional(pair, number) for number in range(2))
        _write(ends, topic, 0, 5)
        ends.commit_transaction(30)
        remote = f"a.{topic}"
        pair.b.until(lambda: remote in pair.b.topics(), what="MirrorMaker 2 made the topic", seconds=90)
        pair.wait_mirrored(topic)
        # both are open when the fence comes up: one of their producers goes on, the other is never heard of again
        _write(ends, topic, 5, 10)
        _write(dies, topic, 100, 105)
        book = tmp_path / "shut.yaml"
        book.write_text(BOOK.format(topic=topic))
        state = tmp_path / "state"
        ran = pair.run_cli("run", str(book), "--yes", "--format", "json", state=state, config=config)
        assert ran.code == 3, ran.err  # it waits for somebody, the fence being up
        result = json.loads(ran.out)["steps"][0]["result"]
        assert (result["proved"], result["acls"]) == (True, 4)
        ends.commit_transaction(30)
        assert _written(pair, topic) == "TOPIC_AUTHORIZATION_FAILED"
        pair.a.until(
            lambda: pair.a.ends(topic, isolation="read_committed") == pair.a.ends(topic),
            what="the last stable offset is the log's end",
        )
        settings = pair.lab.client_settings("a", user=APP)
        values = _read(pair, settings, topic, 10)
        assert values == [b"%d" % number for number in range(10)]
        pair.wait_mirrored(topic)
        undone = pair.run_cli(
            *("run", "--resume", json.loads(ran.out)["id"], "--undo", "--yes"), state=state, config=config
        )
        assert undone.code == 4, undone.err  # all is put back
        with cluster(pair, "a") as source:
            assert source.acls() == ()
        pair.a.until(lambda: _written(pair, topic) == "written", what="producers are let in again")


def _transactional(pair: Pair, number: int) -> Producer:
    settings = pair.lab.client_settings("a", user=APP)
    producer = Producer(
        {**settings, "transactional.id": f"open-{number}", "transaction.timeout.ms": 15_000}, logger=SILENT
    )
    producer.init_transactions(30)
    return producer


def _write(producer: Producer, topic: str, first: int, end: int) -> None:
    producer.begin_transaction()
    for number in range(first, end):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(30) == 0


def _written(pair: Pair, topic: str) -> str:
    """Tries to write one record as an ordinary user; says what became of it."""
    said: list[str] = []
    producer = Producer({**pair.lab.client_settings("a", user=APP), "message.timeout.ms": 8000}, logger=SILENT)
    producer.produce(
        topic, b"late", partition=0, on_delivery=lambda error, _: said.append(error.name() if error else "written")
    )
    producer.flush(30)
    return said[0]


def _read(pair: Pair, settings: dict[str, Any], topic: str, wanted: int) -> list[bytes]:
    """Reads as an ordinary user whose group commits nothing."""
    consumer = pair.a.consumer(
        "reads-on", **settings, **{"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    )
    values: list[bytes] = []
    end = time.monotonic() + 60
    try:
        consumer.subscribe([topic])
        while len(values) < wanted and time.monotonic() < end:
            found = consumer.poll(0.2)
            if found is not None and found.error() is None:
                values.append(bytes(found.value() or b""))
    finally:
        consumer.close()
    return values
