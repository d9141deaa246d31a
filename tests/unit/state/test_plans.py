"""Saved plans are found by id, by the beginning of an id, or by file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from failover.errors import PlanNotFound, StateError
from failover.state import StateFolder
from failover.state.plans import find_plan, newest_plans, read_plan, save_plan


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return StateFolder(tmp_path / "state")


def test_a_saved_plan_is_found_by_id_prefix_and_path(state: StateFolder) -> None:
    path = save_plan(state, "7f3a1c", b"{}")
    assert find_plan(state, "7f3a1c") == find_plan(state, "7f3") == find_plan(state, str(path)) == path
    assert read_plan(path) == b"{}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_id_that_fits_nothing_or_several_is_refused(state: StateFolder) -> None:
    save_plan(state, "7f3a1c", b"{}")
    save_plan(state, "7f3b00", b"{}")
    with pytest.raises(PlanNotFound, match="several plans begin with 7f3"):
        find_plan(state, "7f3")
    for reference in ("000000", "../plans/7f3a1c", "*", "no.json"):
        with pytest.raises(PlanNotFound):
            find_plan(state, reference)


def test_newest_first(state: StateFolder) -> None:
    for age, name in enumerate(["new", "mid", "old"]):
        path = save_plan(state, name, b"{}")
        os.utime(path, (1000 - age, 1000 - age))
    assert [path.stem for path in newest_plans(state)] == ["new", "mid", "old"]


def test_ids_are_fresh(state: StateFolder) -> None:
    taken = {state.new_id("", state.plans) for _ in range(50)}
    assert len(taken) == 50
    assert all(len(name) == 6 for name in taken)


def test_no_id_reads_as_a_number(state: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["048213", "12e456", "7f3a1c"])
    monkeypatch.setattr(os, "urandom", lambda _: bytes.fromhex(next(drawn)))
    assert state.new_id("", state.plans) == "7f3a1c"


def test_a_full_or_forbidden_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError) as caught:
        save_plan(StateFolder(tmp_path / "file"), "7f3a1c", b"{}")
    assert "--state-dir" in caught.value.hint
