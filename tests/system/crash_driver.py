"""Runs the command line and ends the process at its n-th fsync: ``crash_driver N ARGUMENTS…``.

With ``-N`` it ends right after that fsync instead of right before it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from failover.cli import main

CRASHED = 99


def ending(real: Callable[[Any], None], at: int) -> Callable[[Any], None]:
    """Counts calls; the one at ``at`` is the last thing the process does."""
    left = [abs(at)]

    def fsync(descriptor: Any) -> None:
        left[0] -= 1
        if left[0] == 0 and at > 0:
            os._exit(CRASHED)
        real(descriptor)
        if left[0] == 0:
            os._exit(CRASHED)

    return fsync


if __name__ == "__main__":
    os.fsync = ending(os.fsync, int(sys.argv[1]))  # type: ignore[assignment]
    main(sys.argv[2:])
