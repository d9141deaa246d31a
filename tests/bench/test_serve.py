"""A replicator of 1,000 partitions with nothing to copy, its metrics scraped every 5 seconds."""

from __future__ import annotations

import re
import time

import pytest

from failover.lab import MirrorOptions
from tests.bench.copying import cpu_seconds, peak_bytes
from tests.bench.figures import Figures
from tests.system.pair import Pair
from tests.system.rest_side import Rest

pytestmark = pytest.mark.timeout(600)

TOPICS, PARTITIONS, GROUPS = 20, 50, 100
SECONDS, EVERY = 60.0, 5.0


def test_an_idle_replicator_that_is_scraped(pair: Pair) -> None:
    for number in range(TOPICS):
        topic = pair.create_topic(pair.source, f"idle-{number}", PARTITIONS)
    for number in range(GROUPS):
        pair.commit(pair.source, f"app-{number}", {(topic, 0): 0})
    config = pair.config_path(options=MirrorOptions(topics="idle-.*", refresh_seconds=600))
    pair.lab.start_replicator(config, "--rest", "127.0.0.1:0")
    process = pair.lab.running("replicator")
    assert process is not None
    log = pair.lab.folder / "replicator.log"
    rest = Rest(pair.b.until(lambda: re.findall(r"REST on (\S+)", log.read_text()), what="it listens")[0])

    def settled() -> bool:
        status, text = rest.ask("GET", "/metrics")
        return status == 200 and text.count("\nfailover_lag_records{") >= TOPICS * PARTITIONS

    pair.b.until(settled, what="all partitions are there", seconds=120)
    pair.b.until(
        lambda: rest.metrics().one("failover_partitions", state="copying") >= TOPICS * PARTITIONS,
        what="all partitions are copied",
        seconds=120,
    )
    time.sleep(10)
    began, cpu = time.monotonic(), cpu_seconds(process.pid)
    while time.monotonic() - began < SECONDS:
        time.sleep(EVERY)
    alone = (cpu_seconds(process.pid) - cpu) / (time.monotonic() - began)
    took: list[float] = []
    began, cpu = time.monotonic(), cpu_seconds(process.pid)
    while time.monotonic() - began < SECONDS:
        at = time.perf_counter()
        _, text = rest.ask("GET", "/metrics")
        took.append(time.perf_counter() - at)
        time.sleep(EVERY)
    scraped = (cpu_seconds(process.pid) - cpu) / (time.monotonic() - began)
    figures = Figures("rest", "An idle replicator of 1,000 partitions, its metrics scraped every 5 s")
    figures.add("CPU, % of a core, nobody asks", [alone * 100])
    figures.add("CPU, % of a core, scraped", [scraped * 100], goal="< 3")
    figures.add("one scrape, ms", [each * 1000 for each in took])
    figures.add("its page, MB", [len(text) / 1e6])
    figures.add("its page, samples", [sum(1 for line in text.splitlines() if not line.startswith("#"))])
    figures.add("peak MB", [peak_bytes(process.pid) / 1e6])
    figures.note(f"{TOPICS} topics with {PARTITIONS} partitions each, {GROUPS} groups, heartbeats every second.")
    figures.publish()
    pair.lab.stop("replicator")
    assert scraped < 0.03
