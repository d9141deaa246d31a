"""Two schema registries compared: does a record's schema id mean the same in both?"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import msgspec

from failover.errors import StepFailed
from failover.runbook.kinds import Context, Kind, Result
from failover.runbook.steps.http import Http, send


class SchemaIds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``source_url``, ``target_url``: the registries. ``headers``: for credentials, sent to both.

    ``subjects``: only these; none: all of the source's.
    """

    source_url: str
    target_url: str
    headers: dict[str, str] = {}
    subjects: list[str] = []


class SchemaIdsKind(Kind[SchemaIds]):
    """Compares the newest schema id of every subject in two registries and fails where one is missing or differs.

    Records carry ids alone: with other ids behind them consumers on the standby would fail, or read wrongly.
    """

    parameters = SchemaIds
    results = {"subjects": "subjects that are the same"}  # noqa: RUF012 - a class's constant
    acts = False

    def preview(self, given: SchemaIds, context: Context) -> str:
        found, wrong = self._compared(given, context)
        return f"{found} subjects are the same" if not wrong else f"would fail: {wrong[0]}"

    def run(self, given: SchemaIds, context: Context) -> Result:
        same, wrong = self._compared(given, context)
        if wrong:
            raise StepFailed(
                f"{len(wrong)} subjects differ: {'; '.join(wrong[:5])}",
                hint="copy the schemas with their ids (mode IMPORT) before records are read there",
            )
        return {"subjects": same}

    def _compared(self, given: SchemaIds, context: Context) -> tuple[int, list[str]]:
        subjects = given.subjects or self._ask(given, given.source_url, "subjects", context)
        same, wrong = 0, []
        for subject in subjects:
            path = f"subjects/{quote(subject, safe='')}/versions/latest"
            ours = self._ask(given, given.source_url, path, context)
            theirs = self._ask(given, given.target_url, path, context)
            if ours is None or theirs is None:
                wrong.append(f"{subject} is missing in {given.source_url if ours is None else given.target_url}")
            elif ours.get("id") != theirs.get("id"):
                wrong.append(f"{subject} has id {ours.get('id')} and {theirs.get('id')}")
            else:
                same += 1
        return same, wrong

    def _ask(self, given: SchemaIds, url: str, path: str, context: Context) -> Any:
        """Gives the answer, None for 404."""
        asked = Http(f"{url.rstrip('/')}/{path}", "GET", given.headers)
        status, body = send(asked, context.remaining(), kept=1 << 24)
        if status == 404:
            return None
        if status != 200:
            raise StepFailed(f"{url} answered {status} to {path}: {body[:200]}")
        try:
            return json.loads(body)
        except ValueError as error:
            raise StepFailed(f"{url} gives no JSON for {path}", hint="is it a schema registry?") from error


KIND = SchemaIdsKind()
