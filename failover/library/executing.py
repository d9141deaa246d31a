"""Commits a plan to the target."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from failover.errors import GroupNotFound, UsageError
from failover.library.flows import Configuration, MirrorFlow, one_flow, runs_topic
from failover.library.planning import user
from failover.model.plan import Plan

if TYPE_CHECKING:
    from failover.model.execution import Execution


def execute(
    plan: Plan,
    flow: MirrorFlow | Configuration,
    *,
    groups: Collection[str] = (),
    state_dir: str | os.PathLike[str] | None = None,
    settle_seconds: float = 6.0,
    wait_seconds: float = 0.0,
    ignore_lock: bool = False,
    reason: str | None = None,
    operator: str | None = None,
    target_timeout: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> Execution:
    """Commits a plan's offsets to the target, reads every one back, and gives the record of it.

    Every write is in the journal of ``state_dir`` (None: the folder the commands use) before it is sent, and can be
    rolled back with `failover rollback`. ``groups``: only these of the plan. ``settle_seconds``: watch for so long that
    commits stand still; ``wait_seconds``: try refused groups again until they are empty. ``warn`` is told what is no
    error. What could not be written is in the record, not raised.

    Raises ``StalePlan``, ``Locked``, ``ClusterUnreachable`` and the other errors of the command of this name, with
    the same meaning; ``UsageError`` for a plan of another flow.
    """
    from failover.execution.commit import Timing
    from failover.execution.holding import holding
    from failover.execution.session import Session, Ways, check, past, utc_now
    from failover.state.folder import StateFolder, default_folder

    mirror = one_flow(flow)
    if (plan.flow.source, plan.flow.target) != (mirror.source, mirror.target):
        raise UsageError(
            f"plan {plan.id} is for {plan.flow.source}->{plan.flow.target}, not {mirror.name}",
            hint="give the flow it was made for",
        )
    names = {group.group for group in plan.groups}
    for name in groups:
        if name not in names:
            raise GroupNotFound(f"group {name} is not in plan {plan.id}", hint="plan it anew")
    own = mirror.config.failover
    if state_dir is not None:
        folder = Path(state_dir)
    else:
        folder = Path(own["state.dir"].trimmed).expanduser() if "state.dir" in own else default_folder()
    state = StateFolder(folder)
    state.require_usable()
    topic = runs_topic(mirror.config, mirror.source)
    who = user() if operator is None else operator
    said = warn or _unheard
    cluster = mirror.open_cluster(mirror.target, timeout=target_timeout)
    try:
        with holding(cluster, topic, f"execute plan {plan.id}", operator=who, ignore=ignore_lock, warn=said) as common:
            before = past(state, plan, common.shared)
            check(plan, cluster, before, now=utc_now(), when_free=wait_seconds > 0)
            ways = Ways(
                operator=who,
                reason=plan.reason if reason is None else reason,
                log=common.log,
                warnings=common.warnings,
                warn=said,
            )
            if progress is not None:
                ways = msgspec.structs.replace(ways, progress=progress)
            session = Session.of_plan(
                plan,
                state,
                cluster,
                ways,
                wanted=sorted(groups or names),
                timing=Timing(settle_seconds, wait_seconds),
                before=before,
            )
            return session.run()
    finally:
        cluster.close()


def _unheard(_text: str) -> None:
    """Is the warning nobody asked for: it is in the record all the same."""
