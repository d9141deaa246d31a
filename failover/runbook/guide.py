"""What people who follow a runbook need to know of each kind of step: the command by hand, what can go wrong, back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from failover.runbook.kinds import kind
from failover.runbook.playbook import Action, Step

_REFERENCE = re.compile(r"'?\{\{\s*(?:steps\.[\w-]+\.)?([\w-]+)\s*\}\}'?")
_AT_SOURCE = "--bootstrap-server SOURCE"
_AT_TARGET = "--bootstrap-server TARGET"
_FENCE_ACL = "--topic TOPIC --deny-principal 'User:*' --operation Write"


class Guide(NamedTuple):
    """Is what is known of a kind: ``by_hand`` where the kind's parameters make no command, ``back`` what puts it back.

    In commands capitals stand for what has to be put in. ``who``: who does it.
    """

    wrong: str
    by_hand: str = ""
    back: str = ""
    who: str = "failover"


GUIDES: Mapping[str, Guide] = {
    "acls": Guide(
        "this user may lack ALTER on the standby; SCRAM users are missing, whose passwords nobody can copy",
        back=f"kafka-acls.sh {_AT_TARGET} --remove, for each ACL that failover show RUN lists",
    ),
    "approve": Guide(
        "nobody else is there: the starter adds --self-approve, and the run says so",
        who="another person than the starter",
    ),
    "at-most": Guide("an earlier step measured more than is allowed: decide whether that is to be accepted"),
    "canary": Guide(
        "the standby takes no record: replicas out of sync, a quota, no WRITE on the topic, a full disk",
        f"echo canary | kafka-console-producer.sh {_AT_TARGET} --topic failover-canary\n"
        f"kafka-console-consumer.sh {_AT_TARGET} --topic failover-canary --from-beginning --max-messages 1",
    ),
    "check": Guide("a finding stands against going on: failover explain CODE says what it means"),
    "command": Guide(
        "the program is missing on this machine, asks a question, or runs past the step's time",
        who="a program of yours",
    ),
    "evict": Guide("a member that lives joins again at once: stop it instead"),
    "execute": Guide(
        "a group has members on the standby again, its commits move, or the plan is stale: plan anew",
        back="failover rollback EXECUTION_ID",
    ),
    "fence": Guide(
        "super users are not kept out; without an authorizer nobody is; this user may lack ALTER",
        f"kafka-acls.sh {_AT_SOURCE} --add {_FENCE_ACL}\n"
        f"kafka-acls.sh {_AT_SOURCE} --add --topic TOPIC --allow-principal 'User:*' --operation Read "
        "--operation Describe --operation DescribeConfigs  # where no other ACL names the topic",
        f"kafka-acls.sh {_AT_SOURCE} --remove --force {_FENCE_ACL}",
    ),
    "group-shadow": Guide(
        "what groups would read differs from the source: the plan is not to be trusted",
        back=f"kafka-consumer-groups.sh {_AT_TARGET} --delete --group drill.GROUP",
    ),
    "http": Guide("no answer, or another status than was expected; whether it arrived is then unknown"),
    "manual": Guide("it is said to be done and is not: with --yes nobody looks", who="the operator, by hand"),
    "move-applications": Guide(
        "the hook fails half-way: it has to do no harm when it is called twice; an instance is forgotten",
        who="the hook; without one the operator, by hand",
    ),
    "notify": Guide("the webhook does not answer; the run does not need it"),
    "plan": Guide("groups are refused or partial: failover show PLAN_ID tells each reason and what to do"),
    "prepare-topics": Guide(
        "a topic is there with fewer partitions: to enlarge it moves keys, so somebody has to decide",
        f"kafka-topics.sh {_AT_TARGET} --create --topic TOPIC --partitions N  # as on the source",
    ),
    "recreate-topics": Guide(
        "there is no way back from a deleted topic: export its tail first",
        who="failover, once the operator has typed the alias",
    ),
    "replication-lag": Guide("the mirror stands still or is too slow: failover status shows where"),
    "report": Guide("the file cannot be written: name another place"),
    "reverse-replication": Guide(
        "a connector does not stop or start: failover connect status; both directions at once copy in a circle",
        "failover connect stop --source STANDBY --target PRIMARY\n"
        "failover connect deploy --source PRIMARY --target STANDBY",
        "failover connect stop, then failover connect resume for the opposite flow where names differ",
        who="failover, by the REST of Kafka Connect; else the hook, or the operator by hand",
    ),
    "schema-ids": Guide(
        "an id means another schema there: consumers would read garbage; copy the schemas with their ids",
        "curl REGISTRY/subjects/SUBJECT/versions/latest  # on both, the ids have to agree",
    ),
    "seed": Guide("the mirror runs: it has to be stopped while its positions are written"),
    "start-replication": Guide("a connector fails at its start: failover connect status", back="failover connect stop"),
    "stop-replication": Guide(
        "an operator or a supervisor starts it again: stop that first (Strimzi: patch its resource)",
        back="failover connect resume",
    ),
    "tail": Guide("the file cannot be written, or the cluster goes away while it is read: run it again"),
    "unfence": Guide(
        "this user may lack ALTER; an ACL of another sort keeps producers out still",
        f"kafka-acls.sh {_AT_TARGET} --remove --force {_FENCE_ACL}",
        f"kafka-acls.sh {_AT_TARGET} --add {_FENCE_ACL}",
    ),
    "verify": Guide("offsets were overwritten, by a mirror's group sync or a tool; consumers do not come back"),
    "verify-fence": Guide(
        "a super user or a producer nobody knows still writes: the topics are named",
        f"kafka-get-offsets.sh {_AT_SOURCE} --topic TOPIC  # twice: the ends have to stay",
    ),
    "wait-drained": Guide(
        "a consumer is stuck or too slow: the group, its partition and what is left are named",
        f"kafka-consumer-groups.sh {_AT_SOURCE} --describe --group GROUP  # until LAG is 0",
    ),
    "wait-inactive": Guide(
        "an instance still runs; a static member stays until its session is over: failover evict",
        "kafka-consumer-groups.sh --bootstrap-server CLUSTER --describe --members --group GROUP  # until none is left",
    ),
}


def who(step: Step) -> str:
    """Says who does a step: the tool, somebody, or somebody else than the starter."""
    found = GUIDES[step.action.uses].who
    return f"{found}, after the operator's yes" if step.confirm is not None else found


def by_hand(action: Action) -> str:
    """Gives the command that does the same, "" where there is none; capitals stand for what has to be put in."""
    return plain(kind(action.uses).by_hand(action.parameters) or GUIDES[action.uses].by_hand)


def wrong(action: Action) -> str:
    """Says what can go wrong."""
    return GUIDES[action.uses].wrong


def back(step: Step) -> str:
    """Gives what puts a step back by hand."""
    if step.undo is not None:
        return by_hand(step.undo)
    given = step.action.parameters
    if step.action.uses == "move-applications":
        verb = "start" if given.get("action") == "stop" else "stop"
        return f"{verb} the {given.get('what')} on the {given.get('on')}"
    return GUIDES[step.action.uses].back


def plain(text: str) -> str:
    """Writes references as capitals, as usage lines do: ``PLAN_ID`` for what the step plan gave."""
    return _REFERENCE.sub(lambda found: found[1].upper().replace("-", "_"), text)


def named(text: str) -> str:
    """Writes references as the bare names of what they stand for."""
    return _REFERENCE.sub(lambda found: found[1], text)
