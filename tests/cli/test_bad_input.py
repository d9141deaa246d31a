"""What is typed or configured wrongly: one error, one hint, exit code 2, no cluster contacted, nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from failover.cli.entry import main
from failover.model.names import TopicPartition
from failover.model.snapshot import FlowInfo
from failover.planning.fingerprint import fingerprint
from failover.planning.plan_file import encode_plan
from tests.unit.execution import plans

CONFIG = """\
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:1
a->b.enabled = true
"""
THREE = CONFIG.replace("a, b", "a, b, c") + "c.bootstrap.servers = 127.0.0.1:1\nc->b.enabled = true\n"
Typed = Callable[..., tuple[int, str, str]]


class Contacted(AssertionError):
    """Says that a command went on to a cluster."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Is where the command runs: with a good mm2.properties, and no cluster may be opened."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILOVER_CONFIG", raising=False)
    (tmp_path / "mm2.properties").write_text(CONFIG)

    def refuse(alias: str, *_: object, **__: object) -> None:
        raise Contacted(alias)

    monkeypatch.setattr("failover.kafka.admin.KafkaCluster", refuse)
    return tmp_path


@pytest.fixture
def typed(folder: Path, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Runs a command line; gives its exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["--state-dir", str(folder / "state"), *arguments])
        captured = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return code, captured.out, captured.err

    return run


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def refused(typed: Typed, folder: Path, *arguments: str) -> str:
    """Runs it twice, as text and as JSON, and checks the whole behaviour; gives the error and the hint."""
    before = everything(folder)
    code, out, err = typed(*arguments)
    lines = err.splitlines()
    assert ([line.partition(":")[0] for line in lines], code, out) == (["error", "hint"], 2, ""), err
    code, out, err = typed(*arguments, "--format", "json")
    error = json.loads(out)["error"]
    assert (code, err.splitlines()) == (2, lines)
    assert [f"error: {error['message']}", f"hint: {error['hint']}"] == lines
    assert set(error) == {"code", "message", "hint"}
    assert everything(folder) == before
    return f"{error['code']}: {' | '.join(lines)}"


def write_plan(path: Path, **changes: object) -> Path:
    now = datetime.now(UTC)
    made = plans.plan(plans.group("pay", {TopicPartition("a.orders", 0): 7}))
    made = msgspec.structs.replace(made, created=now, expires=now + timedelta(hours=1), **changes)
    path.write_bytes(encode_plan(msgspec.structs.replace(made, fingerprint=fingerprint(made))))
    return path


# -- the configuration -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "config-invalid: error: mm2.properties: the key 'clusters' is missing"),
        ("clusters = a, b\n", "mm2.properties: no flow is enabled"),
        (CONFIG + "x = \\u12\n", "config-invalid: error: mm2.properties:5: a \\u escape"),
        ("\x00\xff" * 40, "config-invalid"),
        (CONFIG.replace("a.bootstrap.servers = 127.0.0.1:1\n", ""), "a.bootstrap.servers"),
        (CONFIG.replace("b.bootstrap.servers = 127.0.0.1:1", "b.bootstrap.servers = here:there"), "here:there"),
        (CONFIG.replace("a.bootstrap.servers = 127.0.0.1:1", "a.bootstrap.servers = :::"), "a.bootstrap.servers"),
        (CONFIG + "a.security.protocol = SSSL\n", "a.security.protocol"),
        (CONFIG + "b.security.protocol = SASL_SSL\nb.sasl.mechanism = GSSAPI\n", "b.sasl.mechanism"),
        (CONFIG + "a->b.replication.policy.class = com.acme.Policy\n", "com.acme.Policy"),
        (CONFIG + "a->b.groups = pay(\n", "pay("),
        (THREE, "flow-ambiguous: error: several flows fit: a->b, c->b"),
    ],
)
def test_a_configuration_that_cannot_be_used(typed: Typed, folder: Path, text: str, error: str) -> None:
    (folder / "mm2.properties").write_text(text, encoding="latin-1")
    assert error in refused(typed, folder, "plan")


@pytest.mark.parametrize("command", [("plan",), ("execute", "--yes"), ("config", "show")])
def test_no_configuration(typed: Typed, folder: Path, command: tuple[str, ...]) -> None:
    (folder / "mm2.properties").unlink()
    assert "config-not-found: error: no configuration" in refused(typed, folder, *command)
    said = refused(typed, folder, *command, "--config", "elsewhere.properties")
    assert "config-not-found: error: elsewhere.properties: no such file" in said
    assert "Is a directory" in refused(typed, folder, *command, "--config", ".")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["plan", "--source", "primry"], "unknown-alias: error: mm2.properties has no cluster 'primry'"),
        (["plan", "--source", "a", "--target", "a"], "two different clusters"),
        (["plan", "--set", "nonsense"], "--set wants KEY=VALUE"),
        (["plan", "--timeout", "soon"], "'soon' is no duration"),
        (["plan", "--timeout", "0"], "--timeout"),
        (["plan", "--timeout", "nan"], "'nan' is no duration"),
        (["plan", "--all", "--group", "pay"], "--all does not go with"),
        (["plan", "--group-pattern", "("], "--group-pattern ( is no regular expression"),
        (["plan", "--group", ""], "--group"),
        (["plan", "--precision", "good"], "'good' is not one of"),
        (["plan", "pay"], "unexpected extra argument"),
        (["execute"], "no-terminal: error: a confirmation is needed"),
        (["execute", "--group", "pay"], "no-terminal: error: a confirmation is needed"),
        (["execute", "--yes"], "plan-not-found: error: there is no usable plan for a->b"),
        (["execute", "--yes", "7f3a1c"], "plan-not-found: error: there is no plan 7f3a1c"),
        (["execute", "--yes", "../7f3a1c"], "plan-not-found: error: there is no plan file ../7f3a1c"),
        (["execute", "--yes", "--allow-rewind"], "--allow-rewind decides what a plan contains"),
        (["execute", "--yes", "--all", "--settle", "soon"], "'soon' is no duration"),
        (["execute", "--yes", "--resume", "e-123456"], "e-123456"),
        (["execute", "--yes", "--resume", "e-123456", "--allow-rewind"], "no plan option goes with it"),
    ],
)
def test_a_command_that_cannot_be_carried_out_as_typed(
    typed: Typed, folder: Path, arguments: list[str], error: str
) -> None:
    assert error in refused(typed, folder, *arguments)


@pytest.mark.parametrize("below", ["", "/below"])
def test_a_state_folder_that_cannot_be_one(typed: Typed, folder: Path, below: str) -> None:
    (folder / "file").touch()
    place = f"{folder / 'file'}{below}"
    write_plan(folder / "plan.json")
    for command in (["plan"], ["execute", "plan.json", "--yes"], ["execute", "--all", "--yes"]):
        said = refused(typed, folder, *command, "--state-dir", place)
        assert f"state-folder: error: nothing can be kept in the state folder {place}" in said
        assert "--state-dir" in said


def test_a_place_for_the_copy_that_does_not_exist(typed: Typed, folder: Path) -> None:
    assert "nowhere" in refused(typed, folder, "plan", "-o", str(folder / "nowhere" / "plan.json"))


# -- plan files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "this is no plan file"),
        (b"{", "this is no plan file"),
        (b"\xff\xfe", "this is no plan file"),
        (b"[1]", "this is no plan file"),
        (b'{"groups": []}', "it has no kind"),
        (b'{"kind": "failover.execution"}', "its kind is 'failover.execution'"),
        (b'{"kind": "failover.plan", "version": 99}', "the plan has version 99; this program reads version 1"),
        (b'{"kind": "failover.plan", "version": 1}', "the plan file is damaged"),
    ],
)
def test_a_file_that_is_no_plan(typed: Typed, folder: Path, content: bytes, error: str) -> None:
    (folder / "plan.json").write_bytes(content)
    for arguments in (["--yes"], ["--dry-run"]):
        said = refused(typed, folder, "execute", "plan.json", *arguments)
        assert "plan-invalid: error: " in said
        assert error in said


@pytest.mark.parametrize(
    ("old", "new"),
    [('"offset": 7', '"offset": 8'), ('"group": "pay"', '"group": "pey"'), ('"alias": "b"', '"alias": "c"')],
)
def test_an_edited_plan(typed: Typed, folder: Path, old: str, new: str) -> None:
    path = write_plan(folder / "plan.json")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert "plan-invalid: error: plan 7f3a1c was edited" in refused(typed, folder, "execute", "plan.json", "--yes")


def test_a_plan_of_another_flow(typed: Typed, folder: Path) -> None:
    write_plan(folder / "plan.json")
    (folder / "mm2.properties").write_text(THREE)
    said = refused(typed, folder, "execute", "plan.json", "--yes", "--source", "c", "--target", "b")
    assert "plan 7f3a1c is for a->b, not c->b" in said
    assert "hint: add --source a --target b" in said


def test_a_plan_names_its_flow(typed: Typed, folder: Path) -> None:
    (folder / "mm2.properties").write_text(THREE)
    code, _, err = typed("execute", str(write_plan(folder / "plan.json")), "--yes")
    assert (code, "Contacted: b" in err) == (1, True)
    back = write_plan(folder / "back.json", flow=FlowInfo("b", "a", "DefaultReplicationPolicy", ".", reversed=True))
    code, _, err = typed("execute", str(back), "--yes")
    assert "b->a is not enabled: the settings of a->b apply, read backwards" in err
    assert (code, "Contacted: a" in err) == (1, True)


def test_a_group_that_is_not_in_the_plan(typed: Typed, folder: Path) -> None:
    write_plan(folder / "plan.json")
    said = refused(typed, folder, "execute", "plan.json", "--yes", "--group", "pey")
    assert "group-unknown: error: group pey is not in plan 7f3a1c" in said


def test_unknown_fields_of_a_newer_program_are_ignored(typed: Typed, folder: Path) -> None:
    path = write_plan(folder / "plan.json")
    path.write_text(path.read_text().replace('"kind"', '"colour": "red", "kind"', 1))
    code, _, err = typed("execute", "plan.json", "--yes")
    # the plan is good, so the target is what comes next
    assert code == 1
    assert "Contacted: b" in err


# -- global options that say nothing, or the opposite -----------------------------------------------------


@pytest.mark.parametrize("option", ["--config", "--set", "--state-dir", "--source", "--target", "--secrets-dir"])
@pytest.mark.parametrize("command", [("plan",), ("history",)])
def test_an_empty_value_is_no_value(typed: Typed, folder: Path, option: str, command: tuple[str, ...]) -> None:
    assert f"Invalid value for '{option}': it is empty" in refused(typed, folder, *command, option, "")


@pytest.mark.parametrize("command", [("replicate",), ("checkpoint",), ("seed", "--from-inverse", "--yes")])
def test_what_needs_the_source_does_not_go_with_source_down(
    typed: Typed, folder: Path, command: tuple[str, ...]
) -> None:
    assert f"{command[0]} works with the source, which --source-down leaves alone" in _said(
        typed, "--source-down", *command
    )


@pytest.mark.parametrize("command", [("history",), ("show", "e-123456"), ("verify", "e-123456")])
def test_a_named_configuration_that_is_not_there_is_not_passed_over(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    for named in (["--config", "elsewhere.properties"], []):
        if not named:
            monkeypatch.setenv("FAILOVER_CONFIG", "elsewhere.properties")
        with pytest.raises(SystemExit) as ended:
            main([*named, *command])
        assert ended.value.code == 2
        assert "error: elsewhere.properties: no such file" in capsys.readouterr().err


def test_what_click_says_over_several_lines_is_one(typed: Typed, folder: Path) -> None:
    assert "Missing option '--to'. Choose from: properties, connect, strimzi |" in _said(typed, "config", "convert")


def test_an_option_without_its_value_points_at_its_own_command(typed: Typed, folder: Path) -> None:
    assert "hint: failover plan --help lists what it takes" in _said(typed, "plan", "--group")


def _said(typed: Typed, *arguments: str) -> str:
    code, out, err = typed(*arguments)
    assert (code, out) == (2, "")
    return " | ".join(err.splitlines())


def test_of_two_plans_the_one_that_cannot_be_used_is_named(typed: Typed, folder: Path) -> None:
    good = write_plan(folder / "good.json")
    (folder / "bad.json").write_text("{}")
    said = refused(typed, folder, "diff", str(good), "bad.json")
    assert "plan-invalid: error: bad.json: this is no plan file: it has no kind" in said
    assert "error: bad.json: this is no plan file" in refused(typed, folder, "execute", "--yes", "bad.json")
    saved = folder / "state" / "plans" / "abcdef.json"
    saved.parent.mkdir(parents=True)
    saved.write_text("{}")
    assert f"error: {saved}: this is no plan file" in _said(typed, "execute", "--yes")


def test_a_lab_is_not_started_with_a_pattern_that_is_none(typed: Typed, folder: Path) -> None:
    assert "config-invalid: error: topics" in refused(typed, folder, "lab", "up", "--topics", "(")


@pytest.mark.parametrize("command", [("show",), ("execute", "--yes"), ("plan", "-o"), ("playbook", "show")])
def test_a_name_no_file_can_have(typed: Typed, folder: Path, command: tuple[str, ...]) -> None:
    assert "xxx" in refused(typed, folder, *command, "./" + "x" * 5000)
