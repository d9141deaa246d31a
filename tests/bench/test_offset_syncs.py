"""A long history of offset syncs, read from a real topic, and many groups translated by it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from failover.mm2.offset_sync import OffsetSync
from tests.bench.figures import Figures
from tests.bench.fill import Message, write
from tests.bench.measure import run
from tests.system.pair import Pair

pytestmark = pytest.mark.timeout(600)

PARTITIONS, SYNCS, GROUPS = 200, 20_000, 500
TIMES = 3
SCRIPT = Path(__file__).with_name("translate_syncs.py")


def syncs() -> Iterator[Message]:
    """Yields a sync for every hundredth record, with the gaps that transaction markers leave on the source."""
    keys = [OffsetSync("wide", number, 0, 0).encode_key() for number in range(PARTITIONS)]
    for index in range(SYNCS):
        value = OffsetSync("", 0, index * 101, index * 100).encode_value()
        for key in keys:
            yield {"key": key, "value": value}


def test_a_long_history_of_offset_syncs(pair: Pair) -> None:
    topic = pair.a.create_topic("mm2-offset-syncs.standby.internal", config={"cleanup.policy": "compact"})
    write(pair.a, topic, syncs())
    runs = [run([sys.executable, str(SCRIPT), str(pair.lab.config), topic, str(GROUPS)]) for _ in range(TIMES)]
    for each in runs:
        assert each.code == 0, each.err
        assert each.json()["records"] == PARTITIONS * SYNCS
        assert each.json()["placed"] == PARTITIONS * GROUPS
    figures = Figures(
        "offset-syncs", f"{PARTITIONS} partitions × {SYNCS:,} offset syncs, {GROUPS} groups on all of them"
    )
    figures.process("read and translated", runs, seconds="< 30", megabytes="< 500")
    figures.add("of these, reading the topic, s", [each.json()["read"] for each in runs])
    figures.add(f"of these, {PARTITIONS * GROUPS:,} translations, s", [each.json()["translate"] for each in runs])
    figures.publish()
