"""Output over descriptors that somebody else made non-blocking: slow readers get all of it."""

from __future__ import annotations

import html
import json
import os
import signal
import subprocess
import sys
import time

import pytest

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


ENCODED = """
import click
from failover.cli import COMMANDS, entry, frame

@click.command(cls=frame.Command)
@frame.format_option("table", "json", "yaml", "html")
@frame.pass_settings
def command(settings):
    settings.say("told ü ↕")
    settings.emit_value({"name": "ü ↕ 𝄞"}, {"table": lambda: "ü ↕", "html": lambda: "<p>ü ↕</p>"})

COMMANDS["many"] = (__name__, "")
entry.main(["many", "--format", __import__("sys").argv[1]])
"""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_is_not_utf_8_gets_what_still_means_the_same(encoding: str) -> None:
    def said(form: str) -> str:
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        ran = subprocess.run([sys.executable, "-c", ENCODED, form], capture_output=True, env=environment, check=True)
        return ran.stdout.decode(encoding)

    assert json.loads(said("json")) == {"name": "ü ↕ 𝄞"}
    assert html.unescape(said("html")) == "<p>ü ↕</p>\n"
    assert said("table") == "ü ↕\n".encode(encoding, "backslashreplace").decode(encoding)
    assert "name:" in said("yaml")


@pytest.mark.parametrize(("used", "code"), [(True, 0), (False, -signal.SIGABRT)])
def test_what_c_libraries_do_at_the_end_does_not_change_the_exit_code(used: bool, code: int) -> None:
    """OpenSSL takes itself apart then, under the feet of librdkafka's threads; here something worse waits there."""
    program = f"""
import ctypes, sys, types
if {used}:
    sys.modules["confluent_kafka"] = types.ModuleType("confluent_kafka")
libc = ctypes.CDLL(None)
libc.__cxa_atexit(ctypes.cast(libc.abort, ctypes.c_void_p), None, None)
sys.argv = ["failover", "explain", "translated"]
from failover.cli import main
main()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == code
    assert "translated" in ran.stdout
