"""Beside MirrorMaker 2 on plain Connect, which no group on the target tells of and no fence shuts out (H13)."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

from tests.system.pair import Pair
from tests.system.several import traffic
from tests.system.test_connect import OnConnect

STOPPED = 143


class Ours:
    """Is a run of ``failover replicate`` of a flow that is also deployed to Connect."""

    def __init__(self, flow: OnConnect, number: int) -> None:
        self.pair = flow.pair
        self.name = f"replicator-{flow.source}-{number}"
        options = ("--source", flow.source, "--target", flow.target)
        self._process = flow.pair.lab.start_replicator(flow.config, *options, name=self.name)
        self._log: Path = flow.pair.lab.folder / f"{self.name}.log"

    def says(self, *words: str) -> None:
        def said() -> bool:
            return any(all(word in line for word in words) for line in self._log.read_text().splitlines())

        self.pair.b.until(said, what=f"{self.name} says {words}", seconds=90, every=0.2)

    def stop(self) -> None:
        os.kill(self._process.pid, signal.SIGTERM)
        found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        assert found is not None
        assert found.si_status == STOPPED, self._log.read_text()
        if self.pair.lab.running(self.name) is not None:
            self.pair.lab.kill(self.name)


def test_h13_the_connector_is_noticed_by_what_it_writes(connect: Pair) -> None:
    """A batch of ours may slip in between; then the partition stands still, and nothing comes twice any more."""
    pair = connect
    flow = OnConnect(pair, "h13")
    topic = pair.create_topic("a", f"{flow.stem}.t")
    remote = f"{flow.source}.{topic}"
    pair.produce("a", topic, 200)
    assert flow.run("connect", "deploy", "--yes").code == 0
    pair.wait_mirrored(topic, flow=flow.source)

    def copies() -> Counter[bytes | None]:
        return Counter(record.value for record in pair.b.read(remote)[0])

    with traffic((pair.a, topic)):
        ours = Ours(flow, 1)
        ours.says(f"{topic}-0 -> {remote}-0 stands still: two-writers", "Stop it")
    written = {record.value for record in pair.a.read(topic)[0]}
    pair.b.until(lambda: copies().keys() == written, what="the connector goes on", every=0.3)
    doubled = copies().total() - len(written)
    late = {record.value for record in pair.produce("a", topic, 100)}
    pair.b.until(lambda: copies().keys() == written | late, what="the connector goes on", every=0.3)
    assert copies().total() == len(written) + len(late) + doubled, "ours has written no more"
    ours.stop()

    # once the connector is stopped, what it left decides where ours goes on
    assert flow.run("connect", "stop", "--yes").code == 0
    last = {record.value for record in pair.produce("a", topic, 100)}
    ours = Ours(flow, 2)
    pair.b.until(lambda: copies().keys() == written | late | last, what="ours goes on", every=0.3)
    ours.stop()
    assert copies().total() == len(written) + len(late) + len(last) + doubled
    assert [record.value for record in pair.b.read(remote)[0]][-100:] == [
        record.value for record in pair.a.read(topic)[0]
    ][-100:]
