"""The second pair of eyes."""

from __future__ import annotations

import msgspec

from failover.errors import ApprovalNeeded, Declined
from failover.runbook.kinds import Context, Kind, Result


class Approve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``question``: what is agreed to."""

    question: str


class ApproveKind(Kind[Approve]):
    """Has somebody else than the starter agree: the run ends here and goes on when that person resumes it.

    With ``--self-approve`` the starter is enough, and the run says so.
    """

    parameters = Approve
    results = {"by": "who agreed"}  # noqa: RUF012 - a class's constant
    acts = False
    asks = True

    def preview(self, given: Approve, context: Context) -> str:
        who = "the starter" if context.self_approve else "somebody else than the starter"
        return f"would have {who} agree to: {given.question}"

    def run(self, given: Approve, context: Context) -> Result:
        starter, now = context.operators[0], context.operators[-1]
        if now == starter and not context.self_approve:
            raise ApprovalNeeded(
                f"somebody else than {starter} has to agree: {given.question}",
                hint=f"as another user: failover run --resume {context.run_id}; alone: add --self-approve",
            )
        if not context.ask(given.question):
            raise Declined(f"{now} did not agree: {given.question}")
        return {"by": now}


KIND = ApproveKind()
