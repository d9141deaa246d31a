"""The journal survives a cut at any byte: what was whole is kept, and it goes on cleanly."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from failover.errors import StateError
from failover.model.execution import CommitRecord
from failover.state.journal import Answer, IntendedPartition, Intent, Journal, Warned, read_journal

NOW = datetime(2026, 11, 5, 3, 14, 7, tzinfo=UTC)


def events() -> list[Warned | Intent | Answer]:
    partition = IntendedPartition("a.orders", 3, CommitRecord(5, "m"), CommitRecord(9))
    return [Warned(NOW, "first"), Intent(NOW, "g", True, "Empty", (partition,)), Answer(NOW, "g", lost=True)]


def test_events_come_back_as_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    for event in events():
        journal.append(event)
    journal.close()
    assert read_journal(tmp_path / "j") == events()


def test_nothing_is_on_disk_before_sync(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.append(events()[0])
    assert read_journal(tmp_path / "j") == []
    journal.sync()
    assert read_journal(tmp_path / "j") == events()[:1]
    journal.close()


def test_a_cut_at_any_byte_keeps_the_whole_lines_and_can_be_continued(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = Journal(path)
    for event in events():
        journal.append(event)
    journal.close()
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        whole = data[:length].count(b"\n")
        assert read_journal(path) == events()[:whole]
        journal = Journal(path)
        journal.append(Warned(NOW, "after"))
        journal.close()
        assert read_journal(path) == [*events()[:whole], Warned(NOW, "after")]


def test_damage_inside_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = Journal(path)
    for event in events():
        journal.append(event)
    journal.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{]\n" + lines[2])
    with pytest.raises(StateError, match="line 2 is damaged"):
        read_journal(path)


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        Journal(tmp_path / "run" / "j").close()
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "run" / "j").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_written_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot use the journal") as caught:
        Journal(tmp_path / "file" / "j")
    assert "--state-dir" in caught.value.hint


def test_a_journal_closed_twice_leaves_the_next_file_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.append(events()[0])
    journal.close()
    with (tmp_path / "next").open("w") as following:  # takes the number that has become free
        journal.close()
        following.write("whole")
    assert (tmp_path / "next").read_text() == "whole"
    assert read_journal(tmp_path / "j") == events()[:1]
    journal.append(events()[1])
    with pytest.raises(StateError, match="cannot use the journal"):
        journal.sync()
