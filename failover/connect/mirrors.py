"""MirrorMaker 2's connectors among all those of a Connect cluster: which flow each serves, and who owns it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from failover.config.connect_json import kind_of
from failover.config.mm2_keys import CONNECTORS
from failover.connect.source import Source
from failover.connect.values import FAILED, PAUSED, RUNNING, STOPPED, Expanded, Status, Task
from failover.errors import ConnectorNotFound, UsageError

Kind = Literal["source", "checkpoint", "heartbeat"]
# Strimzi: the operator names them so, and nobody else does
_STRIMZI = re.compile(r"(?P<source>.+)->(?P<target>.+)\.Mirror(?P<kind>Source|Checkpoint|Heartbeat)Connector")
_DEFAULT_TARGET = "target"


class Mirror(msgspec.Struct, frozen=True, kw_only=True):
    """Is one connector of MirrorMaker 2: its flow and its state.

    ``state`` and ``tasks`` hold Connect's own words (RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED, RESTARTING),
    ``state`` "UNKNOWN" while Connect has none. ``reason``: the first line of the failure. ``operator``: its name is one
    that Strimzi's operator gives, which undoes what others change.
    """

    name: str
    kind: Kind
    source: str
    target: str
    state: str
    tasks: tuple[Task, ...] = ()
    reason: str = ""
    operator: bool = False

    @property
    def flow(self) -> str:
        """Gives ``A->B``."""
        return f"{self.source}->{self.target}"

    @property
    def failed(self) -> bool:
        """Says whether it or a task of it failed."""
        return self.state == FAILED or any(task.state == FAILED for task in self.tasks)

    @property
    def healthy(self) -> bool:
        """Says whether it and its tasks run; the checkpoint connector has none while no group is mirrored."""
        states = {self.state, *(task.state for task in self.tasks)}
        return states == {RUNNING} and (bool(self.tasks) or self.kind == "checkpoint")

    @property
    def idle(self) -> bool:
        """Says whether it runs and has no task: nothing there is for it to copy, or its tasks are still handed out."""
        return self.state == RUNNING and not self.tasks

    @property
    def condition(self) -> str:
        """Gives the worst of the states, for one word on a screen."""
        states = [self.state, *(task.state for task in self.tasks)]
        return FAILED if FAILED in states else next((state for state in states if state != RUNNING), RUNNING)

    @property
    def problem(self) -> str:
        """Gives the first line of why it failed, the task's if not its own."""
        return self.reason or next((task.reason for task in self.tasks if task.state == FAILED), "")


def mirrors(found: Mapping[str, Expanded], *, operated: bool = True) -> list[Mirror]:
    """Gives MirrorMaker 2's connectors of a cluster, by flow and kind; ``operated``: see ``Source.operated``."""
    known = [one for name, entry in found.items() if (one := _mirror(name, entry)) is not None]
    if not operated:
        known = [msgspec.structs.replace(one, operator=False) for one in known]
    return sorted(known, key=lambda one: (one.flow, CONNECTORS.index(one.kind), one.name))


def mirrors_at(where: Source) -> list[Mirror]:
    """Gives MirrorMaker 2's connectors of a place, none of them an operator's where none can be at work."""
    entries = where.connectors()
    found = mirrors(entries)
    if any(one.operator for one in found) and not where.operated():
        return mirrors(entries, operated=False)
    return found


def of_flow(found: Iterable[Mirror], source: str | None, target: str | None) -> list[Mirror]:
    """Gives those of one flow; either alias may be left out."""
    return [one for one in found if source in (None, one.source) and target in (None, one.target)]


def choose(
    found: list[Mirror], names: Iterable[str], source: str | None, target: str | None, *, at: str
) -> list[Mirror]:
    """Gives the connectors that were meant: those named, else those of the one flow that fits.

    ``at`` names the Connect cluster. Raises ConnectorNotFound, and UsageError where several flows fit.
    """
    by_name = {one.name: one for one in found}
    wanted = list(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        raise ConnectorNotFound(
            f"{at} has no connector of MirrorMaker 2 called {unknown[0]}", hint=f"it has: {_list(by_name)}"
        )
    if wanted:
        return [by_name[name] for name in wanted]
    fitting = of_flow(found, source, target)
    if not fitting:
        which = f"of {source or '*'}->{target or '*'}" if source or target else "of MirrorMaker 2"
        raise ConnectorNotFound(f"{at} has no connector {which}", hint=f"it has: {_list(by_name)}")
    flows = list(dict.fromkeys(one.flow for one in fitting))
    if len(flows) > 1:
        raise UsageError(
            f"{at} mirrors several flows: {', '.join(flows)}",
            hint="choose one with --source and --target, or name them",
        )
    return fitting


def connector_states(where: Source, source: str | None = None, target: str | None = None) -> list[Mirror]:
    """Gives the state of MirrorMaker 2's connectors on a Connect cluster, of one flow if it is named.

    ``where``: a ``ConnectClient`` or ``Kubectl``. Reads only, in one request, or two where the names are Strimzi's.
    Raises what ``where`` raises.
    """
    return of_flow(mirrors_at(where), source, target)


def exit_code(found: Iterable[Mirror]) -> int:
    """Gives the exit status of a state: 3 something failed, 4 something does not run, 0 all runs."""
    states = list(found)
    if any(one.failed for one in states):
        return 3
    return 0 if all(one.healthy for one in states) else 4


def at_rest(one: Mirror, *, verb: str) -> bool:
    """Says whether a connector is what ``pause``, ``stop``, ``resume`` or ``restart`` wants it to be."""
    match verb:
        case "pause":
            return one.state in (PAUSED, STOPPED) and all(task.state == PAUSED for task in one.tasks)
        case "stop":
            return one.state == STOPPED and not one.tasks
        case "restart" if one.state in (PAUSED, STOPPED):  # a restart leaves it so (measured on Kafka 4.1.1)
            return all(task.state == PAUSED for task in one.tasks)
    return one.healthy


def _mirror(name: str, entry: Expanded) -> Mirror | None:
    config = entry.info.config if entry.info is not None else {}
    status: Status | None = entry.status
    strimzi = _STRIMZI.fullmatch(name)
    kind = kind_of(config.get("connector.class", ""))
    if kind is None and strimzi is not None and not config:
        kind = strimzi["kind"].lower()
    if kind is None:
        return None
    source = config.get("source.cluster.alias") or (strimzi["source"] if strimzi else "")
    target = config.get("target.cluster.alias") or (strimzi["target"] if strimzi else _DEFAULT_TARGET)
    return Mirror(
        name=name,
        kind=kind,  # type: ignore[arg-type]
        source=source,
        target=target,
        state=status.connector.state if status is not None else "UNKNOWN",
        tasks=tuple(sorted(status.tasks, key=lambda task: task.id)) if status is not None else (),
        reason=status.connector.reason if status is not None else "",
        operator=strimzi is not None,
    )


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
