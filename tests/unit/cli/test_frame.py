"""The command line's frame: options before or after the command, errors, exit codes, questions."""

from __future__ import annotations

import json
import signal

import click
import pytest
from click.testing import CliRunner

from failover.cli.entry import describe, main, report
from failover.cli.frame import Command, Settings, confirm_typed, format_option, pass_settings
from failover.cli.lab import command as lab
from failover.cli.params import DURATION
from failover.errors import ClusterUnreachable, Declined, Interrupted, NoTerminal, UsageError


@click.command(cls=Command)
@format_option("table", "json")
@pass_settings
def probe(settings: Settings, /) -> int:
    """Prints what the global options said."""
    click.echo(json.dumps([settings.config, settings.source, settings.timeout, settings.verbosity, settings.format]))
    return 0


@click.group(cls=click.Group)
def outer() -> None:
    """Holds the probe."""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("5m", 300), ("2h", 7200), ("1h30m", 5400), ("500ms", 0.5), ("1.5h", 5400), ("0", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert DURATION.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5x", "-5", "1h 30", "10 20", "5m30", "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="write 90, 90s, 5m or 2h"):
        DURATION.convert(text, None, None)


def test_global_options_after_the_command() -> None:
    typed = ["--config", "x", "--config", "y", "--source", "a", "--timeout", "5s", "-vv", "--format", "json"]
    result = CliRunner().invoke(probe, typed, standalone_mode=False)
    assert json.loads(result.stdout) == [["x", "y"], "a", 5.0, 2, "json"]


@pytest.mark.parametrize("arguments", [["--source", "x", "explain", "ready"], ["explain", "ready", "--source", "x"]])
def test_global_options_stand_before_or_after(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    assert "ready" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["plam"], "there is no command 'plam'"),
        (["plan", "--no-such-option"], "No such option"),
        (["plan", "--format", "xml"], "'xml' is not one of"),
        (["--config"], "requires an argument"),
    ],
)
def test_usage_errors_are_one_error_and_one_hint_and_exit_2(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    captured = capsys.readouterr()
    assert ended.value.code == 2
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["error", "hint"]
    assert error in lines[0]


@pytest.mark.parametrize("arguments", [[], ["lab"], ["lab", "fault"], ["config"], ["--state-dir", "x", "playbook"]])
def test_without_a_command_the_help_comes_as_it_is_before_the_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    captured = capsys.readouterr()
    assert (ended.value.code, captured.out) == (2, "")
    lines = captured.err.splitlines()
    assert lines[0].startswith("Usage: failover")
    assert "Commands:" in lines
    assert lines[-2:] == [f"error: {lines[0].split(' [')[0].removeprefix('Usage: ')} wants a command", lines[-1]]
    assert lines[-1] == "hint: the list above has them"
    assert max(map(len, lines)) <= 100


def test_with_format_json_the_error_is_also_an_object_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plam", "--format", "json"])
    value = json.loads(capsys.readouterr().out)["error"]
    assert value == {"code": "usage", "message": "there is no command 'plam'", "hint": "did you mean: failover plan"}


def test_what_is_told_keeps_its_lines_and_is_inert(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings()
    settings.say("locked: by \x1b[31mann\r\non host")
    assert capsys.readouterr().err == "locked: by \\x1b[31mann\\r\non host\n"
    settings.quiet = True
    settings.say("more")
    assert capsys.readouterr().err == ""


def test_no_command_is_described_by_half_a_sentence() -> None:
    said = CliRunner().invoke(lab, ["--help"]).output
    assert "writes an\n           mm2.properties every command accepts" in said
    assert not [line for line in said.splitlines()[1:] if line.endswith("...")]


def test_each_kind_of_failure_has_its_exit_code() -> None:
    assert describe(ClusterUnreachable("no answer", alias="b"))[3] == 8
    assert describe(KeyboardInterrupt())[3] == 130
    assert describe(Interrupted("ended", signal_number=signal.SIGTERM))[3] == 143
    assert describe(click.exceptions.Abort())[3] == 130
    assert describe(ValueError("odd\nsecond line")) == (
        "unexpected", "unexpected: ValueError: odd", "run it again with -vv for the traceback, and report it", 1,
    )  # fmt: skip


def test_hostile_text_in_an_error_comes_out_inert(capsys: pytest.CaptureFixture[str]) -> None:
    report(UsageError("group \x1b[31mred\nhint: rm -rf\u202e is odd", hint="a\rb"), Settings(), [])
    err = capsys.readouterr().err
    assert err.count("\n") == 2
    assert not {"\x1b", "\r", "\u202e"} & set(err)


def test_a_traceback_only_at_vv(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings()
    report(ValueError("x"), settings, [])
    assert "Traceback" not in capsys.readouterr().err
    settings.verbosity = 2
    try:
        raise ValueError("x")
    except ValueError as error:
        report(error, settings, [])
    assert "Traceback" in capsys.readouterr().err


def test_a_question_without_a_terminal_is_exit_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(NoTerminal):
        confirm_typed("go?", "standby", assume_yes=False)
    confirm_typed("go?", "standby", assume_yes=True)


@pytest.mark.parametrize("answer", ["y\n", "\n", "", "Standby\n"])
def test_only_the_alias_itself_confirms(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return answer

    monkeypatch.setattr("sys.stdin", Terminal())
    with pytest.raises(Declined) as refused:
        confirm_typed("go?", "standby", assume_yes=False, declined="plan 7f3a1c stays valid until 04:14:07 UTC")
    assert refused.value.hint == "plan 7f3a1c stays valid until 04:14:07 UTC"
    with pytest.raises(Declined) as refused:
        confirm_typed("roll back?", "standby", assume_yes=False)
    assert not refused.value.hint  # what is rolled back or removed has no plan


def test_the_alias_confirms(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return "standby\n"

    monkeypatch.setattr("sys.stdin", Terminal())
    confirm_typed("Commit 3 offsets?", "standby", assume_yes=False)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Commit 3 offsets?" in captured.err
