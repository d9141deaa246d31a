"""Producers kept out of the source."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from failover.errors import Refused, StepFailed
from failover.inventory.flow import flow_of
from failover.kafka.port import Cluster
from failover.model.names import Fault
from failover.model.rights import AclBinding
from failover.runbook.kinds import Context, Kind, Result, Settled
from failover.runbook.steps.flow_topics import data_topics
from failover.runbook.steps.noted_acls import note_acls, noted_acls, require_done

EVERYBODY = "User:*"
_READERS = ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")
NO_AUTHORIZER = 54
_COPIES = "copies"
_OPEN = "allow.everyone.if.no.acl.found"
_TRIES, _BETWEEN_TRIES = 25, 0.2


class Fence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``topics``: literal names; none: every data topic the flow mirrors. ``principals``: whom to keep out."""

    topics: list[str] = []
    principals: list[str] = msgspec.field(default_factory=lambda: [EVERYBODY])


class FenceKind(Kind[Fence]):
    """Denies WRITE on the flow's data topics of the source by ACLs, and proves it by an attempt to write.

    Transactions that are open end as they would. Where no other ACL names a topic, and the brokers let everybody in
    there, the first ACL would shut out readers too: everybody is then allowed to READ, DESCRIBE and DESCRIBE_CONFIGS.
    The way back deletes exactly the ACLs that were created here, and on the target what a mirror made of them there.
    Super users are let in whatever ACLs say: they are named. Without an authorizer nothing can be fenced this way: stop
    the producers by a command or by hand.
    """

    parameters = Fence
    results = {  # noqa: RUF012 - a class's constant
        "topics": "topics that nobody writes to any more",
        "acls": "ACLs created",
        "proved": "whether an attempt to write by this tool's own user was refused",
        "super_users": "users that no ACL keeps out, as far as the brokers tell",
    }
    undoes = True

    def preview(self, given: Fence, context: Context) -> str:
        source = context.reach.source
        topics = given.topics or data_topics(context)
        bindings = wanted(source, topics, given.principals)
        return f"would create {len(bindings)} ACLs on {source.alias}: no WRITE on {len(topics)} topics" + _except(
            source
        )

    def run(self, given: Fence, context: Context) -> Result:
        source = context.reach.source
        topics = given.topics or data_topics(context)
        bindings = wanted(source, topics, given.principals, noted_acls(context))
        _note_copies(context, bindings)
        note_acls(context, bindings)
        require_done(
            source.create_acls(bindings), "created", hint=f"this user needs ALTER on the cluster {source.alias}"
        )
        proved = self._proved(given, topics, context)
        return {
            "topics": list(topics),
            "acls": len(noted_acls(context)),
            "proved": proved,
            "super_users": _super_users(source),
        }

    def _proved(self, given: Fence, topics: Collection[str], context: Context) -> bool:
        """Tries to write until that is refused everywhere; brokers hear of ACLs a moment after they are created."""
        if EVERYBODY not in given.principals:
            context.say("only named principals are kept out: an attempt of this user would prove nothing")
            return False
        still_open: list[str] = []
        for _ in range(_TRIES):
            found = context.reach.source.may_write(topics)
            still_open = [topic for topic in topics if found[topic] is not False]
            if not still_open:
                return True
            context.remaining()
            context.pause(_BETWEEN_TRIES)
        if len(still_open) == len(topics) and all(found[topic] is True for topic in topics):
            context.say(
                "no ACL keeps this user out, so it is a super user: its attempt proves nothing; use verify-fence"
            )
            return False
        raise StepFailed(
            f"{len(still_open)} of {len(topics)} topics are not shut: {', '.join(still_open[:5])}",
            hint="does every broker answer? failover run --resume RUN tries again",
        )

    def settle(self, given: Fence, context: Context) -> Settled:  # noqa: ARG002 - what was noted says it
        # creating ACLs once more changes nothing: the step is simply begun again
        return Settled(done=False)

    def undo(self, given: Fence, context: Context) -> str:  # noqa: ARG002 - what was noted is put back, not what is given
        bindings = noted_acls(context)
        require_done(
            context.reach.source.delete_acls(bindings),
            "deleted",
            hint="kafka-acls.sh --remove, with what failover show RUN lists under the step",
        )
        copies = _copied(context)
        left = [fault for fault in context.reach.target.delete_acls(copies).values() if fault is not None]
        if left:
            raise StepFailed(
                f"{len(left)} of {len(copies)} copies of the fence on the target could not be deleted: {left[0]}",
                hint="kafka-acls.sh --remove on the target, for User:* on the mirrored topics",
            )
        return f"deleted {len(bindings)} ACLs" + (f", and {len(copies)} copies on the target" if copies else "")


def _note_copies(context: Context, bindings: Sequence[AclBinding]) -> None:
    """Notes what a mirror would make of ACLs on the target, as far as it is not there: the way back deletes these too.

    MM2 (MirrorSourceConnector.syncTopicAcls): all literal topic ACLs but ALLOW WRITE are copied, and never removed.
    """
    there = context.reach.target.acls()
    if isinstance(there, Fault):
        return  # none could be copied there
    selected = context.reach.flow
    flow = flow_of(selected.config, selected.selected)
    copies = [msgspec.structs.replace(one, name=flow.target_topic(one.name)) for one in bindings]
    note_acls(context, [one for one in copies if one not in there], _COPIES)


def _copied(context: Context) -> list[AclBinding]:
    """Gives those of them that are on the target now."""
    copies = noted_acls(context, _COPIES)
    there = context.reach.target.acls() if copies else ()
    return [] if isinstance(there, Fault) else [one for one in copies if one in there]


def wanted(
    source: Cluster, topics: Sequence[str], principals: Sequence[str], own: Collection[AclBinding] = ()
) -> list[AclBinding]:
    """Gives the ACLs that fence topics and are not there yet. Raises ``Refused`` where ACLs mean nothing.

    ``own``: those of an earlier try, which leave a topic as open as it was.
    """
    there = source.acls()
    if isinstance(there, Fault):
        if there.number == NO_AUTHORIZER:
            raise Refused(
                f"{source.alias} has no authorizer: ACLs keep nobody out",
                hint="stop the producers by a step that uses command, http or manual",
            )
        raise Refused(
            f"the ACLs of {source.alias} cannot be read: {there}", hint="this user needs DESCRIBE on the cluster"
        )
    open_by_default = source.broker_settings([_OPEN]).get(_OPEN, "true") != "false"
    found: list[AclBinding] = []
    for topic in topics:
        if open_by_default and not any(_names(acl, topic) for acl in there if acl not in own):
            found += reading(topic)
        found += denying(topic, principals)
    return [binding for binding in found if binding not in there]


def denying(topic: str, principals: Sequence[str]) -> list[AclBinding]:
    """Gives the ACLs that are a topic's fence."""
    return [AclBinding("topic", "literal", topic, who, "*", "DENY", "WRITE") for who in principals]


def reading(topic: str) -> list[AclBinding]:
    """Gives the ACLs that let everybody go on reading a topic no other ACL names."""
    return [AclBinding("topic", "literal", topic, EVERYBODY, "*", "ALLOW", right) for right in _READERS]


def _names(acl: AclBinding, topic: str) -> bool:
    if acl.resource != "topic":
        return False
    if acl.pattern == "prefixed":
        return topic.startswith(acl.name)
    return acl.name in (topic, "*")


def _super_users(source: Cluster) -> list[str]:
    return list(_split(source.broker_settings(["super.users"]).get("super.users", "")))


def _split(users: str) -> Iterator[str]:
    return (user.strip() for user in users.split(";") if user.strip())


def _except(source: Cluster) -> str:
    users = _super_users(source)
    return f"; not kept out, being super users: {', '.join(users)}" if users else ""


KIND = FenceKind()
