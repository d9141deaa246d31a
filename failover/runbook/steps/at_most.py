"""A bound on what an earlier step measured."""

from __future__ import annotations

import msgspec

from failover.errors import StepFailed
from failover.runbook.kinds import Context, Kind, Result


class AtMost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``value``: what was measured, None where nobody can tell. ``limit``: a negative one bounds nothing.

    ``what``: how it is called when it is too much.
    """

    value: int | float | None
    limit: int | float
    what: str = "the value"


class AtMostKind(Kind[AtMost]):
    """Fails where what an earlier step gave is more than is allowed, or unknown."""

    parameters = AtMost
    results = {"value": "what was measured"}  # noqa: RUF012 - a class's constant
    acts = False

    def preview(self, given: AtMost, context: Context) -> str:
        self.run(given, context)
        return f"would allow at most {given.limit:g}: {given.what}"

    def run(self, given: AtMost, context: Context) -> Result:  # noqa: ARG002 - it looks at nothing else
        if given.limit >= 0 and (given.value is None or given.value > given.limit):
            found = "unknown" if given.value is None else f"{given.value:g}"
            raise StepFailed(
                f"{given.what}: {found}; at most {given.limit:g} is allowed",
                hint="failover playbook show NAME tells how it was in earlier runs",
            )
        return {"value": given.value}


KIND = AtMostKind()
