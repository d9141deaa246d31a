"""Programs that copy a topic, measured while they do: how fast, on how much CPU, in how much memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from failover.lab import MirrorOptions
from failover.lab.lab import Listener
from failover.lab.side import Side
from tests.system.pair import Pair

LOOP = Path(__file__).with_name("loop.py")
_TICKS = os.sysconf("SC_CLK_TCK")
_WARM = 0.03
"""The share of the records after which a copy is measured, so that starting is not part of it."""


class Copy(NamedTuple):
    """Is one measured copy: records in ``seconds`` on ``cpu`` seconds; ``peak``: the largest resident set, bytes."""

    records: int
    seconds: float
    cpu: float
    peak: int

    @property
    def rate(self) -> float:
        return self.records / self.seconds


class Running(NamedTuple):
    """Is a program that copies: its process id and the topic it writes."""

    pid: int
    remote: str


Starter = Callable[[], contextlib.AbstractContextManager[Running]]


def mirror_maker(pair: Pair, topic: str) -> contextlib.AbstractContextManager[Running]:
    """Runs the real MirrorMaker 2 as it comes: one task (``tasks.max``), and the heap that its own script gives it."""

    @contextlib.contextmanager
    def start() -> Iterator[Running]:
        aliases = ("mm", "two")
        config = pair.config_path(aliases=aliases, options=MirrorOptions(topics=topic, tasks=1))
        name = "mm2-mm-two"
        pair.lab.start_mirror(config, name=name, heap="2g")
        try:
            process = pair.lab.running(name)
            assert process is not None
            yield Running(process.pid, f"mm.{topic}")
        finally:
            pair.lab.kill(name)

    return start()


def replicator(
    pair: Pair, topic: str, *, alias: str = "ours", listener: Listener = "plaintext", user: str | None = None
) -> contextlib.AbstractContextManager[Running]:
    """Runs ``failover replicate`` with its default settings."""

    @contextlib.contextmanager
    def start() -> Iterator[Running]:
        options = MirrorOptions(topics=topic)
        config = pair.config_path(aliases=(alias, "here"), options=options, listener=listener, user=user)
        name = f"replicator-{alias}"
        pair.lab.start_replicator(config, name=name)
        process = pair.lab.running(name)
        assert process is not None
        try:
            yield Running(process.pid, f"{alias}.{topic}")
        finally:
            pair.lab.stop(name)

    return start()


def loop(pair: Pair, topic: str) -> contextlib.AbstractContextManager[Running]:
    """Runs the loop of confluent-kafka's consumer and producer."""

    @contextlib.contextmanager
    def start() -> Iterator[Running]:
        remote = f"loop.{topic}"
        pair.create_topic(pair.target, remote, len(pair.a.partitions(topic)))
        command = [sys.executable, str(LOOP), pair.a.bootstrap, pair.b.bootstrap, topic, remote]
        process = subprocess.Popen(command)
        try:
            yield Running(process.pid, remote)
        finally:
            process.kill()
            process.wait()

    return start()


def measure(
    pair: Pair, topic: str, running: contextlib.AbstractContextManager[Running], *, seconds: float = 300
) -> Copy:
    """Lets a program copy the whole topic; what it copied first is not measured. The copy is deleted afterwards."""
    total = _count(pair.a, topic)
    with running as program:
        began = cpu = 0.0
        before, end = 0, time.monotonic() + seconds
        while True:
            copied, now = _count(pair.b, program.remote), time.monotonic()
            if not began and copied >= total * _WARM:
                began, cpu, before = now, cpu_seconds(program.pid), copied
            if copied >= total:
                break
            assert now < end, f"{program.remote} holds {copied} of {total} records after {seconds} s"
            time.sleep(0.02)
        found = Copy(total - before, now - began, cpu_seconds(program.pid) - cpu, peak_bytes(program.pid))
    pair.b.delete_topic(program.remote)
    return found


def cpu_seconds(pid: int) -> float:
    """Gives the CPU time a process used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_bytes(pid: int) -> int:
    """Gives the largest resident set a process had so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def _count(side: Side, topic: str) -> int:
    """Counts the offsets of a topic, 0 while there is none."""
    return sum(end - start for start, end in side.ends(topic).values()) if side.partitions(topic) else 0
