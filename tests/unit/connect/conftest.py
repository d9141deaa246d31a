"""A fake Connect cluster for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.connect.fake_connect import FakeConnect, serving


@pytest.fixture
def fake() -> Iterator[FakeConnect]:
    with serving(FakeConnect()) as started:
        yield started
