"""`failover playbook`: what playbooks there are, and one as its author, its validator and its reader see it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Group, Settings, format_option, pass_settings
from failover.cli.wiring import state_folder
from failover.errors import PlaybookInvalid

if TYPE_CHECKING:
    from failover.runbook.record import RunRecord


@click.group(cls=Group)
def command() -> None:
    """Shows playbooks, checks them, and renders them as a runbook for people."""


@command.command("list", cls=Command)
@format_option("table", "json", "yaml")
@pass_settings
def list_playbooks(settings: Settings, /) -> int:
    """Lists the playbooks that come along; their files are what to copy and change."""
    from failover.report.table import table
    from failover.runbook.library import find_playbook, shipped

    found = [find_playbook(name) for name in shipped()]
    rows = [(each.name, str(len(each.steps)), each.description.split(". ")[0].rstrip(".")) for each in found]

    def text() -> str:
        folder = Path(found[0].source).parent
        listed = table(("PLAYBOOK", "STEPS", "WHAT FOR"), rows, keep=frozenset({"PLAYBOOK"}), wrap=True)
        return f"{listed}\n\nTheir files: {folder}{os.sep}*.yaml. One in full: failover playbook show {found[0].name}\n"

    settings.emit_value(
        [{"name": each.name, "description": each.description, "path": each.source} for each in found],
        {"table": text},
    )
    return 0


@command.command("show", cls=Command)
@click.argument("playbook")
@format_option("table", "json", "yaml")
@pass_settings
def show(settings: Settings, /, *, playbook: str) -> int:
    """Shows one playbook: its variables, its steps, the point of no return, how long each took before.

    After a first run it tells how long the next one will take, and after drills how they went from time to time.
    """
    import msgspec

    from failover.runbook.history import durations, history_of
    from failover.runbook.history_text import history_blocks
    from failover.runbook.library import find_playbook
    from failover.runbook.runner import undoable
    from failover.runbook.text import playbook_text

    found = find_playbook(playbook)
    earlier = _earlier(settings, found.name)
    history = history_of(found, earlier)

    def text() -> str:
        return "\n".join(
            [
                playbook_text(found, undoable(found), durations(earlier)),
                *(f"{block}\n" for block in history_blocks(history)),
            ]
        )

    settings.emit_value({**msgspec.to_builtins(found), "history": history}, {"table": text})
    return 0


@command.command("validate", cls=Command)
@click.argument("playbooks", nargs=-1, required=True)
@format_option("table", "json", "yaml")
@pass_settings
def validate(settings: Settings, /, *, playbooks: tuple[str, ...]) -> int:
    """Finds every mistake in playbooks, each with its line, without running anything."""
    from failover.runbook.library import find_playbook

    wrong: list[str] = []
    right: list[dict[str, str | int]] = []
    for each in playbooks:
        try:
            found = find_playbook(each)
        except PlaybookInvalid as error:
            wrong.append(error.message)
        else:
            right.append({"path": found.source, "name": found.name, "steps": len(found.steps)})
    if wrong:
        raise PlaybookInvalid("\n".join(wrong), hint="failover playbook schema gives editors a JSON Schema")
    settings.emit_value(right, {"table": lambda: "\n".join(map(_in_order, right))})
    return 0


@command.command("render", cls=Command)
@click.argument("playbook")
@click.option("-o", "output", metavar="FILE", help="Write it there; the ending .html or .md says the form.")
@format_option("markdown", "html")
@pass_settings
def render(settings: Settings, /, *, playbook: str, output: str | None) -> int:
    """Renders a playbook as a runbook to be followed by hand."""
    from failover.cli.plan import require_place, write_out
    from failover.runbook.history import durations
    from failover.runbook.library import find_playbook
    from failover.runbook.render import as_html, as_markdown
    from failover.runbook.runner import undoable

    target = Path(output).expanduser() if output else None
    if target is not None:
        require_place(target)
    found = find_playbook(playbook)
    html = output.endswith((".html", ".htm")) if output else settings.format == "html"
    made = (as_html if html else as_markdown)(found, undoable(found), durations(_earlier(settings, found.name)))
    if target is not None:
        write_out(target, made)
        settings.say(f"written to {output}")
    else:
        settings.emit(made)
    return 0


@command.command("schema", cls=Command)
@pass_settings
def schema(settings: Settings, /) -> int:
    """Prints the JSON Schema of playbooks, for editors."""
    from failover.report.encode import to_json
    from failover.runbook.json_schema import playbook_schema

    settings.emit(to_json(playbook_schema()))
    return 0


def _in_order(one: dict[str, str | int]) -> str:
    from failover.report.inert import inert_line

    return inert_line(f"{one['path']}: {one['name']}, {one['steps']} steps, in order")


def _earlier(settings: Settings, name: str) -> list[RunRecord]:
    from failover.runbook.history import earlier_runs

    return earlier_runs(state_folder(settings), settings.say, name)
