"""The target looked at again as a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from failover.errors import StepFailed
from failover.runbook.kinds import Context, Kind, Result


class VerifyStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``execution``: its id. ``watch``: for so long it is watched which groups come back; 0s: one look.

    ``all_back``: fail unless every group came back within ``watch``.
    """

    execution: str
    watch: float = 0.0
    all_back: bool = False


class VerificationFailed(StepFailed):
    """Says that the target does not hold what was written."""

    exit_code = 6


class VerifyKind(Kind[VerifyStep]):
    """Looks whether the target still holds what was written, and which groups came back, as ``failover verify``."""

    parameters = VerifyStep
    results = {  # noqa: RUF012 - a class's constant
        "held": "groups at or beyond what was written",
        "back": "groups that came back",
        "groups": "groups looked at",
    }
    acts = False

    def preview(self, given: VerifyStep, context: Context) -> str:  # noqa: ARG002 - the same whoever runs it
        return f"would look at execution {given.execution} on the target, for {given.watch:g} s"

    def run(self, given: VerifyStep, context: Context) -> Result:
        from failover.execution.runs import load_run
        from failover.execution.verify import Verifier, back
        from failover.model.execution import Now
        from failover.state.runs import find_run

        execution = load_run(find_run(context.reach.state, given.execution))
        verifier = Verifier(
            execution,
            context.reach.target,
            clock=context.now,
            sleep=context.pause,
            progress=_Changes(context),
            stop=lambda: "",
        )
        verified = verifier.run(min(given.watch, context.remaining())).verified
        assert verified is not None
        good = [group for group in verified.groups if group.verdict in (Now.HELD, Now.ADVANCED)]
        bad = [group for group in verified.groups if group not in good]
        if bad:
            said = "; ".join(f"{group.group}: {group.text or group.verdict}" for group in bad[:5])
            raise VerificationFailed(
                f"{len(bad)} of {len(verified.groups)} groups do not stand as written: {said}",
                hint=f"failover verify {given.execution}",
            )
        away = [group.group for group in good if not back(group)]
        if given.all_back and away:
            raise StepFailed(
                f"{len(away)} groups did not come back: {', '.join(away[:5])}", hint="are their consumers started?"
            )
        return {"held": len(good), "back": len(good) - len(away), "groups": len(verified.groups)}

    def by_hand(self, given: Mapping[str, Any]) -> str:
        watch = given.get("watch")
        return f"failover verify {given.get('execution', 'RUN')}" + (f" --for {watch}" if watch else "")


class _Changes:
    """Tells how many groups are back when that has changed."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._told = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        told = f"{what}: {done} of {total}"
        if told != self._told:
            self._told = told
            self._context.say(told)


KIND = VerifyKind()
