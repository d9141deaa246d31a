"""A word to a chat or a pager."""

from __future__ import annotations

from typing import Any

import msgspec

from failover.errors import StepFailed
from failover.runbook.kinds import Context, Kind, Result
from failover.runbook.steps.http import Http, send


class Notify(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``url``: the webhook. ``text``: what is said. ``headers``: for its credentials."""

    url: str
    text: str
    headers: dict[str, str] = {}


class NotifyKind(Kind[Notify]):
    """Posts ``{"text", "run", "playbook", "step", "operator", "source", "target"}`` as JSON to a webhook."""

    parameters = Notify
    results = {"status": "the answer's status"}  # noqa: RUF012 - a class's constant

    def preview(self, given: Notify, context: Context) -> str:  # noqa: ARG002 - the same whoever runs it
        return f"would tell the webhook: {given.text}"

    def run(self, given: Notify, context: Context) -> Result:
        said: dict[str, Any] = {
            "text": given.text,
            "run": context.run_id,
            "playbook": context.playbook,
            "step": context.step_id,
            "operator": context.operators[-1],
            "source": context.source,
            "target": context.target,
        }
        status, body = send(Http(given.url, "POST", given.headers, said), context.remaining())
        if status >= 300:
            raise StepFailed(f"the webhook answered with {status}: {body[:200]}")
        return {"status": status}


KIND = NotifyKind()
