"""A run as one value, for files, screens and scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from failover.errors import RunNotFound
from failover.runbook import events as e
from failover.runbook.engine import fold
from failover.runbook.outage import Outage, outages
from failover.runbook.parse import parse
from failover.runbook.playbook import Playbook, Value
from failover.state.folder import StateFolder
from failover.state.lines import LineFile, read_lines
from failover.state.playbook_runs import JOURNAL, PLAYBOOK, PLAYBOOK_RUN, find_playbook_run
from failover.state.runs import is_file

KIND = "failover.playbook-run"


class StepRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Is what became of one step. ``status``: waiting, running (cut short: nobody knows how far it came), done, failed,
    skipped, undoing, undone or stuck (could not be put back). ``seconds``: from when it was last begun to its end.
    """

    id: str
    title: str
    uses: str
    status: str
    attempts: int = 0
    begun: datetime | None = None
    seconds: float | None = None
    result: Mapping[str, Value] = {}
    code: str = ""
    error: str = ""
    hint: str = ""
    why: str = ""
    undo: str = ""
    confirmed_by: str = ""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Is a run of a playbook.

    ``outcome``: done, partly, failed, declined, undone (all put back), stuck (some could not be put back), stopped,
    or running (or cut short). ``final``: the step after which there was no way back. ``resumed``: how often somebody
    went on with it. ``outages``: how long applications stood still.
    """

    kind: str = KIND
    version: int = 1
    id: str
    playbook: str
    digest: str
    started: datetime
    finished: datetime | None
    outcome: str
    exit_code: int | None
    operators: list[str]
    host: str
    tool_version: str
    source: str
    target: str
    variables: Mapping[str, Value]
    steps: list[StepRecord]
    final: str = ""
    resumed: int = 0
    outages: list[Outage] = []


def record_of(playbook: Playbook, events: Iterable[e.Event]) -> RunRecord:
    """Derives the record of a run from its journal."""
    events = list(events)
    state = fold(playbook, events)
    started = state.started
    assert started is not None
    stopped = bool(events) and isinstance(events[-1], e.Stopped)
    closed = state.finished
    begun, ended = _times(events)
    agreed = {event.step: event.operator for event in events if isinstance(event, e.Confirmed)}
    steps = []
    for step in playbook.steps:
        known = state.steps[step.id]
        first, last = begun.get(step.id), ended.get(step.id)
        failure = known.failure
        steps.append(
            StepRecord(
                id=step.id,
                title=step.title,
                uses=step.action.uses,
                status=known.status.value,
                attempts=known.attempts,
                begun=first,
                seconds=(last - first).total_seconds() if first is not None and last is not None else None,
                result=known.result,
                code=failure.code if failure is not None else "",
                error=failure.message if failure is not None else "",
                hint=failure.hint if failure is not None else known.hint,
                why=known.why,
                undo=known.undo_text,
                confirmed_by=agreed.get(step.id, ""),
            )
        )
    return RunRecord(
        id=started.run_id,
        playbook=playbook.name,
        digest=started.digest,
        started=started.at,
        finished=closed.at if closed is not None else None,
        outcome=closed.outcome if closed is not None else "stopped" if stopped else "running",
        exit_code=closed.exit_code if closed is not None else None,
        operators=list(dict.fromkeys(state.operators)),
        host=started.host,
        tool_version=started.tool_version,
        source=started.source,
        target=started.target,
        variables=started.variables,
        steps=steps,
        final=state.final_begun,
        resumed=sum(isinstance(event, e.Resumed) for event in events),
        outages=outages(playbook, events),
    )


def _times(events: Iterable[e.Event]) -> tuple[dict[str, datetime], dict[str, datetime]]:
    """Gives when each step was last begun and when it last ended."""
    begun: dict[str, datetime] = {}
    ended: dict[str, datetime] = {}
    for event in events:
        if isinstance(event, e.Begun):
            begun[event.step] = event.at
            ended.pop(event.step, None)
        elif isinstance(event, (e.Succeeded, e.Failed)):
            ended[event.step] = event.at
    return begun, ended


def find_record(state: StateFolder, reference: str) -> RunRecord | None:
    """Finds a run by its id or by the file of its JSON; None where the reference is of another sort.

    Raises ``RunNotFound``, ``StateError`` and ``PlaybookInvalid``.
    """
    if is_file(reference):
        try:
            data = Path(reference).expanduser().read_bytes()
            known = msgspec.json.decode(data, type=_Head).kind == KIND
            return msgspec.json.decode(data, type=RunRecord) if known else None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
    if not reference.startswith(PLAYBOOK_RUN):
        return None
    return record_of(*read_run(find_playbook_run(state, reference)))


class _Head(msgspec.Struct):
    kind: str = ""


def read_run(folder: Path) -> tuple[Playbook, list[e.Event]]:
    """Reads a run's playbook and journal. Raises ``StateError``, ``PlaybookInvalid`` and ``RunNotFound``."""
    journal, text = folder / JOURNAL, folder / PLAYBOOK
    events = read_lines(journal, e.decode_event) if journal.exists() else []
    if not events:
        raise RunNotFound(
            f"run {folder.name} never began: its process ended before it noted anything",
            hint=f"start it anew; {folder} can be deleted",
        )
    return parse(text.read_text("utf-8"), str(text)), events


class RunLog:
    """Is a run's journal, open for writing: each event is durable when ``note`` returns."""

    def __init__(self, folder: Path) -> None:
        self._file = LineFile(folder / JOURNAL)

    def note(self, event: e.Event) -> None:
        self._file.add(e.encode_event(event))
        self._file.sync()

    def close(self) -> None:
        self._file.close()
