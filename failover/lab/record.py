"""Records what the real MirrorMaker 2 leaves in hard scenarios: ``python -m failover.lab.record FOLDER [SCENARIO…]``.

Writes one capture a scenario, and the internal records' bytes with what Kafka's own formatters
print for them (``mm2-golden.json``).
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from failover.lab.capture import (
    ID,
    KIND,
    VERSION,
    Capture,
    CapturedCheckpoint,
    CapturedSync,
    Commit,
    log_of,
    save_capture,
)
from failover.lab.down import end_lab
from failover.lab.follower import Isolation
from failover.lab.internal_records import checkpoint_of, heartbeat_of, sync_of
from failover.lab.lab import Lab, wait_until
from failover.lab.mirror import MirrorOptions
from failover.lab.side import Side
from failover.lab.state import LabOptions
from failover.lab.traffic import Load, write
from failover.lab.up import up
from failover.model import Record, TopicPartition

_FORMATTERS = "org.apache.kafka.connect.mirror.formatters"
_CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
Offsets = Mapping[str, Mapping[TopicPartition, int]]


class Recorder:
    """Runs one scenario after the other on a lab, each with a MirrorMaker 2 and aliases of its own."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.source, self.target = (Side(alias, lab.client_settings(alias)) for alias in lab.state.options.aliases)
        self.topic = ""
        self.flow = ("", "")
        self.groups: Offsets = {}
        self.alike = False

    # -- the scenarios -------------------------------------------------------------------------

    def lagging(self) -> str:
        """Mirrors 20,000 records of two partitions; ten groups lag at every tenth, 37 short of it."""
        self.source.create_topic(self.topic, 2)
        self.start_mirror()
        self.source.produce(self.topic, 20_000)
        self.wait_copied()
        self.commit({f"g{tenth}": self.at(tenth / 10, short=37) for tenth in range(1, 11)})
        return "one to one, 10,000 records a partition, groups at each tenth minus 37"

    def transactional(self) -> str:
        """Mirrors transactions of ten records, every third one aborted: markers leave gaps on the source only."""
        self.source.create_topic(self.topic, 2)
        self.start_mirror()
        self.source.produce(self.topic, 6_000, transactions=[(10, True), (10, True), (7, False)])
        self.wait_copied()
        self.commit({f"g{tenth}": self.at(tenth / 10, short=3) for tenth in range(1, 11)})
        return "6,000 records in transactions of 10, 10 and 7 (aborted); MirrorMaker 2 copies aborted records too"

    def restarted(self) -> str:
        """Kills MirrorMaker 2 twice with SIGKILL while it copies: stretches are copied twice."""
        self.source.create_topic(self.topic, 2)
        self.start_mirror()
        for part in range(3):
            self.source.produce(self.topic, 2_500)
            self.wait_copied()
            self.wait_flushed()
            self.source.produce(self.topic, 2_500)
            self.wait_copied(share=(part + 0.8) / (part + 1))
            if part < 2:
                self.lab.kill(self.mirror_name)
                self.lab.start_mirror(self.config, name=self.mirror_name)
        self.wait_copied()
        self.commit({f"g{tenth}": self.at(tenth / 10, short=11) for tenth in range(1, 11)})
        return (
            "15,000 records, MirrorMaker 2 killed with SIGKILL twice; each restart copies again what came after a flush"
        )

    def compacted(self) -> str:
        """Mirrors a topic that compaction has left with holes before the mirror began."""
        config = {"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.01"}
        self.source.create_topic(self.topic, 1, config=config)
        # slow enough for a dozen segments: the one that is written to is never compacted
        write(self.source, Load(topic=self.topic, rate=1_500, count=4_500, keys=1_500, size=0))

        def holes() -> bool:
            return len(self.source.read(self.topic)[0]) < 2_400

        wait_until(holes, seconds=60, what=f"compaction of {self.topic}", every=0.5)
        self.start_mirror()
        self.wait_copied()
        self.commit({f"g{tenth}": self.at(tenth / 10, short=5) for tenth in range(1, 11)})
        return "4,500 records of 1,500 random keys, compacted on the source before the mirror began"

    def committed(self) -> str:
        """Mirrors transactions with read_committed: aborted records and markers leave gaps on the source."""
        self.source.create_topic(self.topic, 2)
        self.start_mirror(isolation="read_committed")
        self.source.produce(self.topic, 3_000, transactions=[(10, True), (10, True), (7, False)])
        self.wait_values(self.values(isolation="read_committed"))
        self.commit({f"g{tenth}": self.at(tenth / 10, short=3) for tenth in range(1, 11)})
        return "3,000 records in transactions of 10, 10 and 7 (aborted); aborted records are not copied"

    def torn(self) -> str:
        """Kills MirrorMaker 2 twice with SIGKILL while it copies transactions: a run's first syncs may be lost."""
        self.source.create_topic(self.topic, 2)
        self.start_mirror()
        for part in range(3):
            self.source.produce(self.topic, 1_500, transactions=[(9, True), (6, False), (12, True)])
            self.wait_copied(share=(part + 0.5) / (part + 1))
            if part < 2:
                self.lab.kill(self.mirror_name)
                self.lab.start_mirror(self.config, name=self.mirror_name)
        self.wait_copied()
        self.commit({f"g{tenth}": self.at(tenth / 10, short=7) for tenth in range(1, 11)})
        return "4,500 records in transactions, MirrorMaker 2 killed with SIGKILL twice while it copied"

    def expired(self) -> str:
        """Mirrors a source that retention has shortened; later the target and the source lose more."""
        self.source.create_topic(self.topic, 2)
        self.source.produce(self.topic, 8_000)
        self.source.delete_records(self.topic, 0, 2_500)
        self.start_mirror()
        self.wait_copied()
        self.source.delete_records(self.topic, 1, 1_200)
        self.target.delete_records(self.remote, 1, 1_700)
        self.commit({f"g{tenth}": self.at(tenth / 10, short=13) for tenth in range(1, 11)})
        return (
            "4,000 records a partition: partition 0 began at 2,500 before the mirror did; partition 1 lost 1,200 "
            "on the source and 1,700 on the target afterwards"
        )

    def recreated(self) -> str:
        """Deletes the target's topic while MirrorMaker 2 is down: older syncs then speak of records that are gone."""
        self.source.create_topic(self.topic)
        self.start_mirror()
        self.source.produce(self.topic, 3_000)
        self.wait_copied()
        self.wait_flushed()
        self.lab.kill(self.mirror_name)
        self.target.recreate_topic(self.remote)
        self.lab.start_mirror(self.config, name=self.mirror_name)
        later = self.source.produce(self.topic, 2_000)
        self.wait_values({record.value for record in later})
        self.commit({f"g{tenth}": self.at(tenth / 10, short=9) for tenth in range(1, 11)})
        return "3,000 records copied, then the target's topic made anew, then 2,000 more"

    def identical(self) -> str:
        """Mirrors records whose keys, values and timestamps are all the same; a header tells them apart."""
        self.alike = True
        self.source.create_topic(self.topic)
        self.start_mirror()
        producer, moment = self.source.producer(), int(time.time() * 1000)
        for number in range(4_000):
            producer.produce(self.topic, b"same", timestamp=moment, partition=0, headers={ID: b"%d" % number})
        producer.flush(30)
        wait_until(lambda: self._held() == 4_000, seconds=120, what=f"{self.topic} on the target", every=0.1)
        self.commit({f"g{tenth}": self.at(tenth / 10, short=17) for tenth in range(1, 11)})
        return "4,000 records that nothing but a header tells apart"

    # -- steps ---------------------------------------------------------------------------------

    @property
    def config(self) -> Path:
        return self.lab.folder / f"{self.mirror_name}.properties"

    @property
    def mirror_name(self) -> str:
        return f"mm2-{self.flow[0]}"

    @property
    def remote(self) -> str:
        return f"{self.flow[0]}.{self.topic}"

    def start_mirror(self, *, isolation: Isolation = "read_uncommitted") -> None:
        """Starts a MirrorMaker 2 for this scenario's topic alone."""
        options = MirrorOptions(
            topics=self.topic.replace(".", r"\."),
            groups=r"g\d+",
            checkpoint_seconds=1,
            refresh_seconds=1,
            flush_seconds=1,
            settings={f"{self.flow[0]}.consumer.isolation.level": isolation},
        )
        self.lab.write_config(self.config, options, aliases=self.flow)
        self.lab.start_mirror(self.config, name=self.mirror_name)

    def wait_copied(self, *, share: float = 1.0) -> None:
        """Waits until the target holds this share of the source's data records at least once."""
        wanted = self.values()

        def copied() -> bool:
            # compaction goes on: what the target lacks may be gone from the source by now
            return len(wanted & self.copies()) >= share * len(wanted) or (
                share == 1.0 and self.values() <= self.copies()
            )

        wait_until(copied, seconds=120, what=f"{share:.0%} of {self.topic} on the target", every=0.1)

    def wait_flushed(self) -> None:
        """Waits until MirrorMaker 2 has stored how far it has read."""
        topic = f"mm2-offsets.{self.flow[0]}.internal"

        def stored() -> int:
            return sum(end for _, end in self.target.ends(topic).values())

        before = stored()
        wait_until(lambda: stored() > before, seconds=60, what=f"a new record in {topic}", every=0.1)

    def wait_values(self, wanted: AbstractSet[bytes | None]) -> None:
        """Waits until the target holds these values."""
        wait_until(lambda: wanted <= self.copies(), seconds=120, what=f"{self.topic} on the target", every=0.1)

    def values(self, *, isolation: Isolation = "read_uncommitted") -> set[bytes | None]:
        """Returns the values the source holds."""
        return {r.value for records in self.source.read(self.topic, isolation=isolation).values() for r in records}

    def copies(self) -> set[bytes | None]:
        """Returns the values the target holds, none before it has the topic."""
        if not self.target.partitions(self.remote):
            return set()
        return {r.value for records in self.target.read(self.remote).values() for r in records}

    def _held(self) -> int:
        return sum(end - start for start, end in self.target.ends(self.remote).values())

    def at(self, share: float, *, short: int) -> dict[TopicPartition, int]:
        """Returns a position in each partition: this share of its offsets, minus some."""
        ends = self.source.ends(self.topic)
        return {
            TopicPartition(self.topic, partition): max(start, start + int((end - start) * share) - short)
            for partition, (start, end) in ends.items()
        }

    def commit(self, groups: Offsets) -> None:
        """Commits on the source and waits for the checkpoints MirrorMaker 2 makes of them."""
        for group, offsets in groups.items():
            self.source.commit(group, offsets)
        settled: list[int] = [-1]

        def quiet() -> bool:
            # not every commit gets a checkpoint: one below the oldest sync has none
            seen = len(self.checkpoints())
            done = seen > 0 and seen == settled[0]
            settled[0] = seen
            return done

        wait_until(quiet, seconds=60, what="checkpoints", every=3)
        self.groups = groups

    def syncs(self) -> list[Record]:
        return self.source.read(f"mm2-offset-syncs.{self.flow[1]}.internal").get(0, [])

    def checkpoints(self) -> list[Record]:
        return self.target.read(f"{self.flow[0]}.checkpoints.internal").get(0, [])

    # -- the outcome ---------------------------------------------------------------------------

    def record(self, name: str, number: int) -> Capture:
        """Runs a scenario and returns what it left."""
        self.topic, self.flow = f"cap.{name}", (f"s{number}", f"t{number}")
        self.alike = False
        scenario: Callable[[], str] = getattr(self, name)
        description = scenario()
        self.lab.kill(self.mirror_name)
        capture = Capture(
            kind=KIND,
            version=VERSION,
            scenario=name,
            description=description,
            kafka_version=self.lab.state.options.kafka_version,
            recorded=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            flow=self.flow,
            alike=self.alike,
            source={self.topic: _logs(self.source, self.topic)},
            target={self.remote: _logs(self.target, self.remote)},
            syncs=[CapturedSync(record.offset, record.timestamp, *sync_of(record)) for record in self.syncs()],
            checkpoints=[
                CapturedCheckpoint(record.offset, record.timestamp, *checkpoint_of(record))
                for record in self.checkpoints()
                if record.value is not None
            ],
            commits=[
                Commit(group, *tp, offset) for group, places in self.groups.items() for tp, offset in places.items()
            ],
        )
        for group in self.groups:
            self.source.delete_group(group)
        return capture

    def golden(self) -> dict[str, Any]:
        """Returns internal records byte for byte, with the lines Kafka's own formatters print for them."""
        self.topic, self.flow = "cap.golden", ("gs", "gt")
        self.source.create_topic(self.topic, 2)
        self.start_mirror()
        self.source.produce(self.topic, 400)
        self.wait_copied()
        for group, metadata in (("g1", ""), ("g2", "seen by größe-1 \U0001f600"), ("g3", "x" * 300)):
            self.source.commit(group, {(self.topic, 0): 150, (self.topic, 1): 20}, metadata=metadata)
        wait_until(lambda: len(self.checkpoints()) >= 6, seconds=60, what="checkpoints", every=0.5)
        heartbeats = wait_until(lambda: self.target.read("heartbeats").get(0), seconds=60, what="heartbeats")
        self.lab.kill(self.mirror_name)
        source, target = self.source.bootstrap, self.target.bootstrap
        return {
            "kafka_version": self.lab.state.options.kafka_version,
            "offset_syncs": self._printed(
                source, f"mm2-offset-syncs.{self.flow[1]}.internal", "OffsetSyncFormatter", self.syncs(), sync_of
            ),
            "checkpoints": self._printed(
                target, f"{self.flow[0]}.checkpoints.internal", "CheckpointFormatter", self.checkpoints(), checkpoint_of
            ),
            "heartbeats": self._printed(target, "heartbeats", "HeartbeatFormatter", heartbeats, heartbeat_of),
        }

    def _printed(
        self, bootstrap: str, topic: str, formatter: str, records: list[Record], fields: Callable[[Record], Any]
    ) -> list[dict[str, Any]]:
        kept = records[:40]
        printed = self.lab.run_tool(
            *(_CONSOLE, "--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"),
            *("--formatter", f"{_FORMATTERS}.{formatter}", "--max-messages", str(len(kept)), "--timeout-ms", "20000"),
        )
        return [
            {
                "key": (record.key or b"").hex(),
                "value": (record.value or b"").hex(),
                "java": line,
                "fields": fields(record)._asdict(),
            }
            for record, line in zip(kept, printed.splitlines(), strict=True)
        ]


def _logs(side: Side, topic: str) -> dict[int, Any]:
    ends, records = side.ends(topic), side.read(topic)
    return {partition: log_of(start, end, records.get(partition, ())) for partition, (start, end) in ends.items()}


_KNOWN = (
    *("lagging", "transactional", "committed", "compacted", "restarted", "torn"),
    *("expired", "recreated", "identical", "golden"),
)


def main(arguments: list[str]) -> None:
    """Records the named scenarios, all of them by default, into a folder."""
    parser = argparse.ArgumentParser(prog="python -m failover.lab.record", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(_KNOWN))
    parser.add_argument("--kafka-version", default=LabOptions().kafka_version)
    asked = parser.parse_args(arguments)
    names = asked.scenarios or _KNOWN
    if unknown := set(names) - set(_KNOWN):
        parser.error(f"no scenario {', '.join(unknown)}; known: {', '.join(_KNOWN)}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "lab"
        try:
            recorder = Recorder(up(folder, LabOptions(quick=True, kafka_version=asked.kafka_version)))
            for number, name in enumerate(names, 1):
                began = time.monotonic()
                if name == "golden":
                    path = asked.folder / "mm2-golden.json"
                    path.write_text(json.dumps(recorder.golden(), indent=1, ensure_ascii=False) + "\n")
                    size = path.stat().st_size
                else:
                    size = save_capture(asked.folder / f"{name}.capture", recorder.record(name, number))
                sys.stdout.write(f"{name}: {size} bytes, {time.monotonic() - began:.0f} s\n")
        finally:
            end_lab(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
