"""`failover report`, `failover diff` and `failover plan --format html` as they are typed; no cluster is contacted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from failover.cli.entry import main
from failover.cli.plan import show
from failover.execution.runs import encode_execution
from failover.model.plan import Plan
from failover.planning.fingerprint import fingerprint
from failover.planning.plan_file import encode_plan
from tests.unit.report import plans
from tests.unit.report.executions import executed

Typed = Callable[..., tuple[int, str, str]]
PAGE = "<!DOCTYPE html>\n"


def signed(plan: Plan, **changes: object) -> Plan:
    changed = msgspec.structs.replace(plan, **changes)
    return msgspec.structs.replace(changed, fingerprint=fingerprint(changed))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Is where the commands run: two plans in the state folder, a third and an execution as files, no configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILOVER_CONFIG", raising=False)
    saved = tmp_path / "state" / "plans"
    saved.mkdir(parents=True, mode=0o700)
    old, new = signed(plans.source_down()), signed(plans.build(plans.big(50)), id="9b0c2d")
    for plan in (old, new):
        (saved / f"{plan.id}.json").write_bytes(encode_plan(plan))
    other = signed(plans.all_ready(), id="cccccc", source=msgspec.structs.replace(old.source, alias="elsewhere"))
    (tmp_path / "other.json").write_bytes(encode_plan(other))
    (tmp_path / "run.json").write_bytes(encode_execution(executed(old)))
    return tmp_path


@pytest.fixture
def typed(folder: Path, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Runs a command line; gives its exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["--state-dir", str(folder / "state"), *arguments])
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err

    return run


def test_an_execution_becomes_a_file(typed, folder):
    code, out, err = typed("report", "run.json", "-o", "report.html")
    assert (code, out) == (0, "")
    assert err == f"report of e-84a7e6: {folder / 'report.html'}\n"
    assert (folder / "report.html").read_text(encoding="utf-8").startswith(PAGE)


def test_without_a_file_it_goes_to_stdout(typed):
    code, out, err = typed("report", "run.json")
    assert (code, err) == (0, "")
    assert out.startswith(PAGE)
    assert out.endswith("</html>\n")


def test_on_a_terminal_it_becomes_a_file_in_the_folder(typed, folder, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    code, out, err = typed("report", "run.json")
    assert (code, out) == (0, "")
    assert "failover-e-84a7e6.html" in err
    assert (folder / "failover-e-84a7e6.html").read_text(encoding="utf-8").startswith(PAGE)


def test_markdown_and_json_of_an_execution(typed, folder):
    assert typed("report", "run.json", "--format", "markdown")[1].startswith("## Execution `e-84a7e6`: `primary` to")
    code, out, _ = typed("report", "run.json", "--format", "json")
    assert code == 0
    assert json.loads(out) == json.loads((folder / "run.json").read_bytes())
    assert typed("report", "run.json", "--format", "markdown", "-o", "ticket.md")[0] == 0
    assert (folder / "ticket.md").read_text(encoding="utf-8").startswith("## Execution")


@pytest.mark.parametrize("reference", ["7f3a", "7f3a1c", "state/plans/7f3a1c.json"])
def test_a_plan_has_a_report_too(typed, reference):
    code, out, _ = typed("report", reference)
    assert code == 0
    assert "<h1>Plan 7f3a1c</h1>" in out


def test_plan_prints_the_same_page(capsys):
    from failover.cli.frame import Settings
    from failover.report.html import plan_html

    settings = Settings()
    settings.format = "html"
    show(settings, plans.source_down(), evidence=False)
    assert capsys.readouterr().out == plan_html(plans.source_down())


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("report", "e-000000"), 2, "there is no execution and no plan e-000000"),
        (("report", "nowhere.json"), 2, "there is no file nowhere.json"),
        (("report", "v-123456"), 2, "v-123456 is an eviction, which has no report"),
        (("report", "run.json", "-o", "nowhere/report.html"), 2, "lies in a folder that does not exist"),
        (("report", "run.json", "-o", "state"), 2, "is a folder"),
        (("report", "broken.json"), 2, "broken.json is no record of an execution"),
        (("report", "edited.json"), 2, "was edited"),
        (("diff", "7f3a1c", "ffffff"), 2, "there is no plan ffffff"),
        (("diff", "7f3a1c", "run.json"), 2, "this is no plan file: its kind is 'failover.execution'"),
        (("diff", "7f3a1c", "other.json"), 2, "they have nothing in common"),
        (("diff", "7f3a1c"), 2, "Missing argument 'NEW'"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(typed, folder, arguments, code, error):
    (folder / "broken.json").write_text("{")
    edited = (folder / "state/plans/7f3a1c.json").read_text().replace('"offset": 1995', '"offset": 1', 1)
    (folder / "edited.json").write_text(edited)
    found, out, err = typed(*arguments)
    assert (found, out) == (code, "")
    assert error in err.splitlines()[0]
    assert err.splitlines()[1].startswith("hint: ")


def test_what_changed_between_two_plans(typed):
    code, out, err = typed("diff", "7f3a1c", "9b0c2d")
    assert (code, err) == (0, "")
    assert "OLD  plan 7f3a1c" in out
    assert "groups ready" in out
    code, out, _ = typed("diff", "9b0c2d", "state/plans/7f3a1c.json", "--format", "json")
    found = json.loads(out)
    assert (code, found["kind"], found["old"]["id"]) == (0, "failover.plan-diff", "9b0c2d")
    assert "kind: failover.plan-diff" in typed("diff", "9b0c2d", "7f3a1c", "--format", "yaml")[1]


def test_the_same_plan_twice(typed):
    assert typed("diff", "7f3a1c", "7f3a1c")[1].endswith("The plans say the same.\n")
