"""Records of MM2's topics that nobody can decode: left out, counted, told; what is readable still counts."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from failover.mm2.checkpoint import Checkpoint
from failover.mm2.offset_sync import OffsetSync
from tests.system.pair import Pair
from tests.system.typed import by_name, findings, named, offsets, plan

ALIASES = ("u", "v")
Entry = tuple[bytes | None, bytes | None]


def write(pair: Pair, alias: str, topic: str, entries: Sequence[Entry]) -> None:
    producer = pair.sides[alias].producer()
    for key, value in entries:
        producer.produce(topic, value, key, 0)
    assert producer.flush(30) == 0


@pytest.fixture(scope="module")
def config(pair: Pair) -> Path:
    """Is a flow of two aliases of its own, whose internal topics hold good records among bad ones."""
    topic, remote = pair.create_topic("a", "unreadable.orders"), pair.create_topic("b", "u.unreadable.orders")
    for alias, name in (("a", topic), ("b", remote)):
        pair.produce(alias, name, 100)
    pair.b.create_topic("u.checkpoints.internal")
    pair.a.create_topic("mm2-offset-syncs.v.internal")

    def entry(group: str, up: int, down: int, partition: int = 0) -> tuple[bytes, bytes]:
        checkpoint = Checkpoint(group, remote, partition, up, down)
        return checkpoint.encode_key(), checkpoint.encode_value()

    good_key, good = entry("good", 20, 20)
    hurt_key, hurt = entry("hurt", 10, 10)
    gone_key, gone = entry("gone", 30, 30)
    write(
        pair,
        "b",
        "u.checkpoints.internal",
        [
            (good_key, entry("good", 10, 10)[1]),
            (b"garbage", b"\xff" * 40),
            (b"", good),
            (None, good),
            (good_key[:-1], good),  # short by a byte
            (good_key, good),
            (hurt_key, hurt),
            (hurt_key, hurt[:11]),  # cut
            (hurt_key, struct.pack(">h", 7) + hurt[2:]),  # a version nobody knows
            (hurt_key, struct.pack(">hqq", 0, -5, 3) + b"\x00\x00"),
            (hurt_key, b""),
            (gone_key, gone),
            (gone_key, None),  # a tombstone is readable: the checkpoint is gone
        ],
    )
    sync = OffsetSync(topic, 0, 0, 0)
    write(
        pair,
        "a",
        "mm2-offset-syncs.v.internal",
        [
            (sync.encode_key(), sync.encode_value()),
            (sync.encode_key(), b"short"),
            (b"\x00", sync.encode_value()),
            (sync.encode_key(), None),
        ],
    )
    return pair.config_path(aliases=ALIASES)


def test_they_are_left_out_and_counted(pair: Pair, config: Path, tmp_path: Path) -> None:
    made = plan(pair, "good", "hurt", state=tmp_path, config=config, more=["--source-down"])
    assert offsets(by_name(made)["good"]) == {("u.unreadable.orders", 0): 20}
    # the newest one that can be read; the four after it cannot
    assert offsets(by_name(made)["hurt"]) == {("u.unreadable.orders", 0): 10}
    told = findings(made)["unreadable-records"]
    assert told["subject"] == "u.checkpoints.internal"
    assert told["message"].startswith("8 records of u.checkpoints.internal on v could not be decoded and were left out")
    assert "offset 1" in told["message"]
    assert told["severity"] == "warning"


def test_the_screen_tells_it_and_all_groups_are_planned(pair: Pair, config: Path, tmp_path: Path) -> None:
    ran = pair.run_cli("plan", "--source-down", state=tmp_path, config=config)
    assert ran.code == 0, ran.err
    assert "8 records of u.checkpoints.internal on v could not be decoded" in " ".join(ran.out.split())
    assert "gone" not in ran.out


def test_offset_syncs_too(pair: Pair, config: Path, tmp_path: Path) -> None:
    pair.commit("a", "good", {("unreadable.orders", 0): 25})
    made = plan(pair, "good", state=tmp_path, config=config)
    told = [finding for finding in made["findings"] if finding["code"] == "unreadable-records"]
    assert {finding["subject"]: finding["message"].split()[0] for finding in told} == {
        "u.checkpoints.internal": "8",
        "mm2-offset-syncs.v.internal": "2",
    }
    assert made["source"]["state"] == "up"


def test_a_group_whose_every_checkpoint_is_unreadable_is_found_nowhere(
    pair: Pair, config: Path, tmp_path: Path
) -> None:
    ran = pair.run_cli("plan", *named(["gone"]), "--source-down", state=tmp_path, config=config)
    assert ran.code == 2
    assert "group gone is not on the target and in no checkpoint" in ran.err
