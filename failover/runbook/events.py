"""What a run's journal holds: one event a line, each durable before anything relies on it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from failover.runbook.playbook import Value


class Started(msgspec.Struct, frozen=True, tag_field="event", tag="started", kw_only=True):
    """Opens a run. ``digest``: of the playbook's text, so that a run is resumed with the same one.

    ``begins_at``: the step named by ``--from``, "" for the first.
    """

    at: datetime
    run_id: str
    playbook: str
    digest: str
    variables: Mapping[str, Value]
    operator: str
    host: str
    tool_version: str
    source: str = ""
    target: str = ""
    begins_at: str = ""


class Resumed(msgspec.Struct, frozen=True, tag_field="event", tag="resumed"):
    """Says that somebody goes on with a run; what failed or was stopped before may be begun again."""

    at: datetime
    operator: str
    host: str


class Confirmed(msgspec.Struct, frozen=True, tag_field="event", tag="confirmed"):
    """Says that the question before a step was answered with yes."""

    at: datetime
    step: str
    operator: str


class Declined(msgspec.Struct, frozen=True, tag_field="event", tag="declined"):
    """Says that a question before a step, or the step's own, was answered with no, or waits for somebody else.

    Nothing of the step is done; the run ends there and goes on when it is resumed.
    """

    at: datetime
    step: str
    message: str = ""
    hint: str = ""


class Begun(msgspec.Struct, frozen=True, tag_field="event", tag="begun"):
    """Says that a step is about to act. Without a later event of the step nobody knows how far it came."""

    at: datetime
    step: str
    attempt: int


class Noted(msgspec.Struct, frozen=True, tag_field="event", tag="noted"):
    """Is what a step wrote down before it acted, for whoever has to put it back."""

    at: datetime
    step: str
    notes: Mapping[str, Value]


class Succeeded(msgspec.Struct, frozen=True, tag_field="event", tag="succeeded"):
    """Says that a step is done, and what came of it."""

    at: datetime
    step: str
    result: Mapping[str, Value]


class Failed(msgspec.Struct, frozen=True, tag_field="event", tag="failed"):
    """Says that a step failed; ``exit_code`` and ``code`` as a command of its own would have."""

    at: datetime
    step: str
    exit_code: int
    code: str
    message: str
    hint: str = ""


class Skipped(msgspec.Struct, frozen=True, tag_field="event", tag="skipped"):
    """Says that a step is passed over, and why."""

    at: datetime
    step: str
    why: str


class NotDone(msgspec.Struct, frozen=True, tag_field="event", tag="not-done"):
    """Says that a look found nothing of a step that was cut short: it may be begun again."""

    at: datetime
    step: str


class UndoBegun(msgspec.Struct, frozen=True, tag_field="event", tag="undo-begun"):
    """Says that what a step did is about to be put back; without a later event it is done once more."""

    at: datetime
    step: str


class Undone(msgspec.Struct, frozen=True, tag_field="event", tag="undone"):
    """Says that what a step did is put back, and how."""

    at: datetime
    step: str
    text: str


class UndoFailed(msgspec.Struct, frozen=True, tag_field="event", tag="undo-failed"):
    """Says that what a step did could not be put back: somebody has to, by hand."""

    at: datetime
    step: str
    message: str
    hint: str = ""


class TurnedBack(msgspec.Struct, frozen=True, tag_field="event", tag="turned-back"):
    """Says that somebody wants what was done put back, without a failure."""

    at: datetime
    operator: str


class Stopped(msgspec.Struct, frozen=True, tag_field="event", tag="stopped"):
    """Says that the run was interrupted between two steps."""

    at: datetime
    by: str


class Finished(msgspec.Struct, frozen=True, tag_field="event", tag="finished"):
    """Closes a run; a resumed one goes on after it."""

    at: datetime
    outcome: str
    exit_code: int


Event = (
    Started
    | Resumed
    | Confirmed
    | Declined
    | Begun
    | Noted
    | Succeeded
    | Failed
    | Skipped
    | NotDone
    | UndoBegun
    | Undone
    | UndoFailed
    | TurnedBack
    | Stopped
    | Finished
)

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """Writes one line of a run's journal."""
    return _encoder.encode(event) + b"\n"


def decode_event(line: bytes) -> Event:
    """Reads one line of a run's journal. Raises ``msgspec.DecodeError``."""
    return _decoder.decode(line)
