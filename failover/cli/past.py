"""What the commands about an execution share: finding it, and reaching the cluster it wrote to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from failover.cli.wiring import choose_flow, load, open_cluster
from failover.errors import FailoverError, PlanInvalid, PlanNotFound, RunNotFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from failover.cli.frame import Settings
    from failover.config.flow import Config, SelectedFlow
    from failover.execution.runlog import Shared, SharedRun
    from failover.kafka.port import Cluster
    from failover.model.execution import Execution
    from failover.model.plan import Plan
    from failover.state.folder import StateFolder
    from failover.state.journal import Event

LOOK_SECONDS = 3.0
"""Longest silence accepted from a target that is asked only for what other machines did."""


class Located(NamedTuple):
    """Is an execution and where it was found: its folder or file here, None when only the target knows it."""

    execution: Execution
    path: Path | None

    @property
    def folder(self) -> Path | None:
        """Is the folder with its journal, None where there is none on this machine."""
        return self.path if self.path is not None and self.path.is_dir() else None


class Target(NamedTuple):
    """Is the cluster an execution wrote to, the topic on it that executions share (None: switched off), the flow."""

    cluster: Cluster
    topic: str | None
    config: Config
    selected: SelectedFlow


def locate(settings: Settings, state: StateFolder, reference: str) -> Located:
    """Finds an execution by id or file here, with its last verification, else by id in what other machines left on
    the target.
    """
    from failover.execution.runs import load_run, with_last_look
    from failover.state.playbook_runs import PLAYBOOK_RUN
    from failover.state.runs import find_run, is_file

    if reference.startswith(PLAYBOOK_RUN) and not is_file(reference):
        raise RunNotFound(
            f"{reference} is a run of a playbook, not an execution",
            hint=f"failover show {reference} names the executions of its steps",
        )
    try:
        path = find_run(state, reference)
    except RunNotFound:
        found = None if is_file(reference) else _elsewhere(settings, state, reference)
        if found is None:
            raise
        return Located(found, None)
    found = load_run(path)
    return Located(with_last_look(found, path) if path.is_dir() else found, path)


def _elsewhere(settings: Settings, state: StateFolder, reference: str) -> Execution | None:
    from failover.state.runs import EVICTION

    found: dict[str, SharedRun] = {}
    for _, shared in others(settings):
        if isinstance(shared, FailoverError):
            settings.say(f"what other machines did is not known: {shared.message}")
        else:
            found.update((name, run) for name, run in shared.runs.items() if name.startswith(reference))
    if reference in found or len(found) == 1:
        run = found.get(reference) or next(iter(found.values()))
        run_id = run.started.execution_id
        if run_id.startswith(EVICTION):
            raise RunNotFound(
                f"{run_id} is an eviction: it wrote no offset",
                hint=f"failover show {run_id} on {run.started.host} tells whom it removed",
            )
        try:
            return _built(state, run.events())
        except msgspec.DecodeError as error:
            raise RunNotFound(
                f"{run.started.execution_id} was written on {run.started.host} by another version: {error}",
                hint=f"failover show {run.started.execution_id} on that machine",
            ) from error
    if found:
        raise RunNotFound(f"several executions begin with {reference}: {', '.join(found)}", hint="type more of the id")
    return None


def _built(state: StateFolder, events: list[Event]) -> Execution:
    from failover.execution.record import build, build_bare
    from failover.planning.plan_file import decode_plan
    from failover.state.plans import find_plan, read_plan

    bare = build_bare(events)
    if bare.undoes:
        return bare
    try:
        plan = decode_plan(read_plan(find_plan(state, bare.plan_id)))
    except (PlanNotFound, PlanInvalid):
        return bare
    return build(plan, events) if plan.fingerprint == bare.fingerprint else bare


def others(settings: Settings) -> Iterator[tuple[str, Shared | FailoverError]]:
    """Yields what each enabled flow's target holds of executions, or why it could not be asked.

    Nothing without a configuration. Each target has a few seconds, or --timeout.
    """
    from failover.cli.shared import look
    from failover.config.flow import SelectedFlow
    from failover.library.flows import runs_topic

    try:
        config = load(settings)
    except FailoverError:
        return
    chosen = (settings.source, settings.target)
    for flow in config.enabled_flows:
        aliases = (flow.source.alias, flow.target.alias)
        if any(given not in (None, own) for given, own in zip(chosen, aliases, strict=True)):
            continue
        selected = SelectedFlow(flow, *aliases)
        topic = runs_topic(config, selected.source)
        if topic is None:
            continue
        try:
            cluster = open_cluster(settings, selected, selected.target, timeout=settings.timeout or LOOK_SECONDS)
            try:
                yield selected.name, look(cluster, topic)
            finally:
                cluster.close()
        except FailoverError as error:
            yield selected.name, error


def target_of(settings: Settings, execution: Execution) -> Target:
    """Opens the cluster an execution wrote to, by its alias in the configuration.

    Raises ``UsageError`` when --source or --target name another flow.
    """
    from failover.library.flows import runs_topic

    for given, own, option in (
        (settings.source, execution.source_alias, "--source"),
        (settings.target, execution.target_alias, "--target"),
    ):
        if given is not None and given != own:
            raise UsageError(
                f"{execution.id} went from {execution.source_alias} to {execution.target_alias}, not {given}",
                hint=f"leave {option} out: the execution names its clusters",
            )
    settings.source, settings.target = execution.source_alias, execution.target_alias
    config = load(settings)
    selected = choose_flow(settings, config, allow_reverse=True)
    topic = runs_topic(config, selected.source)
    return Target(open_cluster(settings, selected, selected.target), topic, config, selected)


def undone_by(state: StateFolder, execution: Execution) -> str:
    """Says by which run on record here an execution was rolled back, and when; "" where it was not."""
    from failover.execution.earlier import begun_to_undo
    from failover.execution.runs import undoings
    from failover.report.values import moment

    found = [each for each in undoings(state) if each.undoes == execution.id and begun_to_undo(each)]
    return f"{found[0].id}, {moment(found[0].started)}" if found else ""


def plan_of(folder: Path | None) -> Plan | None:
    """Reads the plan an execution was of, None where only the record is at hand."""
    from failover.planning.plan_file import decode_plan
    from failover.state.runs import PLAN

    if folder is None or not folder.is_dir() or not (folder / PLAN).is_file():
        return None
    return decode_plan((folder / PLAN).read_bytes())
