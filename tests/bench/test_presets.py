"""The presets of the documentation: each one's speed, latency and memory beside the defaults."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from failover.lab import MirrorOptions
from tests.bench.copying import Running, measure, peak_bytes
from tests.bench.figures import Figures
from tests.bench.test_replicator import Load, fill, latencies
from tests.system.pair import Pair

pytestmark = pytest.mark.timeout(900)

PAGE = Path(__file__).parents[2] / "docs" / "presets.md"
PRESETS = dict(re.findall(r"^## ([^\n]+)\n.*?```properties\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
LOAD = Load("1 KB records in 16 KB batches", 300_000, 1_000, ("batch.size=16384", "linger.ms=100"), 0, 0)
HEADER = (
    "preset",
    "records/s",
    "CPU s/GB",
    "peak MB",
    "50 % within, ms",
    "99 % within, ms",
    "peak MB at 1,000 records/s",
)


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
    figures = Figures("presets", "Presets")
    topic = pair.name("presets")
    fill(pair, topic, LOAD)
    rows: list[tuple[object, ...]] = []
    for number, (name, text) in enumerate({"defaults": "", **PRESETS}.items()):
        copy = measure(pair, topic, preset(pair, topic, f"speed{number}", text))
        trickle = pair.create_topic(pair.source, pair.name("trickle"), 8)
        with preset(pair, trickle, f"slow{number}", text) as program:
            pair.a.produce(trickle, 8)
            _wait_for(pair, program.remote, 16)
            taken = sorted(latencies(pair, trickle, program.remote, rate=1_000, seconds=10))
            memory = peak_bytes(program.pid) / 1e6
        shares = [f"{1000 * taken[int(len(taken) * share)]:.0f}" for share in (0.5, 0.99)]
        gigabytes = copy.records * LOAD.size / 1e9
        rows.append(
            (
                name,
                f"{copy.rate:,.0f}",
                f"{copy.cpu / gigabytes:.2f}",
                f"{copy.peak / 1e6:.0f}",
                *shares,
                f"{memory:.0f}",
            )
        )
        figures.add(f"{name}: records/s", [copy.rate])
    figures.table(HEADER, rows)
    figures.note(f"{LOAD.name}, 8 partitions, one broker on each side, all on one machine.")
    figures.publish()


def _wait_for(pair: Pair, remote: str, count: int) -> None:
    """Waits until so many offsets are there, the fences' markers among them."""
    pair.b.until(lambda: sum(end for _, end in pair.b.ends(remote).values()) >= count, what="it copies", seconds=60)
