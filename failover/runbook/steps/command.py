"""A program of the user's own."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from failover.errors import StepFailed, StepTimeout
from failover.runbook.kinds import Context, Kind, Result

_KEPT = 16_384
"""Characters of the output that are kept, from its end."""


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``run``: the program and its arguments. ``env``: beside those named below. ``folder``: where it runs.

    ``succeeds``: the exit codes that are success.
    """

    run: list[str]
    env: dict[str, str] = {}
    folder: str = ""
    succeeds: tuple[int, ...] = (0,)


class CommandKind(Kind[Command]):
    """Runs a program, never through a shell; not run in a dry run. A command's undo is given by the playbook.

    It finds ``FAILOVER_RUN``, ``FAILOVER_PLAYBOOK``, ``FAILOVER_STEP``, ``FAILOVER_OPERATOR``, ``FAILOVER_SOURCE`` and
    ``FAILOVER_TARGET`` (the clusters' aliases) in its environment. Past the step's timeout it is ended.
    """

    parameters = Command
    results = {  # noqa: RUF012 - a class's constant
        "exit_code": "its exit code",
        "output": f"the last {_KEPT:,} characters it wrote to standard output, without the line's end",
    }

    def preview(self, given: Command, context: Context) -> str:  # noqa: ARG002 - the same whoever runs it
        return f"would run: {shlex.join(given.run)}"

    def run(self, given: Command, context: Context) -> Result:
        return run_program(given.run, context, env=given.env, folder=given.folder, succeeds=given.succeeds)

    def by_hand(self, given: Mapping[str, Any]) -> str:
        run = given.get("run")
        return shlex.join(map(str, run)) if isinstance(run, list) else str(run or "")


def run_program(
    run: Sequence[str],
    context: Context,
    *,
    env: Mapping[str, str],
    folder: str = "",
    succeeds: Collection[int] = (0,),
) -> Result:
    """Runs a program within the step's time and gives its exit code and output. Raises ``StepFailed``."""
    if not run:
        raise StepFailed("run names no program")
    own = {
        "FAILOVER_RUN": context.run_id,
        "FAILOVER_PLAYBOOK": context.playbook,
        "FAILOVER_STEP": context.step_id,
        "FAILOVER_OPERATOR": context.operators[-1],
        "FAILOVER_SOURCE": context.source,
        "FAILOVER_TARGET": context.target,
    }
    try:
        done = subprocess.run(
            list(run),
            check=False,
            capture_output=True,
            cwd=folder or None,
            env={**os.environ, **own, **env},
            errors="replace",
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=context.remaining(),
        )
    except subprocess.TimeoutExpired as error:
        raise StepTimeout(
            f"{run[0]} did not end within its time and was ended", hint="raise the step's timeout"
        ) from error
    except OSError as error:
        raise StepFailed(
            f"{run[0]} cannot be run: {error.strerror}", hint="is it installed, and in this shell's PATH?"
        ) from error
    for line in done.stderr.splitlines():
        context.say(line)
    if done.returncode not in succeeds:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise StepFailed(f"{run[0]} ended with {done.returncode}" + "".join(f": {line}" for line in said))
    return {"exit_code": done.returncode, "output": done.stdout[-_KEPT:].rstrip("\n")}


KIND = CommandKind()
