"""How many examples a property test tries."""

from __future__ import annotations

import os

EXAMPLES = int(os.environ.get("FAILOVER_TEST_EXAMPLES", "60"))
"""Few, so that the quick tier stays quick; ``make chaos`` asks for many more."""
