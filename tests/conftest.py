"""Gives every test its tier and Hypothesis one set of rules."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.examples import EXAMPLES

# A property is judged by its answer; how long one example takes says more about the machine.
hypothesis.settings.register_profile(
    "failover", max_examples=EXAMPLES, deadline=None, derandomize=True, print_blob=True
)
hypothesis.settings.register_profile("random", deadline=None, print_blob=True)  # --hypothesis-profile=random
hypothesis.settings.load_profile("failover")

TIERS = ("quick", "system", "bench", "chaos")
TIER_OF_FOLDER = {"unit": "quick", "formats": "quick", "cli": "quick"}


@pytest.fixture(autouse=True)
def log_as_it_was() -> Iterator[None]:
    """Puts back what a command has set up for its log: that would go to a stream which ends with its test."""
    logger, library = logging.getLogger("failover"), logging.getLogger("failover.librdkafka")
    kept = logger.handlers[:], logger.propagate, logger.level, library.level
    yield
    logger.handlers[:], logger.propagate = kept[0], kept[1]
    logger.setLevel(kept[2])
    library.setLevel(kept[3])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test with its folder's tier unless it names one itself."""
    root = Path(__file__).parent
    for item in items:
        if not any(item.get_closest_marker(tier) for tier in TIERS):
            folder = item.path.relative_to(root).parts[0]
            item.add_marker(TIER_OF_FOLDER.get(folder, folder))
