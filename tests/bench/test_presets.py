"""The presets of the documentation: each one's speed, latency and memory beside the defaults."""

from __future__ import annotations

import contextlib
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from failover.lab import MirrorOptions
from tests.bench.copying import Running, measure
from tests.bench.figures import Figures
from tests.bench.test_replicator import Load, fill, latencies
from tests.system.pair import Pair

pytestmark = pytest.mark.timeout(900)

PAGE = Path(__file__).parents[2] / "docs" / "presets.md"
PRESETS = dict(re.findall(r"^## ([^\n]+)\n.*?```properties\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
LOAD = Load("1 KB records in 16 KB batches", 300_000, 1_000, ("batch.size=16384", "linger.ms=100"), 0, 0)
HEADER = ("preset", "records/s", "CPU s/GB", "peak MB", "50 % within, ms", "99 % within, ms")
ROUNDS = 3


@contextlib.contextmanager
def preset(pair: Pair, topic: str, alias: str, text: str) -> Iterator[Running]:
    """Runs ``failover replicate`` with a preset's settings under other aliases."""
    settings = dict(re.findall(r"^(\S+) = (\S+)$", text, re.MULTILINE))
    named = {
        key.replace("primary.", f"{alias}.").replace("standby.", "here."): value for key, value in settings.items()
    }
    config = pair.config_path(aliases=(alias, "here"), options=MirrorOptions(topics=topic), added=named)
    name = f"preset-{alias}"
    process = pair.lab.start_replicator(config, name=name)
    try:
        yield Running(process.pid, f"{alias}.{topic}")
    finally:
        pair.lab.stop(name)


def test_presets(pair: Pair) -> None:
    """Each in turn, and all of them once more: what else runs on the machine then meets every one."""
    figures = Figures("presets", "Presets")
    topic = pair.name("presets")
    fill(pair, topic, LOAD)
    measured: dict[str, list[tuple[float, ...]]] = {}
    for turn in range(ROUNDS):
        for number, (name, text) in enumerate({"defaults": "", **PRESETS}.items()):
            copy = measure(pair, topic, preset(pair, topic, f"speed{turn}{number}", text))
            trickle = pair.create_topic(pair.source, pair.name("trickle"), 8)
            with preset(pair, trickle, f"slow{turn}{number}", text) as program:
                pair.a.produce(trickle, 8)
                _wait_for(pair, program.remote, 16)
                taken = sorted(latencies(pair, trickle, program.remote, rate=1_000, seconds=5))
            late = (1000 * taken[int(len(taken) * share)] for share in (0.5, 0.99))
            gigabytes = copy.records * LOAD.size / 1e9
            row = (copy.rate, copy.cpu / gigabytes, copy.peak / 1e6, *late)
            measured.setdefault(name, []).append(row)
    rows = []
    for name, found in measured.items():
        rate, cpu, peak, half, most = (statistics.median(column) for column in zip(*found, strict=True))
        rows.append((name, f"{rate:,.0f}", f"{cpu:.2f}", f"{peak:.0f}", f"{half:.0f}", f"{most:.0f}"))
    figures.table(HEADER, rows)
    figures.note(f"{LOAD.name}, 8 partitions, one broker on each side, all on one machine; {ROUNDS} rounds, medians.")
    figures.publish()


def _wait_for(pair: Pair, remote: str, count: int) -> None:
    """Waits until so many offsets are there, the fences' markers among them."""
    pair.b.until(lambda: sum(end for _, end in pair.b.ends(remote).values()) >= count, what="it copies", seconds=60)
