"""What the documentation says about commands, options and pages exists."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from failover.cli import COMMANDS
from failover.config.findings import SEVERITIES
from failover.model.plan import Verdict
from failover.planning.decide import COMMIT_CODES, REFUSE_CODES, SKIP_CODES
from failover.planning.group_rules import GROUP_CODES

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("playbooks/*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|next: |if |\|\| |&& )(failover .*?)(?=\|\||&&|;|\||>|   |$)")
INLINE = re.compile(r"`(failover [^`\n]+)`")


def shell_lines(text: str) -> list[str]:
    """The command lines of every fence, prompts and comments removed, continued lines joined."""
    bodies = [body.replace("\\\n", " ") for _, body in FENCE.findall(text)]
    return [line.strip().removeprefix("$ ").strip() for body in bodies for line in body.splitlines()]


def mentioned(text: str) -> list[str]:
    """Each `failover …` command that a page shows, in fences and in running text."""
    found = [*INLINE.findall(FENCE.sub("", text))]
    for line in shell_lines(text):
        # next: failover execute   and   if failover plan; then   are commands too.
        found += COMMAND.findall(line)
    return found


def argv_of(command: str) -> list[str]:
    return shlex.split(re.sub(r"[\[\]…]", " ", command).replace("D ->", ""), comments=True)[1:]


def command_named(name: str) -> click.Command:
    command = importlib.import_module(COMMANDS[name][0]).command
    assert isinstance(command, click.Command)
    return command


CASES = sorted(
    {
        (path.relative_to(ROOT).as_posix(), line)
        for path in PAGES
        for line in mentioned(path.read_text(encoding="utf-8"))
    }
)


def test_the_pages_mention_commands() -> None:
    assert {"README.md", "docs/tutorial.md", "docs/operator.md", "playbooks/failover.md"} <= {page for page, _ in CASES}


@pytest.mark.parametrize(("page", "line"), CASES)
def test_every_command_and_option_shown_exists(page: str, line: str) -> None:
    name, *arguments = argv_of(line)
    assert name in {*COMMANDS, "--help"}, f"{page}: {line}"
    command = command_named(name) if name in COMMANDS else click.Command("failover")
    for argument in arguments:
        if argument.startswith("--"):
            known = {option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts]}
            assert argument.split("=")[0] in known | {"--help"}, f"{page}: {line}"
        elif isinstance(command, click.Group):
            assert argument in command.commands, f"{page}: {line}"
            command = command.commands[argument]


def test_every_command_is_documented() -> None:
    shown = {argv_of(line)[0] for _, line in CASES if argv_of(line)}
    assert set(COMMANDS) <= shown


def test_the_navigation_lists_every_page_once() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    listed = [page for entry in nav for page in entry.values()]
    assert sorted(listed) == sorted(
        path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")
    )


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_to_files_lead_somewhere(path: Path) -> None:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    targets = [t.split("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in t]
    assert [t for t in targets if t and not (path.parent / t).exists()] == []


def test_exit_codes_of_the_errors_are_documented() -> None:
    from failover import errors

    table = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
    codes = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.FailoverError)
    }
    for code in codes:
        assert re.search(rf"^\| [\d, ]*\b{code}\b[\d, ]* \|", table, re.MULTILINE), code


OF_CONFIG = {"config_checks.py", "access_checks.py"}


def finding_codes(*, config: bool = False) -> set[str]:
    """Each code that a check or the planner gives its findings; ``config``: those about a configuration."""
    found = set()
    for path in (*(ROOT / "failover/checks").glob("*.py"), *(ROOT / "failover/planning").glob("*.py")):
        if (path.name in OF_CONFIG) is not config:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                code = node.args[0] if node.args else next(k.value for k in node.keywords if k.arg == "code")
                assert isinstance(code, ast.Constant), f"{path.name}:{node.lineno}"
                found.add(str(code.value))
    return found


def rows_of(page: str, title: str) -> set[str]:
    """The first cells, in backticks, of the table below a title."""
    section = (ROOT / page).read_text(encoding="utf-8").partition(f"{title}\n")[2]
    return set(
        re.findall(r"^\| `([\w-]+)` \|", re.split(r"^#", section, maxsplit=1, flags=re.MULTILINE)[0], re.MULTILINE)
    )


@pytest.mark.parametrize(
    ("title", "codes"),
    [
        ("### A partition is committed", set(COMMIT_CODES)),
        ("### A partition is left as it stands", set(SKIP_CODES)),
        ("### A partition or a group is refused", {*REFUSE_CODES, *GROUP_CODES}),
        ("### Findings", finding_codes()),
        ("## Verdicts", {str(verdict) for verdict in Verdict}),
    ],
)
def test_the_operator_guide_has_a_row_for_each_code_and_no_other(title: str, codes: set[str]) -> None:
    assert rows_of("docs/operator.md", title) == codes


def test_the_page_on_configuration_has_a_row_for_each_code_and_no_other() -> None:
    others = {"invalid-value", "config-invalid", "cluster-unreachable", "credentials-refused"}
    assert (
        rows_of("docs/configuration.md", "### What it finds") == finding_codes(config=True) | set(SEVERITIES) | others
    )
