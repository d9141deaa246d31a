"""Runs an execution or a roll back at a terminal: progress, signals, and where it stands when it ends early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failover.cli.progress import ProgressBar
from failover.cli.stop import Stop
from failover.cli.wiring import operator
from failover.errors import ClusterError, Interrupted
from failover.execution.record import NOT_REACHED
from failover.execution.session import Session, Ways

if TYPE_CHECKING:
    from collections.abc import Callable

    from failover.cli.frame import Settings
    from failover.execution.holding import Common
    from failover.model.execution import Execution


def run_session(
    settings: Settings,
    common: Common,
    reason: str,
    make: Callable[[Ways], Session],
    *,
    again: Callable[[str], str],
) -> Execution:
    """Makes the session and runs it; a signal or a silent target leaves a position that is told.

    ``again`` gives, for the run's id, the next step that goes on with it.
    """
    with ProgressBar(settings) as progress, Stop(settings) as stop:
        ways = Ways(
            operator=operator(),
            reason=reason,
            log=common.log,
            warnings=common.warnings,
            warn=lambda text: settings.say(f"warning: {text}"),
            progress=progress,
            stop=stop,
        )
        session = make(ways)
        going_on = again(session.run_id)
        try:
            execution = session.run()
        except (Interrupted, KeyboardInterrupt) as error:
            number = error.signal_number if isinstance(error, Interrupted) else 2
            raise Interrupted(
                f"interrupted in {session.run_id}; what was under way may or may not be written",
                signal_number=number,
                hint=f"failover show {session.run_id} settles it by reading back; {going_on}",
            ) from error
        except ClusterError as error:
            error.hint = f"{error.hint}; then {going_on}" if error.hint else going_on
            raise
    waiting = sum(any(p.reason == NOT_REACHED for p in group.partitions) for group in execution.groups)
    if stop.number and waiting:
        total = len(execution.groups)
        raise Interrupted(
            f"stopped by {stop()} in {session.run_id} after {total - waiting} of {total} groups; nothing is under way",
            signal_number=stop.number,
            hint=going_on,
        )
    return execution
