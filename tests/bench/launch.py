"""Runs one command as a child of its own and writes down what it used.

A program of its own because of Linux: the peak memory of a process includes that of the one it
was forked from, so a command started by a test that holds a million records would seem to hold
them too. This one holds nothing, and imports nothing but the standard library's small modules.
"""

from __future__ import annotations

import json
import os
import sys
import time


def main() -> int:
    report, *command = sys.argv[1:]
    began = time.monotonic()
    child = os.posix_spawn(command[0], command, dict(os.environ))
    _, status, usage = os.wait4(child, 0)
    seconds = time.monotonic() - began
    code = os.waitstatus_to_exitcode(status)
    # Linux counts ru_maxrss in kilobytes, macOS in bytes
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    found = {
        "code": code,
        "began": began,
        "seconds": seconds,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak": peak,
    }
    with open(report, "w", encoding="ascii") as file:
        json.dump(found, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
