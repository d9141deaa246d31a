"""What Kafka Connect's REST interface answers, as values. Unknown fields are ignored, missing ones have a default."""

from __future__ import annotations

from typing import Any

import msgspec

RUNNING, PAUSED, STOPPED, FAILED = "RUNNING", "PAUSED", "STOPPED", "FAILED"
RESTARTING = "RESTARTING"


class WorkerInfo(msgspec.Struct, frozen=True):
    """Is ``GET /``: Kafka's version there, and the cluster the worker writes to."""

    version: str = ""
    commit: str = ""
    kafka_cluster_id: str = ""


class Worker(msgspec.Struct, frozen=True):
    """Is the state of a connector itself, apart from its tasks; ``trace`` is a Java stack trace, "" unless failed."""

    state: str
    worker_id: str = ""
    trace: str = ""

    @property
    def reason(self) -> str:
        """Gives the trace's first line."""
        return first_line(self.trace)


class Task(msgspec.Struct, frozen=True):
    """Is the state of one task."""

    id: int
    state: str
    worker_id: str = ""
    trace: str = ""

    @property
    def reason(self) -> str:
        """Gives the trace's first line."""
        return first_line(self.trace)


class Status(msgspec.Struct, frozen=True):
    """Is ``GET /connectors/NAME/status``."""

    name: str
    connector: Worker
    tasks: tuple[Task, ...] = ()
    type: str = ""

    @property
    def failed_tasks(self) -> tuple[Task, ...]:
        """Gives the tasks that failed."""
        return tuple(task for task in self.tasks if task.state == FAILED)

    @property
    def healthy(self) -> bool:
        """Says whether the connector and all its tasks run, and it has any."""
        return bool(self.tasks) and {self.connector.state, *(task.state for task in self.tasks)} == {RUNNING}

    @property
    def failed(self) -> bool:
        """Says whether the connector or a task failed."""
        return self.connector.state == FAILED or bool(self.failed_tasks)


class Info(msgspec.Struct, frozen=True):
    """Is ``GET /connectors/NAME``; ``config`` may hold secrets in the clear: it is never shown as it is."""

    name: str
    config: dict[str, str] = {}
    type: str = ""

    def __repr__(self) -> str:
        return f"Info({self.name!r})"


class Expanded(msgspec.Struct, frozen=True):
    """Is one entry of ``GET /connectors?expand=info&expand=status``; either part is missing while it is made."""

    info: Info | None = None
    status: Status | None = None


class Offset(msgspec.Struct, frozen=True):
    """Is one stored position: Connect's own ``partition`` and ``offset``, as MM2's connectors fill them."""

    partition: dict[str, Any]
    offset: dict[str, Any] | None = None


class Offsets(msgspec.Struct, frozen=True):
    """Is ``GET /connectors/NAME/offsets``, and the body of ``PATCH``."""

    offsets: tuple[Offset, ...] = ()


class ConfigValue(msgspec.Struct, frozen=True):
    """Is what validation says of one setting."""

    name: str
    errors: tuple[str, ...] = ()


class Checked(msgspec.Struct, frozen=True):
    """Is one row of a validation."""

    value: ConfigValue


class Validation(msgspec.Struct, frozen=True):
    """Is ``PUT /connector-plugins/CLASS/config/validate``."""

    name: str = ""
    error_count: int = 0
    configs: tuple[Checked, ...] = ()

    def errors(self) -> dict[str, tuple[str, ...]]:
        """Gives the errors of each setting that has any."""
        return {row.value.name: row.value.errors for row in self.configs if row.value.errors}


class Plugin(msgspec.Struct, frozen=True):
    """Is one row of ``GET /connector-plugins``."""

    class_: str = msgspec.field(name="class")
    type: str = ""
    version: str = ""


class Refusal(msgspec.Struct, frozen=True):
    """Is the body of an error."""

    error_code: int = 0
    message: str = ""


def first_line(trace: str) -> str:
    """Gives the first line of a Java stack trace that says something."""
    return next((line.strip() for line in trace.splitlines() if line.strip()), "")
