"""ACLs that a step is about to create, noted first so that the way back deletes exactly those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from failover.errors import StepFailed
from failover.model.names import Fault
from failover.model.rights import AclBinding
from failover.runbook.kinds import Context
from failover.runbook.steps.noted import note_more, noted


def note_acls(context: Context, bindings: Iterable[AclBinding], key: str = "created") -> None:
    """Keeps them in the run's journal, durable on return, beside those of an earlier try of the same step."""
    note_more(context, key, [msgspec.json.encode(binding).decode() for binding in bindings])


def noted_acls(context: Context, key: str = "created") -> list[AclBinding]:
    """Gives what was noted, also before a crash."""
    return [msgspec.json.decode(each, type=AclBinding) for each in noted(context, key)]


def require_done(answers: Mapping[AclBinding, Fault | None], done: str, *, hint: str) -> None:
    """Raises ``StepFailed`` where not all ACLs could be ``done`` (created, deleted), with the first one's reason."""
    faults = [(binding, fault) for binding, fault in answers.items() if fault is not None]
    if faults:
        binding, fault = faults[0]
        raise StepFailed(
            f"{len(faults)} of {len(answers)} ACLs could not be {done}, the first ({told(binding)}): {fault}",
            hint=hint,
        )


def told(acl: AclBinding) -> str:
    """Says an ACL in a line."""
    return f"{acl.permission} {acl.operation} on {acl.resource} {acl.name} for {acl.principal}"
