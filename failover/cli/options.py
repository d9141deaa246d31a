"""The options of `plan`, shared with `execute` where it plans first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from failover.cli.params import DURATION
from failover.errors import UsageError

if TYPE_CHECKING:
    from failover.model.plan import PlanOptions

DEFAULT_TTL = 3600.0
"""Seconds a plan may wait for its first write."""


def plan_options() -> list[click.Parameter]:
    """Makes the options of `plan` that decide what a plan contains."""
    return [
        click.Option(["--group", "groups"], multiple=True, metavar="G", help="Plan this group (literal; repeatable)."),
        click.Option(
            ["--group-pattern"], metavar="RE", help="Plan groups whose whole name matches this regular expression."
        ),
        click.Option(
            ["--exclude-group", "exclude_groups"], multiple=True, metavar="G", help="Leave this group out (repeatable)."
        ),
        click.Option(
            ["--all", "all_groups"],
            is_flag=True,
            help="Plan every group that mm2.properties does not exclude (the default).",
        ),
        click.Option(
            ["--precision"],
            type=click.Choice(["exact", "bounded", "conservative"]),
            default="conservative",
            show_default=True,
            help="How surely an offset must be known to be committed.",
        ),
        click.Option(["--no-content"], is_flag=True, help="Place offsets by offset syncs alone; read no records."),
        click.Option(
            ["--missing"],
            type=click.Choice(["leave", "earliest", "latest", "fail"]),
            default="leave",
            show_default=True,
            help="Where no offset is known: leave the partition, commit the log's start or end, or refuse.",
        ),
        click.Option(
            ["--allow-skip"], is_flag=True, help="Accept that unread records are skipped (by --missing latest)."
        ),
        click.Option(["--all-or-nothing"], is_flag=True, help="Write nothing unless every partition can be written."),
        click.Option(["--require-source-inactive"], is_flag=True, help="Refuse groups with members on the source."),
        click.Option(["--allow-rewind"], is_flag=True, help="Accept that a commit on the target moves back."),
        click.Option(
            ["--allow-moving-commits"], is_flag=True, help="Accept that others commit for the group meanwhile."
        ),
        click.Option(["--allow-unverified"], is_flag=True, help="Accept the target's log end where nothing proves it."),
        click.Option(["--create-group"], is_flag=True, help="Plan a group named by --group that exists nowhere yet."),
        click.Option(["--ttl"], type=DURATION, help="How long the plan stays valid, such as 30m (default 1h)."),
        click.Option(["--reason"], metavar="TEXT", help="Why this is done; kept in the record."),
    ]


def typed(ctx: click.Context, options: list[click.Parameter]) -> list[str]:
    """Names which of these options were typed on the command line."""
    return [
        option.opts[0]
        for option in options
        if ctx.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE
    ]


def to_options(values: Mapping[str, Any]) -> PlanOptions:
    """Turns the typed values into the plan's options; raises ``UsageError`` for what contradicts itself."""
    from failover.inventory.selection import pattern_of
    from failover.model.plan import PlanOptions

    if "" in values["groups"]:
        raise UsageError("--group wants a name", hint="leave it out to plan every group")
    if values["group_pattern"] is not None:
        pattern_of(values["group_pattern"])
    if values["all_groups"] and (values["groups"] or values["group_pattern"]):
        raise UsageError("--all does not go with --group or --group-pattern", hint="leave one of them out")
    return PlanOptions(
        groups=tuple(dict.fromkeys(values["groups"])),
        group_pattern=values["group_pattern"],
        exclude_groups=tuple(dict.fromkeys(values["exclude_groups"])),
        precision=values["precision"],
        missing=values["missing"],
        content=not values["no_content"],
        all_or_nothing=values["all_or_nothing"],
        require_source_inactive=values["require_source_inactive"],
        allow_rewind=values["allow_rewind"],
        allow_skip=values["allow_skip"],
        allow_moving_commits=values["allow_moving_commits"],
        allow_unverified=values["allow_unverified"],
        create_group=values["create_group"],
    )
