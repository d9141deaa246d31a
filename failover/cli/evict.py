"""`failover evict --group G`: removes lingering members of a group on the target."""

from __future__ import annotations

import socket

import click

from failover.cli.frame import Command, Settings, confirm_typed, format_option, pass_settings, require_terminal
from failover.cli.shared import locked
from failover.cli.wiring import choose_flow, load, open_cluster, operator, state_folder, utc_now
from failover.library.flows import runs_topic


@click.command(cls=Command)
@click.option("--group", required=True, metavar="G", help="The group on the target.")
@click.option("--static-only", is_flag=True, help="Only static members (group.instance.id).")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--ignore-lock", is_flag=True, help="Go on although another process alive holds the lock.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for the record.")
@format_option("table", "json", "yaml")
@pass_settings
def command(settings: Settings, /, *, group: str, static_only: bool, yes: bool, ignore_lock: bool, reason: str) -> int:
    """Removes members of a group on the target whose process is gone but whose session is not over.

    A static member stays in its group for its whole session timeout, and keeps commits out so long.
    A client that still runs joins again.
    """
    from failover._version import __version__
    from failover.execution.evict import candidates, evict, exit_code
    from failover.execution.runlog import SharedJournal
    from failover.model.execution import Eviction, Outcome
    from failover.report.evict_text import evict_question, eviction_text, nobody_text
    from failover.state.journal import Journal, Started
    from failover.state.runs import EVICTION, JOURNAL, new_run

    require_terminal(assume_yes=yes)
    config = load(settings)
    selected = choose_flow(settings, config, allow_reverse=True)
    state = state_folder(settings, config)
    cluster = open_cluster(settings, selected, selected.target)
    topic = runs_topic(config, selected.source)
    try:
        with locked(settings, cluster, topic, f"evict members of {group}", ignore=ignore_lock) as common:
            info, members = candidates(cluster, group, static_only=static_only)
            if not members:
                # nobody to remove: no run is begun, and the answer has no id
                now = utc_now()
                nobody = Eviction(
                    id="",
                    group=group,
                    started=now,
                    finished=now,
                    outcome=Outcome.DONE,
                    operator=operator(),
                    reason=reason,
                    source_alias=selected.source,
                    target_alias=selected.target,
                    members=(),
                    left=info.members,
                    state=info.state,
                )
                settings.emit_value(nobody, {"table": lambda: nobody_text(nobody, static_only=static_only)})
                return 0
            confirm_typed(evict_question(group, selected.target, info.state, members), selected.target, assume_yes=yes)
            run_id, folder = new_run(state, EVICTION)
            started = Started(
                at=utc_now(),
                execution_id=run_id,
                plan_id="",
                fingerprint="",
                tool_version=__version__,
                operator=operator(),
                reason=reason,
                source_alias=selected.source,
                target_alias=selected.target,
                target_cluster_id=cluster.facts().cluster_id,
                selected=(group,),
                host=socket.gethostname(),
            )
            journal = Journal(folder / JOURNAL)
            notebook = SharedJournal(journal, common.log, run_id, lambda text: settings.say(f"warning: {text}"))
            try:
                eviction = evict(cluster, group, members, notebook, started, clock=utc_now)
            finally:
                journal.close()
    finally:
        cluster.close()
    settings.emit_value(eviction, {"table": lambda: eviction_text(eviction)})
    return exit_code(eviction)
