"""The page for those who were not there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from failover.errors import StepFailed
from failover.runbook.kinds import Context, Kind, Result, Settled


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``execution``: its id. ``file``: where the page is written."""

    execution: str
    file: str


class ReportKind(Kind[Report]):
    """Writes the HTML page of an execution and its plan, as ``failover report`` does."""

    parameters = Report
    results = {"file": "where it was written"}  # noqa: RUF012 - a class's constant

    def preview(self, given: Report, context: Context) -> str:  # noqa: ARG002 - the same whoever runs it
        return f"would write the report of {given.execution} to {given.file}"

    def run(self, given: Report, context: Context) -> Result:
        from failover.execution.runs import load_run
        from failover.planning.plan_file import decode_plan
        from failover.report.html import execution_html
        from failover.state.plans import read_plan
        from failover.state.runs import PLAN, find_run

        folder = find_run(context.reach.state, given.execution)
        plan = folder / PLAN
        page = execution_html(load_run(folder), decode_plan(read_plan(plan)) if plan.exists() else None)
        path = Path(given.file).expanduser()
        try:
            path.write_text(page, "utf-8")
        except OSError as error:
            raise StepFailed(f"cannot write {path}: {error.strerror}") from error
        return {"file": str(path.absolute())}

    def settle(self, given: Report, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # written anew

    def by_hand(self, given: Mapping[str, Any]) -> str:
        return f"failover report {given.get('execution', 'RUN')} -o {given.get('file', 'FILE')}"


KIND = ReportKind()
