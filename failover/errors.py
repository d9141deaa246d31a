"""The whole exception tree: each error carries its exit code, a stable code and the next step.

Exit codes follow the table in ``docs/guarantees.md``. An error's text names what it concerns
(group, topic, partition, cluster alias, member) and its hint says what to do next; both go to
the terminal as ``error: …`` and ``hint: …`` or, with ``--format json``, as one JSON object.
Policy lives on the class: ``retriable`` says whether the same call may succeed shortly.
"""

from __future__ import annotations

from typing import ClassVar


class FailoverError(Exception):
    """Is the root of every error this package raises on purpose.

    ``code`` is a stable slug that ``failover explain`` knows, ``exit_code`` the process's exit
    status, ``hint`` the next step for the operator (one line, no trailing full stop needed).
    """

    code: ClassVar[str] = "unexpected"
    exit_code: int = 1
    retriable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


# -- 2: usage and configuration; nothing was contacted or changed ---------------------------


class UsageError(FailoverError):
    """Says that the command line cannot be carried out as typed."""

    code = "usage"
    exit_code = 2


class ConfigError(UsageError):
    """Says that a configuration cannot be read or used; names file, line and key if known."""

    code = "config-invalid"


class ConfigNotFound(ConfigError):
    """Says that no configuration was given or found."""

    code = "config-not-found"


class UnknownAlias(ConfigError):
    """Says that a cluster alias is not in the configuration."""

    code = "unknown-alias"


class FlowAmbiguous(UsageError):
    """Says that no flow, or more than one flow, fits; names them."""

    code = "flow-ambiguous"


class PlanInvalid(UsageError):
    """Says that a plan file is missing, malformed, of another version, or was edited."""

    code = "plan-invalid"


class PlanNotFound(UsageError):
    """Says that no saved plan fits."""

    code = "plan-not-found"


class RunNotFound(UsageError):
    """Says that no recorded execution has this id."""

    code = "run-not-found"


class GroupNotFound(UsageError):
    """Says that a group named by hand exists nowhere; offers near names."""

    code = "group-unknown"


class PlaybookInvalid(UsageError):
    """Says that a playbook is missing or has mistakes, each with its line, or that its variables do not fit."""

    code = "playbook-invalid"


class NoTerminal(UsageError):
    """Says that a question would have to be asked but there is no terminal and no ``--yes``."""

    code = "no-terminal"


class LabError(FailoverError):
    """Says that the lab cannot be started, reached or ended."""

    code = "lab"


class LabUsageError(LabError, UsageError):
    """Says that a lab command cannot be carried out as typed or there is no such lab."""

    code = "lab-usage"


class StateError(FailoverError):
    """Says that the state folder, a plan or a journal in it cannot be read or written."""

    code = "state-folder"


class StateUnusable(StateError, UsageError):
    """Says, before anything is contacted, that nothing can be kept where plans and journals are to be kept."""


# -- 3: refused, nothing written ---------------------------------------------------------------


class Refused(FailoverError):
    """Says that a check forbids the action; nothing was written."""

    code = "refused"
    exit_code = 3


class ApprovalNeeded(Refused):
    """Says that a run waits for somebody other than who started it."""

    code = "approval-needed"


class Declined(Refused):
    """Says that the operator answered no."""

    code = "declined"


class Locked(Refused):
    """Says that another process alive is executing, rolling back or evicting on the same flow; names it."""

    code = "locked"


class MirrorMakerRuns(Refused):
    """Says that MirrorMaker 2 itself runs the flow that was to be replicated; names its workers."""

    code = "mirror-maker-runs"


class GroupTaken(Refused):
    """Says that a consumer group by which workers were to share a flow is used for something else; names by whom."""

    code = "group-taken"


# -- 5: the plan -------------------------------------------------------------------------------


class StalePlan(FailoverError):
    """Says that what a plan relies on changed, that it expired, or that it was used already."""

    code = "plan-stale"
    exit_code = 5


# -- 8: a cluster that is needed cannot be used --------------------------------------------------


class ClusterError(FailoverError):
    """Is the root of what goes wrong with one whole cluster; ``alias`` names it."""

    code = "cluster-unavailable"
    exit_code = 8

    def __init__(self, message: str, *, alias: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.alias = alias


class ClusterUnreachable(ClusterError):
    """Says that no broker of a cluster answered within the longest accepted silence."""

    code = "cluster-unreachable"
    retriable = True


class CredentialsRefused(ClusterError):
    """Says that a cluster answered and refused the credentials or the TLS handshake."""

    code = "credentials-refused"


class TokenUnavailable(FailoverError):
    """Says that no token for SASL/OAUTHBEARER could be had; ``passing``: the same request may succeed shortly.

    Who connects with it turns it into ``CredentialsRefused`` of the cluster.
    """

    code = "token-unavailable"
    exit_code = 8

    def __init__(self, message: str, *, hint: str = "", passing: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.passing = passing


class NotAuthorized(ClusterError):
    """Says that the cluster answered but a right is missing that the command cannot do without."""

    code = "not-authorized"


class BrokerError(FailoverError):
    """Is an error a broker answered that no rule of ours classifies.

    ``number`` is Kafka's error code, ``name`` Kafka's own name of it (``NOT_COORDINATOR``).
    """

    code = "broker-error"

    def __init__(self, message: str, *, number: int, name: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.number = number
        self.name = name


# -- Kafka Connect ---------------------------------------------------------------------------------


class ConnectorNotFound(UsageError):
    """Says that a Connect cluster has no connector of this name, or none of this flow; names those it has."""

    code = "connector-not-found"


class ConnectRefused(Refused):
    """Says that Kafka Connect does not accept a request: a configuration it finds wrong, a state that forbids it."""

    code = "connect-refused"


class OperatorOwns(Refused):
    """Says that a Kubernetes operator would undo what is done by REST; the hint says how to tell the operator."""

    code = "operator-owns"


class ConnectUnreachable(ClusterUnreachable):
    """Says that no worker of a Connect cluster answered, or that it stayed busy; ``alias`` holds its address."""

    code = "connect-unreachable"


class ConnectAnswer(FailoverError):
    """Is an answer of Kafka Connect that no rule of ours classifies; ``status`` is HTTP's."""

    code = "connect-error"

    def __init__(self, message: str, *, status: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


# -- 130 / 143 -----------------------------------------------------------------------------------


class StepFailed(FailoverError):
    """Says that a step of a playbook did not come to what it was to reach."""

    code = "step-failed"


class StepTimeout(StepFailed):
    """Says that a step of a playbook used up its time; names what was seen last."""

    code = "step-timeout"


class StepUnknown(StepFailed):
    """Says that nobody can tell how far a step came that was cut short."""

    code = "step-unknown"
    exit_code = 7


class Interrupted(FailoverError):
    """Says that a signal ended the command; the journal says where."""

    code = "interrupted"
    exit_code = 130

    def __init__(self, message: str, *, signal_number: int = 2, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.signal_number = signal_number
