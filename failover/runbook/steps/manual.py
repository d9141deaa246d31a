"""Something done by hand."""

from __future__ import annotations

import msgspec

from failover.errors import Declined
from failover.runbook.kinds import Context, Kind, Result


class Manual(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``instructions``: what to do. ``typed``: what has to be typed afterwards, "" for a plain yes."""

    instructions: str
    typed: str = ""


class ManualKind(Kind[Manual]):
    """Shows instructions and waits until somebody says that it is done; with ``--yes`` it is taken for done."""

    parameters = Manual
    results = {"by": "who said that it is done"}  # noqa: RUF012 - a class's constant
    acts = False
    asks = True

    def preview(self, given: Manual, context: Context) -> str:  # noqa: ARG002 - the same whoever runs it
        return f"would wait for somebody to say that this is done: {given.instructions}"

    def run(self, given: Manual, context: Context) -> Result:
        return done_by_hand(given.instructions, given.typed, context)


def done_by_hand(instructions: str, typed: str, context: Context) -> Result:
    """Shows instructions and gives who says that it is done. Raises ``Declined``."""
    context.say(instructions)
    if not context.ask("Is this done?", typed):
        raise Declined("declined: not done", hint=f"once it is: failover run --resume {context.run_id}")
    return {"by": "--yes" if context.assumed else context.operators[-1]}


KIND = ManualKind()
