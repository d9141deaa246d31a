"""Output over descriptors that somebody else made non-blocking: slow readers get all of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

PROGRAM = """
import click
from failover.cli import COMMANDS, entry, frame

COUNT = 40_000

@click.command(cls=frame.Command)
@frame.format_option("table", "json")
@frame.pass_settings
def command(settings):
    for number in range(COUNT):
        settings.say(f"talk {number}")
    settings.emit_value(list(range(COUNT)), {})
    return 4

COMMANDS["many"] = (__name__, "")
entry.main(["many", "--format", "json"])
"""


def test_a_slow_reader_of_a_non_blocking_pipe_gets_everything() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with os.fdopen(reading, "rb") as pipe:
        try:
            child = subprocess.Popen(
                [sys.executable, "-c", PROGRAM], stdin=subprocess.DEVNULL, stdout=writing, stderr=writing
            )
        finally:
            os.close(writing)
        got = b""
        while chunk := pipe.read(16_384):
            got += chunk
            time.sleep(0.001)
    assert child.wait(30) == 4, got[-500:]
    lines = got.decode().splitlines()
    assert [line for line in lines if line.startswith("talk ")] == [f"talk {number}" for number in range(40_000)]
    assert [int(line.strip(" [],")) for line in lines[40_000:] if line.strip(" [],")] == list(range(40_000))
