"""`failover translate GROUP`: its translated offsets, and how each is known."""

from __future__ import annotations

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.looking import looking
from failover.cli.wiring import choose_flow, load


@click.command(cls=Command)
@click.argument("group")
@click.option("--no-content", is_flag=True, help="Place offsets by offset syncs alone; read no records.")
@format_option("table", "json", "yaml", "markdown")
@pass_settings
def command(settings: Settings, /, *, group: str, no_content: bool) -> int:
    """Shows where GROUP may start on the target: what MirrorMaker 2's own client answers, and the exact places.

    MM2's answers are those of Java's RemoteClusterUtils.translateOffsets; a group that nobody knows has none.
    """
    from failover.inventory.selection import Selection
    from failover.inventory.translating import group_translation
    from failover.report.translation_text import translation_markdown, translation_text

    config = load(settings)
    selected = choose_flow(settings, config, allow_reverse=True)
    with looking(settings, config, selected) as look:
        snapshot = look.snapshot(Selection(groups=(group,), create=True), content=not no_content)
    found = group_translation(snapshot, group)
    settings.emit_value(
        found, {"table": lambda: translation_text(found), "markdown": lambda: translation_markdown(found)}
    )
    return 0
