"""Offsets altered over REST: the copying goes on there, once, and exactly once from there on, whatever is killed."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from failover.model import TopicPartition
from tests.system.pair import Pair
from tests.system.replicating import Flow, Worker, send
from tests.system.rest_side import Rest

LISTEN = ("--rest", "127.0.0.1:0")
ALTERED = '{"message": "The offsets for this connector have been altered successfully"}'


class Story:
    """Is a flow whose worker is stopped, altered, killed and begun again. ``copied``: what its target must hold.

    Partition 0 has records that differ, partition 1 records that are all alike.
    """

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.topic = pair.create_topic("a", pair.name("altered"), 2)
        self.flow = Flow(pair, rf"{re.escape(self.topic)}(\.later)?", {"failover.checkpoint.interval.seconds": "1"})
        self.connector = f"/connectors/{self.flow.name}.MirrorSourceConnector"
        self.at = int(time.time() * 1000)
        self.sent: tuple[list[bytes], list[bytes]] = ([], [])
        self.copied: tuple[list[bytes], list[bytes]] = ([], [])
        self.group, self.at_commit = "", 0
        self.rest: Rest
        self.worker: Worker

    def use(self, worker: Worker) -> None:
        self.worker = worker
        (line,) = worker.says("REST on http://", seconds=90)
        self.rest = Rest(line.rpartition(" ")[2])
        worker.until(lambda: self.rest.ask("GET", "/health")[0] == 200, what="healthy", seconds=90)

    def send(self, count: int, *, copied: bool = True) -> None:
        values = [b"%d" % (len(self.sent[0]) + number) for number in range(count)]
        records: list[Any] = [(self.topic, value, None, 0, self.at, []) for value in values]
        records += [(self.topic, b"alike", None, 1, self.at, []) for _ in values]
        send(self.pair, records)
        for number, added in enumerate((values, [b"alike"] * count)):
            self.sent[number].extend(added)
            if copied:
                self.copied[number].extend(added)

    def turn(self, verb: str, state: tuple[str, int]) -> None:
        assert self.rest.ask("PUT", f"{self.connector}/{verb}")[0] in (202, 204)
        name = self.connector.rpartition("/")[2]
        self.worker.until(lambda: self.rest.state(name) == state, what=f"{verb} is done", seconds=90)

    def alter(self, places: Mapping[tuple[str, int], int | None]) -> None:
        body = [
            {
                "partition": {"cluster": self.flow.source, "topic": topic, "partition": number},
                "offset": None if offset is None else {"offset": offset},
            }
            for (topic, number), offset in places.items()
        ]
        assert self.rest.ask("PATCH", f"{self.connector}/offsets", {"offsets": body}) == (200, ALTERED)

    def offsets(self) -> dict[tuple[str, int], int]:
        found: list[Any] = self.rest.get(f"{self.connector}/offsets")["offsets"]
        return {
            (each["partition"]["topic"], each["partition"]["partition"]): each["offset"]["offset"] for each in found
        }

    def held(self) -> tuple[list[bytes], ...]:
        copy = self.flow.copy([self.topic])
        return tuple([record.value or b"" for record in copy.get(TopicPartition(self.topic, n), [])] for n in (0, 1))

    def holds(self) -> None:
        """Waits until the target has as many records as it must; then it has these, in this order."""
        wanted = [len(values) for values in self.copied]
        self.worker.until(
            lambda: all(len(has) >= many for has, many in zip(self.held(), wanted, strict=True)),
            what=f"{wanted} records",
            seconds=90,
        )
        assert self.held() == self.copied

    def commit(self, at: int) -> None:
        self.group = self.pair.name("altered-group")
        self.pair.commit("a", self.group, {(self.topic, number): at for number in (0, 1)})
        self.at_commit = at

    def translated(self) -> None:
        """Looks where the group may start on the target: all that it has not read must lie behind that."""
        copy = self.flow.copy([self.topic])
        ran = self.pair.run_cli("translate", self.group, "--format", "json", config=self.flow.config)
        assert ran.code == 0, ran.err
        rows = {row["partition"]: row for row in ran.json()["partitions"]}
        assert set(rows) == {0, 1}
        for number, row in rows.items():
            unread = Counter(self.sent[number][self.at_commit :])
            for place in {row["placed"], row["offset"]} - {None}:
                records = copy[TopicPartition(self.topic, number)]
                behind = Counter(record.value for record in records if record.offset >= place)
                assert unread <= behind, (row, place)


@pytest.fixture
def story(pair: Pair) -> Story:
    return Story(pair)


def test_what_is_altered_is_copied_from_there_and_once(story: Story) -> None:
    topic, later = story.topic, f"{story.topic}.later"
    with story.flow.worker(*LISTEN) as worker:
        story.use(worker)
        story.send(40)
        story.holds()
        story.commit(20)
        # back: one by its offset, the other as if nothing had been copied
        story.turn("stop", ("STOPPED", 0))
        story.alter({(topic, 0): 9, (topic, 1): None, (later, 0): 4})
        assert story.offsets() == {(topic, 0): 9, (later, 0): 4}
        story.send(1, copied=False)
        story.copied[0].extend(story.sent[0][10:])
        story.copied[1].extend(story.sent[1])
        story.turn("resume", ("RUNNING", 1))
        story.holds()
        story.translated()
        # a topic that comes later begins where it was told to
        story.pair.create_topic("a", later, 1)
        send(story.pair, ((later, b"%d" % number, None, 0, 0, []) for number in range(10)))
        worker.until(lambda: sum(map(len, story.flow.copy([later]).values())) >= 5, what="the later topic", seconds=90)
        story.send(3)
        story.holds()
        worker.kill()
    with story.flow.worker(*LISTEN) as worker:
        story.use(worker)
        story.send(5)
        story.holds()
        # forward: what lies between is left out
        story.turn("stop", ("STOPPED", 0))
        story.send(20, copied=False)
        story.alter({(topic, 0): len(story.sent[0]) - 11, (topic, 1): len(story.sent[1]) - 4})
        story.copied[0].extend(story.sent[0][-10:])
        story.copied[1].extend(story.sent[1][-3:])
        story.turn("resume", ("RUNNING", 1))
        story.holds()
        story.send(2)
        story.holds()
        # chosen, and killed before it went on
        story.turn("stop", ("STOPPED", 0))
        story.alter({(topic, 0): 0})
        worker.kill()
    with story.flow.worker(*LISTEN) as worker:
        story.use(worker)
        story.copied[0].extend(story.sent[0][1:])
        story.holds()
        # all of it anew
        story.turn("stop", ("STOPPED", 0))
        assert story.rest.ask("DELETE", f"{story.connector}/offsets")[0] == 200
        assert story.offsets() == {}
        for copied, sent in zip(story.copied, story.sent, strict=True):
            copied.extend(sent)
        story.turn("resume", ("RUNNING", 1))
        story.holds()
        ends = story.pair.ends("a", topic)
        worker.until(
            lambda: all(story.offsets()[topic, number] == end - 1 for number, (_, end) in ends.items()),
            what="the positions follow",
            seconds=90,
        )
        story.translated()
        worker.stop()
    (found,) = story.flow.copy([later]).values()
    assert [record.value for record in found] == [b"5", b"6", b"7", b"8", b"9", *(b"%d" % n for n in range(10))]
