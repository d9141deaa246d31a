"""The options of `plan`, shared with `execute` where it plans first."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from failover.cli.params import DURATION, SOME_TIME, Missing
from failover.errors import UsageError

if TYPE_CHECKING:
    from failover.inventory.by_time import Times
    from failover.inventory.selection import Selection
    from failover.model.plan import PlanOptions

DEFAULT_TTL = 3600.0
"""Seconds a plan may wait for its first write."""


def plan_options() -> list[click.Parameter]:
    """Makes the options of `plan` that decide what a plan contains."""
    return [
        click.Option(["--group", "groups"], multiple=True, metavar="G", help="Plan this group (literal; repeatable)."),
        click.Option(
            ["--group-pattern"],
            metavar="RE",
            help="Plan groups whose whole name matches this Java regular expression, as groups of mm2.properties does.",
        ),
        click.Option(
            ["--groups-file"],
            metavar="FILE",
            help="Plan the groups this file names, one a line; a line may be blank or begin with #; - is stdin.",
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
            ["--topic", "topics"],
            multiple=True,
            metavar="T",
            help="Plan this topic's partitions alone, by its name on either cluster (repeatable).",
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
            type=Missing(),
            metavar="leave|earliest|latest|at=TIME|ago=DURATION|fail",
            default="leave",
            show_default=True,
            help="Where no offset is known: leave the partition; commit the log's start, its end, or the first record "
            "of a time (UTC) or of so long ago; or refuse.",
        ),
        click.Option(
            ["--local-topics"],
            type=click.Choice(["none", "earliest"]),
            default="none",
            show_default=True,
            help="On topics by their plain names, which producers write on the target: commit the log's start for "
            "groups that have no offset there.",
        ),
        click.Option(
            ["--rewind-by"],
            type=SOME_TIME,
            help="Go back by so long from where groups stand, counted from the record each consumed last.",
        ),
        click.Option(
            ["--allow-skip"],
            is_flag=True,
            help="Accept that --missing passes over records nobody is known to have read.",
        ),
        click.Option(
            ["--all-or-nothing"],
            is_flag=True,
            help="Write nothing at all unless every partition of every planned group can be written.",
        ),
        click.Option(["--require-source-inactive"], is_flag=True, help="Refuse groups with members on the source."),
        click.Option(["--allow-rewind"], is_flag=True, help="Accept that a commit on the target moves back."),
        click.Option(
            ["--allow-moving-commits"], is_flag=True, help="Accept that others commit for the group meanwhile."
        ),
        click.Option(
            ["--allow-unverified"],
            is_flag=True,
            help="Accept the target's log end where the position lies beyond it or cannot be placed.",
        ),
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
    named = [*values["groups"], *groups_in(values["groups_file"])]
    if values["all_groups"] and (named or values["group_pattern"]):
        raise UsageError(
            "--all does not go with --group, --groups-file or --group-pattern", hint="leave one of them out"
        )
    if values["missing"] == "latest" and not values["allow_skip"]:
        raise UsageError(
            "--missing latest starts consumers beyond records they never read",
            hint="add --allow-skip if that is meant, or use --missing earliest",
        )
    return PlanOptions(
        groups=tuple(dict.fromkeys(named)),
        group_pattern=values["group_pattern"],
        exclude_groups=tuple(dict.fromkeys(values["exclude_groups"])),
        topics=tuple(dict.fromkeys(values["topics"])),
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
        local_topics=values["local_topics"],
        rewind_by=values["rewind_by"] or 0.0,
    )


def groups_in(file: str | None) -> list[str]:
    """Reads the names in a file of ``--groups-file``, ``-`` being stdin; nothing without a file.

    Raises ``UsageError`` for a file that cannot be read or names nothing: that must not come to mean every group.
    """
    if file is None:
        return []
    where = "stdin" if file == "-" else file
    try:
        if file == "-":
            content = sys.stdin.buffer.read()
        else:
            with open(os.path.expanduser(file), "rb") as opened:
                content = opened.read()
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(
            f"--groups-file {where}: {error.strerror}", hint="name a file with one group a line"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--groups-file {where} is not UTF-8: {error}", hint="write one group a line") from error
    lines = [line.strip() for line in text.splitlines()]
    names = [line for line in lines if line and not line.startswith("#")]
    if not names:
        raise UsageError(f"--groups-file {where} names no group", hint="write one group a line")
    return names


def selection_of(options: PlanOptions) -> Selection:
    """Gives what the options say of groups and topics."""
    from failover.inventory.selection import Selection

    return Selection(
        options.groups, options.group_pattern, options.exclude_groups, options.create_group, options.topics
    )


def times_of(options: PlanOptions) -> Times:
    """Gives what the options say of offsets by time."""
    from failover.inventory.by_time import Times

    return Times(options.missing, options.rewind_by)
