"""A flow whose copying changes hands between the real MirrorMaker 2 and this replicator while the source is written."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from failover.config.load import load_config, select_flow
from failover.inventory.flow import flow_of
from failover.lab import MirrorOptions, wait_until
from failover.lab.follower import Isolation
from failover.lab.process import tail
from failover.lab.side import Produced, Side
from failover.model import Record, TopicPartition
from failover.replication.anchor import Anchor
from failover.replication.beside import look_beside
from failover.replication.positions import Positions, positions_topic
from tests.system.pair import Pair
from tests.system.wire_side import plain

COMPACT = {"cleanup.policy": "compact", "segment.ms": "300", "min.cleanable.dirty.ratio": "0.01"}
TRANSACTIONS = ((10, True), (5, False), (3, True))
STOPPED = 143  # 128 + SIGTERM
End = Literal["stop", "kill"]
Marks = dict[TopicPartition, int]
Copy = dict[TopicPartition, list[Record]]


class Flow:
    """Is one flow from ``pair.a`` to ``pair.b`` under aliases nobody else has, copied by either."""

    def __init__(self, pair: Pair, options: MirrorOptions, added: Mapping[str, str] | None = None) -> None:
        self.pair = pair
        self.source, self.target = pair.name("ha"), pair.name("hb")
        settings = {"heartbeats.replication.enabled": "false", f"{self.target}.offset.storage.partitions": "3"}
        settings |= {key.format(source=self.source, target=self.target): text for key, text in (added or {}).items()}
        self.config = pair.config_path(aliases=(self.source, self.target), options=options, added=settings)
        pair.expect_topic(rf"{re.escape(self.source)}\..*")
        config = load_config([str(self.config)])
        selected = select_flow(config, self.source, self.target)
        self.internal = flow_of(config, selected).internal
        self._positions = positions_topic(self.internal, selected.flow.worker)
        self._runs = 0

    @contextlib.contextmanager
    def mirror_maker(self, end: End) -> Iterator[None]:
        """Runs the real MirrorMaker 2 and ends it so; returns when its group has forgotten it."""
        name = f"mm2-{self.source}"
        self.pair.lab.start_mirror(self.config, name=name)
        try:
            yield
            if end == "stop":
                self.pair.lab.stop(name, grace=60)
        finally:
            if self.pair.lab.running(name) is not None:
                self.pair.lab.kill(name)
        with plain(self.pair, "b") as (thread, cluster):
            look = partial(look_beside, cluster, self.internal.connect_group, flow=self.source, alongside=True)
            self.pair.b.until(lambda: not thread.run(look()), what="MirrorMaker 2 left its group", every=0.3)

    @contextlib.contextmanager
    def ours(self, end: End) -> Iterator[Path]:
        """Runs ``failover replicate`` and ends it so; in order, its exit code says so. Gives its log."""
        self._runs += 1
        name = f"replicator-{self.source}-{self._runs}"
        lab = self.pair.lab
        process = lab.start_replicator(self.config, name=name)
        log = lab.folder / f"{name}.log"
        try:
            yield log
            if end == "stop":
                os.kill(process.pid, signal.SIGTERM)
                found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                assert found is not None
                assert found.si_status == STOPPED, log.read_text()
        except BaseException as error:
            error.add_note(tail(log, 20))
            raise
        finally:
            if lab.running(name) is not None:
                lab.kill(name)

    def copy(self, topics: Iterable[str]) -> Copy:
        """Reads the topics' copies to their ends; under the names they have on the source."""
        return {
            TopicPartition(topic, partition): records
            for topic in topics
            for partition, records in self.pair.b.read(f"{self.source}.{topic}").items()
        }

    def positions(self) -> dict[TopicPartition, Anchor]:
        """Reads what is on record."""
        with plain(self.pair, "b") as (thread, cluster):
            positions = Positions(cluster, self._positions, source=self.source)
            thread.run(positions.open())
            found: dict[TopicPartition, Anchor] = thread.run(positions.read())
            return found


class Traffic:
    """Writes to three topics until it ends: plain records, transactions of which some are aborted, and few keys."""

    def __init__(self, pair: Pair, plain: str, transactional: str, compacted: str) -> None:
        self.written: defaultdict[TopicPartition, list[Produced]] = defaultdict(list)
        self._side = Side("a", pair.lab.client_settings("a"))
        self._names = plain, transactional, compacted
        self._end = threading.Event()
        self._rounds = 0
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="traffic")
        self._thread.start()

    def end(self) -> None:
        """Ends it; raises what it ended with before."""
        self._end.set()
        self._thread.join()
        self._side.close()
        if self._failure is not None:
            raise self._failure

    def noted(self) -> None:
        """Waits until what lies on the source by now is in ``written``."""
        begun = self._rounds
        wait_until(
            lambda: self._rounds > begun or not self._thread.is_alive(), seconds=60, what="a round of the traffic"
        )

    def _run(self) -> None:
        plain, transactional, compacted = self._names
        try:
            while not self._end.is_set():
                self._note(self._side.produce(plain, 300, size=100))
                self._note(self._side.produce(transactional, 36, transactions=TRANSACTIONS))
                self._note(self._side.produce(compacted, 100, keys=40))
                self._rounds += 1
                self._end.wait(0.1)
        except Exception as failure:  # noqa: BLE001 (raised by end)
            self._failure = failure

    def _note(self, records: Sequence[Produced]) -> None:
        for record in records:
            self.written[record.tp].append(record)


class Scene:
    """Is the flow, its traffic, and who copies. Every record's value says which source record it is."""

    def __init__(self, pair: Pair, *, isolation: Isolation, flush_seconds: float) -> None:
        self.pair = pair
        self.isolation = isolation
        stem = pair.name("hand")
        self.plain = pair.create_topic("a", f"{stem}.plain", 2)
        self.transactional = pair.create_topic("a", f"{stem}.txn", 2)
        self.compacted = pair.create_topic("a", f"{stem}.compact", 2, config=COMPACT)
        self.topics = self.plain, self.transactional, self.compacted
        options = MirrorOptions(
            topics=rf"{re.escape(stem)}\..*",
            groups=rf"{re.escape(stem)}\..*",
            checkpoint_seconds=1,
            refresh_seconds=1,
            flush_seconds=flush_seconds,
        )
        self.flow = Flow(pair, options, {"{source}.consumer.isolation.level": isolation})
        self.group = f"{stem}.group"
        self.traffic = Traffic(pair, *self.topics)

    # -- what is where -----------------------------------------------------------------------------

    def marks(self) -> Marks:
        """Gives the target's ends."""
        return {
            TopicPartition(topic, partition): end
            for topic in self.topics
            if f"{self.flow.source}.{topic}" in self.pair.b.topics()
            for partition, (_, end) in self.pair.b.ends(f"{self.flow.source}.{topic}").items()
        }

    def grown(self, since: Marks, more: int = 200) -> None:
        """Waits until so many records more lie in each partition of the target."""

        def done() -> bool:
            now = self.marks()
            return len(now) == 6 and all(end >= since.get(tp, 0) + more for tp, end in now.items())

        self.pair.b.until(done, what=f"{more} records more in each partition", seconds=90, every=0.2)

    def copy(self) -> Copy:
        found = self.flow.copy(self.topics)
        self.traffic.noted()
        return found

    def wanted(self, tp: TopicPartition) -> list[Produced]:
        """Gives what is to be copied of what was written so far."""
        found = self.traffic.written[tp][:]
        return [one for one in found if one.committed] if self.isolation == "read_committed" else found

    def ends(self, copy: Copy) -> Marks:
        """Gives for each partition the source offset behind the last record of its copy."""
        found = {}
        for tp, records in copy.items():
            offsets = {one.value: one.offset for one in self.wanted(tp)}
            found[tp] = offsets[records[-1].value or b""] + 1
        return found

    def caught_up(self) -> Copy:
        """Waits until each partition of the target ends as that of the source does; gives the copy."""

        def done() -> Any:
            copy = self.copy()
            return copy if self.ends(copy) == {tp: self.wanted(tp)[-1].offset + 1 for tp in copy} else None

        found: Copy = self.pair.b.until(done, what="everything is copied", seconds=90, every=0.5)
        return found

    # -- the judgment ------------------------------------------------------------------------------

    def goes_on(self, copy: Copy, since: Marks, first: Marks) -> None:
        """Asserts what was copied from ``since`` on: the source from ``first`` on, in order, each record once.

        Nothing is missing up to the copy's end but records that a later one of their key replaces, on topics where
        that is what is wanted.
        """
        for tp, records in copy.items():
            added = [record for record in records if record.offset >= since[tp]]
            judge(tp, added, self.wanted(tp), first=first[tp], compacted=tp.topic == self.compacted)

    def safe(self, copy: Copy, tp: TopicPartition, upstream: int, downstream: int) -> None:
        """Asserts that who goes on at ``downstream`` gets each record from ``upstream`` on that was copied."""
        end = self.ends(copy)[tp]
        ahead = [record for record in copy[tp] if record.offset >= downstream]
        values = {record.value for record in ahead}
        keys = {record.key for record in ahead} if tp.topic == self.compacted else set()
        missing = [
            one
            for one in self.wanted(tp)
            if upstream <= one.offset < end and one.value not in values and (one.key is None or one.key not in keys)
        ]
        assert missing == [], (tp, upstream, downstream, missing[:3])


def judge(
    tp: TopicPartition, added: Sequence[Record], wanted: Sequence[Produced], *, first: int, compacted: bool
) -> None:
    """Asserts that ``added`` are the records of ``wanted`` from source offset ``first`` on; see ``Scene.goes_on``."""
    assert added, tp
    number = {one.value: place for place, one in enumerate(wanted)}
    places = [number[record.value or b""] for record in added]
    assert places == sorted(set(places)), f"{tp}: doubled or out of order"
    assert [record.key for record in added] == [wanted[place].key for place in places]
    begin = bisect_left(wanted, first, key=lambda one: one.offset)
    assert places[0] >= begin, f"{tp}: {begin - places[0]} records copied twice"
    missing = set(range(begin, places[-1] + 1)).difference(places)
    if compacted:
        newest = {wanted[place].key: place for place in places}
        missing = {place for place in missing if newest.get(wanted[place].key, -1) < place}
    assert not missing, f"{tp}: {len(missing)} records missing, such as {wanted[min(missing)]}"
