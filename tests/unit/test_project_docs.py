"""What the documentation says about commands, options and pages exists."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from failover.cli import COMMANDS

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
    command: click.Command = click.Group(commands={name: command_named(name) for name in COMMANDS})
    for argument in argv_of(line):
        if argument.startswith("--"):
            known = {name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]}
            assert argument.split("=")[0] in known | {"--help", "--version"}, f"{page}: {line}"
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
