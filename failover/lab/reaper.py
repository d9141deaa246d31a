"""Ends a lab when its owner does, however the owner ends: ``python -m failover.lab.reaper FOLDER``.

The owner holds the other end of this process's standard input; the system closes it at the
latest when the owner dies.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from failover.lab.down import end_lab


def main(folder: Path) -> None:
    """Waits for the end of standard input, then ends the lab in ``folder``."""
    # Ctrl-C reaches the whole foreground group; the owner decides what it means
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.buffer.read()
    end_lab(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
