"""`failover run` and `failover playbook`, typed as a user types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from failover.cli import main

BOOK = """\
name: try-out
description: Tries things.
vars:
  folder: {type: text, required: true}
  fails: false
steps:
  - id: make
    title: Make a file
    uses: command
    with: {run: [sh, -c, "echo one >> made && echo $FAILOVER_STEP of $FAILOVER_RUN"], folder: "{{ folder }}"}
    undo: {uses: command, with: {run: [sh, -c, "echo undone >> made"], folder: "{{ folder }}"}}
  - id: slow
    title: Take long
    uses: command
    with: {run: [sh, -c, "echo begun >> made; test ! -e wait || sleep 60; echo two >> made"], folder: "{{ folder }}"}
    undo: {uses: command, with: {run: [sh, -c, "echo put back >> made"], folder: "{{ folder }}"}}
  - id: fail
    title: Fail
    when: "{{ fails }}"
    uses: command
    with: {run: [sh, -c, "echo cannot >&2; exit 9"]}
  - id: agree
    title: Somebody agrees
    uses: approve
    with: {question: "Go on?"}
  - id: end
    title: The end
    final: true
    uses: manual
    with: {instructions: "Look at {{ steps.make.output }}"}
"""


class Place:
    """Is a folder with the playbook, a state folder, and what was made so far."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path, self.capsys = path, capsys
        (path / "book.yaml").write_text(BOOK)

    def options(self, *more: str) -> list[str]:
        return [
            "--state-dir", str(self.path / "state"), "run", str(self.path / "book.yaml"),
            "--var", f"folder={self.path}", *more,
        ]  # fmt: skip

    def run(self, *arguments: str) -> tuple[int, dict[str, Any], str]:
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--format", "json"])
        out, err = self.capsys.readouterr()
        return int(ended.value.code or 0), json.loads(out), err

    def start(self, *more: str) -> tuple[int, dict[str, Any], str]:
        return self.run(*self.options("--yes", *more))

    def resume(self, run_id: str, *more: str) -> tuple[int, dict[str, Any], str]:
        return self.run("--state-dir", str(self.path / "state"), "run", "--resume", run_id, "--yes", *more)

    @property
    def made(self) -> list[str]:
        made = self.path / "made"
        return made.read_text().splitlines() if made.exists() else []


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILOVER_CONFIG", raising=False)
    return Place(tmp_path, capsys)


def statuses(record: dict[str, Any]) -> list[str]:
    return [step["status"] for step in record["steps"]]


def test_a_run_to_the_end(place):
    code, record, err = place.start("--self-approve")
    assert (code, record["outcome"], record["kind"]) == (0, "done", "failover.playbook-run")
    assert statuses(record) == ["done", "done", "skipped", "done", "done"]
    assert record["steps"][0]["result"] == {"exit_code": 0, "output": f"make of {record['id']}"}
    assert place.made == ["one", "begun", "two"]
    assert f"Look at make of {record['id']}" in err
    state = ("--state-dir", str(place.path / "state"))
    assert place.run(*state, "show", record["id"])[1] == record
    assert place.run(*state, "history", "--local")[1]["playbook_runs"] == [record]
    code, said, _ = place.resume(record["id"])
    assert (code, said["error"]["message"]) == (3, f"run {record['id']} is over: done")


def test_the_next_run_is_told_how_long_earlier_ones_took(place):
    assert "Takes about" not in place.start("--self-approve")[2]
    assert "by 1 earlier run" in place.start("--self-approve")[2]
    state = ("--state-dir", str(place.path / "state"))
    _, shown, _ = place.run(*state, "playbook", "show", str(place.path / "book.yaml"))
    assert (shown["name"], shown["history"]["forecast"]["runs"]) == ("try-out", 2)
    assert set(shown["history"]["forecast"]["steps"]) == {"make", "slow", "agree", "end"}
    assert shown["history"]["drills"] == place.run(*state, "history", "--local")[1]["drills"] == []


def test_a_failure_puts_everything_back_and_is_4(place):
    code, record, err = place.start("--var", "fails=true")
    assert (code, record["outcome"]) == (4, "undone")
    assert statuses(record) == ["undone", "undone", "failed", "waiting", "waiting"]
    assert place.made == ["one", "begun", "two", "put back", "undone"]
    assert "sh ended with 9: cannot" in err


def test_another_person_has_to_agree(place, monkeypatch):
    code, record, _ = place.start()
    assert (code, record["outcome"], statuses(record)[3]) == (3, "declined", "waiting")
    assert "somebody else than" in record["steps"][3]["why"]
    assert place.made == ["one", "begun", "two"]
    monkeypatch.setattr("failover.cli.run.operator", lambda: "somebody")
    code, record, _ = place.resume(record["id"])
    assert (code, record["outcome"], record["steps"][3]["result"]) == (0, "done", {"by": "somebody"})


def reported(place: Place, reference: str, form: str) -> str:
    state = ("--state-dir", str(place.path / "state"))
    place.capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([*state, "report", reference, "--format", form])
    out, err = place.capsys.readouterr()
    assert ended.value.code in (0, None), err
    return str(out)


def test_a_run_is_reported_to_people_who_were_not_there(place):
    code, record, _ = place.start("--var", "fails=true")
    assert code == 4
    html = reported(place, record["id"], "html")
    assert "A step failed, or somebody turned back; what had been done is put back." in html
    assert "sh ended with 9: cannot" in html
    told = reported(place, record["id"], "markdown")
    assert f"## Run `{record['id']}` of `try-out`: UNDONE" in told
    assert "| **What was put back?** | make, slow |" in told
    assert "What is left to do?** | nothing" in told
    assert json.loads(reported(place, record["id"], "json")) == record
    # its file is enough, on another machine too
    file = place.path / "state" / "playbook-runs" / record["id"] / "run.json"
    copy = place.path / "run-elsewhere.json"
    copy.write_bytes(file.read_bytes())
    assert reported(place, str(copy), "html") == html
    assert place.run("show", str(copy))[1] == record


def test_a_report_says_what_is_left_to_do(place):
    _, record, _ = place.start()
    told = reported(place, record["id"], "markdown")
    assert "WAITING for somebody's yes" in told
    assert "1. Step agree waits: somebody else than" in told
    page = reported(place, record["id"], "html")
    assert "has to agree: Go on?</li>" in page
    assert f"2. Go on with it: `failover run --resume {record['id']}`" in told
    assert f"3. Or put back what was done: `failover run --resume {record['id']} --undo`" in told
    _, record, _ = place.resume(record["id"], "--self-approve")
    told = reported(place, record["id"], "markdown")
    assert "gone on with 1 time" in told
    assert "not by itself, since step end began at" in told
    assert "1. Make sure of step end: --yes took it for done (The end)" in told


def test_a_dry_run_runs_nothing(place):
    code, previews, _ = place.run(*place.options("--dry-run"))
    assert code == 0
    assert place.made == []
    assert not (place.path / "state" / "playbook-runs").exists()
    assert previews[0]["would"].startswith("would run: sh -c ")
    assert previews[2]["would"] == "would be passed over: its condition does not hold"
    assert "before it ran" in previews[4]["would"]


def test_begin_at_a_later_step(place):
    code, record, _ = place.start("--self-approve", "--from", "agree")
    assert statuses(record)[:4] == ["skipped", "skipped", "skipped", "done"]
    # what the last one refers to was passed over: it says so, after the point of no return nothing is put back
    assert (code, record["outcome"], record["steps"][4]["code"]) == (1, "failed", "step-failed")
    assert "nothing is known of steps.make.output" in record["steps"][4]["error"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "which playbook?"),
        (["run", "no-such"], "no playbook is called 'no-such'"),
        (["run", "./none.yaml"], "cannot read the playbook none.yaml: No such file or directory"),
        (["run", "--undo", "./book.yaml"], "--undo needs --resume RUN"),
        (["run", "--resume", "p-1", "./book.yaml"], "--resume goes on with the run's own playbook and variables"),
        (["run", "./book.yaml"], "variable folder is needed"),
        (["run", "./book.yaml", "--var", "folder"], "--var 'folder' has no value"),
        (["run", "./book.yaml", "--var", "folder=.", "--from", "nowhere"], "try-out has no step 'nowhere'"),
        (
            ["run", "./book.yaml", "--var", "folder=.", "--at", "2020-01-01T00:00:00Z"],
            "2020-01-01 00:00:00 UTC is over",
        ),
        (["run", "./book.yaml", "--var", "folder=.", "--at", "noon"], "'noon' is no time"),
        (["run", "./book.yaml", "--var", "folder=."], "a confirmation is needed and there is no terminal"),
        (["run", "--resume", "p-123456"], "there is no run p-123456"),
    ],
)
def test_what_cannot_be_run_as_typed_is_2(place, arguments, said):
    if "--at" in arguments:
        arguments = [*arguments, "--yes"]
    code, found, _ = place.run("--state-dir", str(place.path / "state"), *arguments)
    assert code == 2
    assert said in found["error"]["message"]
    assert place.made == []


def begun(place: Place) -> tuple[subprocess.Popen[bytes], str]:
    """Starts a run in a process of its own and waits until its slow step acts; gives it and the run's id."""
    (place.path / "wait").touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "failover", *place.options("--yes", "--self-approve")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    end = time.monotonic() + 30
    while place.made != ["one", "begun"]:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)
    [folder] = (place.path / "state" / "playbook-runs").iterdir()
    return process, folder.name


def test_a_run_that_was_killed_is_looked_at_and_goes_on(place, monkeypatch):
    process, run_id = begun(place)
    try:
        code, said, _ = place.resume(run_id)
        assert (code, said["error"]["code"]) == (1, "state-folder")
        assert "another process" in said["error"]["message"]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    # nobody can tell how far a program of one's own came, and nobody is there to ask
    for _ in range(2):
        code, said, _ = place.resume(run_id)
        assert (code, said["error"]["code"]) == (7, "step-unknown")
        assert "without --yes" in said["error"]["hint"]
    assert place.made == ["one", "begun"]
    monkeypatch.setattr("failover.cli.run._asked", lambda *_: True)  # somebody looked: it was done
    state = ("--state-dir", str(place.path / "state"))
    code, record, _ = place.run(*state, "run", "--resume", run_id, "--self-approve")
    assert (code, record["outcome"], statuses(record)[:2]) == (0, "done", ["done", "done"])
    assert place.made == ["one", "begun"]


@pytest.mark.parametrize("journal", [b"", b'{"event":"star'])
def test_a_run_that_was_killed_before_it_noted_anything_never_began(place, journal):
    folder = place.path / "state" / "playbook-runs" / "p-abc123"
    folder.mkdir(parents=True)
    (folder / "playbook.yaml").write_text(BOOK)
    (folder / "journal.ndjson").write_bytes(journal)
    state = ("--state-dir", str(place.path / "state"))
    for arguments in (("run", "--resume", folder.name, "--yes"), ("show", folder.name), ("report", folder.name)):
        place.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*state, *arguments])
        assert (ended.value.code, "never began" in place.capsys.readouterr().err) == (2, True)
    code, known, _ = place.run(*state, "history", "--local")
    assert (code, known["playbook_runs"]) == (0, [])
    assert place.start("--self-approve")[1]["outcome"] == "done"


def test_what_a_killed_run_did_can_be_put_back(place):
    process, run_id = begun(place)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    code, record, _ = place.resume(run_id, "--undo")
    assert (code, record["outcome"], statuses(record)[:2]) == (4, "undone", ["undone", "undone"])
    assert place.made == ["one", "begun", "put back", "undone"]


def test_a_signal_stops_after_the_step_under_way(place):
    process, run_id = begun(place)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    os.killpg(process.pid, 0)
    (place.path / "wait").unlink()
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        for sleeping in Path(f"/proc/{child}/task/{child}/children").read_text().split():
            os.kill(int(sleeping), signal.SIGTERM)
    assert process.wait(30) == 143
    assert place.made == ["one", "begun", "two"]
    code, record, _ = place.resume(run_id, "--self-approve")
    assert (code, record["outcome"]) == (0, "done")
    assert place.made == ["one", "begun", "two"]


def test_playbooks_are_shown_checked_and_rendered(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["--state-dir", str(place.path / "state"), "playbook", *arguments])
        assert not ended.value.code
        return capsys.readouterr().out

    book = str(place.path / "book.yaml")
    shown = said("show", book)
    assert "No way back once step end has begun" in shown
    assert all(len(line) <= 100 for line in shown.splitlines())
    markdown = said("render", book)
    assert "**Point of no return:** step 5, The end." in markdown
    html = said("render", book, "--format", "html")
    assert html.startswith("<!DOCTYPE html>")
    assert "<script>" in html
    assert json.loads(said("schema"))["title"] == "A failover playbook"
    assert said("validate", book) == f"{book}: try-out, 5 steps, in order\n"
    written = place.path / "book.md"
    assert said("render", book, "-o", str(written)) == ""
    assert written.read_text() == markdown
    for nowhere in (place.path, place.path / "none" / "book.md"):
        with pytest.raises(SystemExit) as ended:
            main(["playbook", "render", book, "-o", str(nowhere)])
        assert ended.value.code == 2
        assert f"error: -o {nowhere}: " in capsys.readouterr().err
    assert json.loads(said("validate", book, "--format", "json")) == [{"path": book, "name": "try-out", "steps": 5}]


def test_a_value_no_step_can_use_is_refused_before_anything_begins(place):
    (place.path / "book.yaml").write_text(
        'name: gate\ndescription: Looks.\nvars:\n  least: error\n  limit: "-1"\n  look: false\nsteps:\n'
        "  - {id: first, title: First, uses: command, with: {run: [touch, began], folder: .}}\n"
        '  - {id: gate, title: Gate, uses: check, with: {checks: [daily], fail_on: "{{ least }}"}}\n'
        '  - {id: bound, title: Bound, when: "{{ look }}", uses: at-most, with: {value: 1, limit: "{{ limit }}"}}\n'
    )
    book = ("--state-dir", str(place.path / "state"), "run", str(place.path / "book.yaml"), "--yes")
    code, found, err = place.run(*book, "--var", "least=warnin", "--var", "limit=much")
    assert code == 2
    assert found["error"]["code"] == "playbook-invalid"
    said = "fail_on is {{ least }}: there is no 'warnin'; did you mean 'warning'? (step gate)"
    assert err.startswith(f"error: {said}\nhint: ")
    assert "limit" not in err  # that step will not come
    assert place.run(*book, "--var", "least=warnin", "--dry-run")[0] == 2
    _, _, err = place.run(*book, "--var", "look=true", "--var", "limit=much")
    assert "limit is {{ limit }}: " in err
    assert not (place.path / "began").exists()
    assert not (place.path / "state" / "playbook-runs").exists()
