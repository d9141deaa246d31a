"""The kinds of steps: what each one can do, and where it is found."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

import msgspec

from failover.runbook.playbook import Value

if TYPE_CHECKING:
    from datetime import datetime

    from failover.runbook.reach import Reach

KINDS: Mapping[str, str] = {
    "acls": "creates on the target the ACLs that applications lack there",
    "approve": "another person than the starter agrees",
    "at-most": "fails where what an earlier step measured is too much",
    "canary": "writes one record to the target and reads it back",
    "check": "looks whether a flow is well, or ready for a failover, by the health lists",
    "command": "runs a program with its arguments, never through a shell",
    "evict": "removes members of dead processes from groups on the target",
    "execute": "commits a plan's offsets to the target",
    "fence": "keeps producers out of the source by ACLs, proved by an attempt",
    "group-shadow": "tries a plan out on groups of its own and compares what they would read",
    "http": "sends one HTTP request and looks at the answer",
    "manual": "somebody does something by hand and says so",
    "move-applications": "stops or starts producers or consumers, by a hook of yours or by hand",
    "notify": "tells a webhook how the run goes",
    "plan": "looks at both clusters and saves a plan",
    "prepare-topics": "makes the topics producers need on the target",
    "recreate-topics": "deletes topics on the target so that they are mirrored whole",
    "replication-lag": "waits until the mirror is no further behind than is allowed",
    "report": "writes the HTML page of an execution",
    "reverse-replication": "stops the opposite flow and starts this one",
    "schema-ids": "compares the ids of two schema registries",
    "seed": "writes where the flow begins, behind what the opposite flow copied",
    "start-replication": "resumes the flow's connectors",
    "stop-replication": "stops the flow's connectors",
    "tail": "counts and exports what one cluster alone holds",
    "unfence": "takes the fence away from a cluster",
    "verify": "looks whether the target holds what was written, and who came back",
    "verify-fence": "watches that nothing is written to the source any more",
    "wait-drained": "waits until groups have consumed all there is on the source",
    "wait-inactive": "waits until groups have no members",
}
"""Kind → what it does; the module is ``failover.runbook.steps.NAME`` with ``_`` for ``-``."""

Result = Mapping[str, Value]
P = TypeVar("P", bound=msgspec.Struct)
R = TypeVar("R")


class Context(Protocol):
    """Is what a step is given beside its parameters.

    ``reach``: the flow and its clusters. ``operators``: who started and resumed the run, in that order; the last one is
    at it now. ``notes``: what the step noted, also before it was cut short. ``assumed``: questions are answered with
    yes (``--yes``).
    """

    run_id: str
    step_id: str
    operators: Sequence[str]
    playbook: str
    reach: Reach
    assumed: bool
    self_approve: bool
    source: str
    target: str
    notes: Mapping[str, Value]

    def remaining(self) -> float:
        """Gives the seconds until the step's time is used up."""

    def now(self) -> datetime:
        """Gives the time of day."""

    def say(self, text: str) -> None:
        """Tells the operator something."""

    def pause(self, seconds: float) -> None:
        """Lets some time pass."""

    def note(self, **values: Value) -> None:
        """Keeps values, durable on return: what an undo will need is noted before the effect."""

    def wait(self, check: Callable[[], R], *, what: Callable[[], str], every: float = 1.0) -> R:
        """Calls ``check`` until it gives something true. Raises ``StepTimeout`` with ``what``, as seen last."""

    def ask(self, question: str, typed: str = "") -> bool:
        """Asks the operator. Raises ``NoTerminal`` when nobody can be asked."""


class Settled(msgspec.Struct, frozen=True):
    """Says how far a step came that was cut short. ``done``: None where nobody can tell."""

    done: bool | None
    result: Result = {}
    said: str = ""


class Kind(Generic[P]):
    """Is one kind of step; a subclass's docstring is its documentation.

    ``results``: field → what it holds. ``undoes``: ``undo`` puts back what ``run`` did. ``acts``: it changes something
    outside this program. ``asks``: it puts a question to the operator. In ``parameters`` a ``float`` is a duration in
    seconds, written ``90s`` or ``5m``.
    """

    parameters: type[P]
    results: ClassVar[Mapping[str, str]] = {}
    undoes: ClassVar[bool] = False
    acts: ClassVar[bool] = True
    asks: ClassVar[bool] = False

    def preview(self, given: P, context: Context) -> str:
        """Says what it would do, its preconditions looked at; changes nothing."""
        raise NotImplementedError

    def run(self, given: P, context: Context) -> Result:
        """Does it. Raises ``FailoverError`` when it does not come to what it was to reach."""
        raise NotImplementedError

    def settle(self, given: P, context: Context) -> Settled:  # noqa: ARG002 - for those that can look
        """Says how far it came when the run was cut short while it acted; by itself only what changes nothing can."""
        return Settled(None) if self.acts else Settled(done=False)

    def undo(self, given: P, context: Context) -> str:
        """Puts back what it did and says what; it may have done nothing, or a part, and this may be a second try."""
        raise NotImplementedError

    def by_hand(self, given: Mapping[str, Any]) -> str:  # noqa: ARG002 - for those that have a command
        """Gives the command that does the same by hand, "" where there is none; references stay as they are."""
        return ""


def kind(name: str) -> Kind[Any]:
    """Gives the kind of that name. Raises ``KeyError``."""
    if name not in KINDS:
        raise KeyError(name)
    module = importlib.import_module(f"failover.runbook.steps.{name.replace('-', '_')}")
    return cast("Kind[Any]", module.KIND)
