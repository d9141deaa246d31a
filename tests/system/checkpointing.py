"""``failover checkpoint`` as processes, what they keep on the target, and traffic whose every step is known."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from failover.lab.process import tail
from failover.lab.side import Side
from failover.mm2.exact_checkpoint import Exact, ExactRecords, Position
from failover.model.names import TopicPartition
from tests.system.pair import Pair

EVERY_SECOND = {
    "failover.checkpoint.interval.seconds": "1",
    "{source}->{target}.emit.checkpoints.interval.seconds": "1",
    "{source}->{target}.sync.group.offsets.enabled": "true",
    "{source}->{target}.sync.group.offsets.interval.seconds": "1",
}


class Checkpointer:
    """Is one ``failover checkpoint``, looking every second."""

    def __init__(self, pair: Pair, name: str, *arguments: str, config: Path | None = None) -> None:
        self.pair = pair
        self.log = pair.folder / f"{name}.log"
        command = [sys.executable, "-X", f"lab={pair.lab.state.marker}", "-m", "failover"]
        command += ["--config", str(config or pair.lab.config), "--set", "failover.checkpoint.interval.seconds=1"]
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [*command, "checkpoint", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def says(self, words: str, *, times: int = 1, seconds: float = 90) -> None:
        """Waits until the log holds these words so often."""

        def said() -> bool:
            assert self.process.poll() is None, tail(self.log, 20)
            return self.log.read_text().count(words) >= times

        self.pair.b.until(said, what=f"{self.log.name} says {words!r}", seconds=seconds, every=0.1)

    def leads(self) -> bool:
        """Tells what it said last about leading."""
        lines = [line for line in self.log.read_text().splitlines() if " leads" in line]
        return bool(lines) and "this one leads" in lines[-1]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def checkpointing(pair: Pair, *arguments: str, config: Path | None = None) -> Iterator[Checkpointer]:
    """Runs one for as long as it is wanted."""
    running = Checkpointer(pair, pair.name("checkpoint"), *arguments, config=config)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.kill()


def kept(pair: Pair, source: str | None = None) -> Exact:
    """Reads what is on record."""
    records = ExactRecords()
    topic = f"mm2-exact-checkpoints.{source or pair.source}.internal"
    if topic in pair.b.topics():
        records.take(pair.b.read(topic)[0])
    return records.decoded()


def wait_kept(
    pair: Pair, group: str, place: tuple[str, int], upstream: int, *, source: str | None = None, seconds: float = 90
) -> Position:
    """Waits until a group's commit is on record, exactly."""

    def there() -> Position | None:
        found = kept(pair, source).positions.get(group, {}).get(TopicPartition(*place))
        right = found is not None and found.upstream == upstream and found.known.precision == "exact"
        return found if right else None

    what = f"{group} is on record at {upstream} of {place}"
    found: Position = pair.b.until(there, what=what, seconds=seconds, every=0.1)
    return found


# A process of its own: librdkafka closes a member only when its cluster answers, or has been dead for minutes.
_READER = """
import json, logging, os, signal, sys
from confluent_kafka import Consumer, TopicPartition
ended, parent = [], os.getppid()
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))

def answered(error, places):
    if error is None:
        print(max(place.offset for place in places), flush=True)

silent = logging.getLogger("silent")
silent.addHandler(logging.NullHandler())
silent.propagate = False
consumer = Consumer({**json.loads(sys.argv[1]), "on_commit": answered}, logger=silent)
consumer.subscribe([sys.argv[2]])
read = asked = 0
while not ended and os.getppid() == parent:
    for message in consumer.consume(50, 0.05):
        if message.error() is None:
            read = message.offset() + 1
    if read > asked:
        consumer.commit(offsets=[TopicPartition(sys.argv[2], 0, read)], asynchronous=True)
        asked = read
consumer.close()
"""


class Traffic:
    """Writes numbered records to partition 0 and reads them as a group, committing as it goes, until it is ended.

    ``written``: values by source offset; ``committed``: the last offset that the broker took.
    """

    def __init__(self, side: Side, topic: str, group: str, *, rate: float = 300) -> None:
        self.written: dict[int, bytes] = {}
        self.committed = 0
        self._side, self._topic, self._group, self._rate = side, topic, group, rate
        self._end = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._write, self._follow)]
        self._reader: subprocess.Popen[str] | None = None

    def __enter__(self) -> Traffic:
        settings = {
            **self._side.settings,
            "group.id": self._group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
        command = [sys.executable, "-c", _READER, json.dumps(settings), self._topic]
        self._reader = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._reader is not None
        self._end.set()
        self._reader.terminate()
        try:
            self._reader.wait(10)
        except subprocess.TimeoutExpired:
            self._reader.kill()
            self._reader.wait(10)
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "it does not end"

    def _follow(self) -> None:
        assert self._reader is not None
        assert self._reader.stdout is not None
        with self._reader.stdout as lines:
            for line in lines:
                self.committed = max(self.committed, int(line))

    def _write(self) -> None:
        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self.written[message.offset()] = message.value()

        producer = self._side.producer(message_timeout_ms=2000)
        number = 0
        while not self._end.is_set():
            producer.produce(self._topic, f"value {number}".encode(), partition=0, on_delivery=delivered)
            number += 1
            producer.poll(0)
            time.sleep(1 / self._rate)
        producer.flush(3)
