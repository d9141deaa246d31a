"""What this machine remembers of a flow: earlier plans and executions, for the next look at it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from failover.errors import FailoverError

if TYPE_CHECKING:
    from failover.config.flow import SelectedFlow
    from failover.inventory.snapshot import Earlier
    from failover.model.names import TopicPartition
    from failover.model.plan import Plan, PlannedGroup
    from failover.model.snapshot import Snapshot
    from failover.state.folder import StateFolder

_PLANS = 20
_RUNS = 20
"""How many of the newest are looked through: what is older says little about now."""


class Memory(NamedTuple):
    """Is what earlier plans say. ``plan``: the newest plan of the flow."""

    earlier: Earlier
    plan: Plan | None


def recall(state: StateFolder, selected: SelectedFlow) -> Memory:
    """Gathers what the saved plans of a flow hold; unreadable files are passed over."""
    from failover.inventory.snapshot import Earlier
    from failover.model.names import TopicPartition

    newest: Plan | None = None
    samples: dict[str, dict[TopicPartition, int]] = {}
    ends: dict[TopicPartition, int] = {}
    deleted: set[str] = set()
    seen = None
    for plan in _plans(state, selected):
        if newest is None:
            newest = plan
            samples = {
                group.group: {
                    TopicPartition(p.topic, p.partition): p.target_committed
                    for p in group.partitions
                    if p.target_committed is not None
                }
                for group in plan.groups
            }
        if plan.source.state in ("up", "degraded"):
            # The newest plan that saw the source alone: mixing several would date none of them.
            ends = {
                TopicPartition(p.source_topic, p.partition): p.source_end
                for group in plan.groups
                for p in group.partitions
                if p.source_end is not None
            }
            deleted = {group.group for group in plan.groups if group.source_state == "Dead" and _uncommitted(group)}
            seen = plan.created
            break
    committed = {group for group, places in samples.items() if places} | executed_groups(state, selected, newest)
    earlier = Earlier(
        samples,
        newest.created if newest is not None else None,
        ends,
        seen,
        frozenset(committed),
        frozenset(deleted),
    )
    return Memory(earlier, newest)


def _uncommitted(group: PlannedGroup) -> bool:
    return all(p.source_committed is None for p in group.partitions)


def _plans(state: StateFolder, selected: SelectedFlow) -> Iterator[Plan]:
    """Yields the flow's plans, newest first."""
    from failover.planning.plan_file import decode_plan
    from failover.state.plans import newest_plans, read_plan

    for path in islice(newest_plans(state), _PLANS):
        try:
            plan = decode_plan(read_plan(path))
        except FailoverError:
            continue  # an edited or foreign file is no memory; using it by name is what complains
        if (plan.flow.source, plan.flow.target) == (selected.source, selected.target):
            yield plan


class Further(NamedTuple):
    """Is a plan from while the source answered. ``records``: by how many its commits lie further on, in all."""

    plan: Plan
    records: int


def further_plan(state: StateFolder, selected: SelectedFlow, plan: Plan) -> Further | None:
    """Finds a plan made while the source answered still valid, that reads less again than ``plan``, made without.

    None where ``plan`` itself saw the source, and unless the earlier plan commits whatever ``plan``
    commits, nowhere further back, and no checkpoint written since shows a group that was set back on the source.
    """
    from failover.execution.earlier import complete
    from failover.execution.session import past
    from failover.model.plan import Action

    def commits(found: Plan) -> dict[tuple[str, str, int], int]:
        return {
            (group.group, p.topic, p.partition): p.offset
            for group in found.groups
            for p in group.partitions
            if p.action is Action.COMMIT and p.offset is not None
        }

    wanted = commits(plan)
    if plan.source.state in ("up", "degraded") or not wanted:
        return None
    for earlier in _plans(state, selected):
        if earlier.source.state not in ("up", "degraded") or earlier.target.cluster_id != plan.target.cluster_id:
            continue
        offered = commits(earlier)
        further = sum(offered.get(place, -1) - offset for place, offset in wanted.items())
        nowhere_back = all(offered.get(place, -1) >= offset for place, offset in wanted.items())
        if plan.created >= earlier.expires or not nowhere_back or further <= 0 or _set_back(earlier, plan):
            return None
        before = past(state, earlier)
        return None if before.rolled_back or complete(earlier, before.runs) else Further(earlier, further)
    return None


def _set_back(earlier: Plan, plan: Plan) -> bool:
    """Says whether a checkpoint since an earlier plan lies before what a group had committed by then."""
    stood = {(g.group, p.topic, p.partition): p.source_committed for g in earlier.groups for p in g.partitions}
    return any(
        p.checkpoint is not None
        and p.checkpoint.timestamp > earlier.created
        and p.checkpoint.upstream < (stood.get((group.group, p.topic, p.partition)) or 0)
        for group in plan.groups
        for p in group.partitions
    )


def executed_groups(state: StateFolder, selected: SelectedFlow, since: Plan | None = None) -> set[str]:
    """Names the groups that the newest executions of a flow were asked to do, by the ends of their journals alone.

    One that wrote nothing or was rolled back does not count; nor does a group that the plan ``since`` saw without
    commits on the target after that: they are known to be gone.
    """
    from failover.state.runs import all_runs, ends_of

    found: set[str] = set()
    undone: set[str] = set()
    gone = set()
    if since is not None:
        gone = {
            g.group for g in since.groups if g.state == "Dead" and all(p.target_committed is None for p in g.partitions)
        }
    for folder in islice(all_runs(state), _RUNS):
        started, closed = ends_of(folder)
        if started is None or (started.source_alias, started.target_alias) != (selected.source, selected.target):
            continue
        if started.undoes:
            undone.add(started.undoes)
        elif started.plan_id and started.execution_id not in undone and closed is not None and closed.committed:
            seen_gone = since is not None and started.at < since.created
            found.update(name for name in started.selected if not (seen_gone and name in gone))
    return found


def undecided(snapshot: Snapshot) -> dict[str, set[TopicPartition]]:
    """Names the places that an earlier execution says something about: group → partitions.

    Those with a standing commit (who wrote it?), and those whose position this look knows less than
    exactly: what was proven then still counts, whether or not the commit is still there.
    """
    from failover.model.translation import Precision

    found = {group: set(commits) for group, commits in snapshot.target.commits.items()}
    for known in (snapshot.checkpoints, snapshot.translations):
        for group, places in known.items():
            answers = snapshot.translations.get(group, {})
            found.setdefault(group, set()).update(
                tp for tp in places if tp not in answers or answers[tp].precision is not Precision.EXACT
            )
    return found


def last_written(
    state: StateFolder, selected: SelectedFlow, places: Mapping[str, Collection[TopicPartition]]
) -> dict[str, dict[TopicPartition, int]]:
    """Gives what executions of this flow wrote last to ``places``: group → partitions that are asked about.

    An execution of many groups takes long to read. So the search ends with the last of ``places``
    found, and one that did none of the groups left is told by its first line.
    """
    from failover.execution.runs import load_run, selected_of
    from failover.model.names import TopicPartition
    from failover.planning.plan_file import decode_options
    from failover.state.runs import PLAN, all_runs

    left = {group: set(partitions) for group, partitions in places.items() if partitions}
    written: dict[str, dict[TopicPartition, int]] = {}
    for folder in islice(all_runs(state), _RUNS) if left else ():
        try:
            if left.keys().isdisjoint(selected_of(folder, selected.source, selected.target)):
                continue
            run = load_run(folder)
            options = decode_options((folder / PLAN).read_bytes())
        except (FailoverError, OSError, ValueError):
            continue
        for group in run.groups:
            wanted = left.get(group.group)
            if wanted is None:
                continue
            for p in group.partitions:
                tp = TopicPartition(p.topic, p.partition)
                guessed = p.reason in ("at-log-end", "at-time") and (options.allow_skip or options.allow_unverified)
                if p.written is not None and not guessed and tp in wanted:
                    written.setdefault(group.group, {})[tp] = p.written
                    wanted.remove(tp)
            if not wanted:
                del left[group.group]
        if not left:
            break
    return written
