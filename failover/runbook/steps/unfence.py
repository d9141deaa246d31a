"""The fence around a cluster's topics taken away, whoever put it there."""

from __future__ import annotations

from typing import Literal

import msgspec

from failover.errors import StepFailed
from failover.kafka.port import Cluster
from failover.model.names import Fault
from failover.model.rights import AclBinding
from failover.runbook.kinds import Context, Kind, Result, Settled
from failover.runbook.steps.fence import EVERYBODY, NO_AUTHORIZER, denying, reading
from failover.runbook.steps.flow_topics import data_topics
from failover.runbook.steps.noted_acls import note_acls, noted_acls, require_done


class Unfence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``on``: which cluster, source or target. ``topics``: literal names; none: the flow's data topics.

    ``principals``: who was kept out.
    """

    on: Literal["source", "target"] = "target"
    topics: list[str] = []
    principals: list[str] = msgspec.field(default_factory=lambda: [EVERYBODY])


class UnfenceKind(Kind[Unfence]):
    """Deletes the ACLs by which a fence keeps producers out, also one of an earlier run or another machine.

    Those are DENY WRITE on single topics for the principals named, and, where nothing else names a topic, the ALLOW
    that let everybody read meanwhile. The way back creates them again. Without a fence there is nothing to do.
    """

    parameters = Unfence
    results = {"acls": "ACLs deleted", "topics": "topics that were shut"}  # noqa: RUF012 - a class's constant
    undoes = True

    def preview(self, given: Unfence, context: Context) -> str:
        cluster, bindings = _found(given, context)
        shut = sorted({binding.name for binding in bindings})
        if not bindings:
            return f"nothing to do: no topic of {cluster.alias} is shut by a fence"
        return f"would delete {len(bindings)} ACLs on {cluster.alias}: {len(shut)} topics are shut"

    def run(self, given: Unfence, context: Context) -> Result:
        cluster, bindings = _found(given, context)
        note_acls(context, bindings)
        require_done(
            cluster.delete_acls(bindings), "deleted", hint=f"this user needs ALTER on the cluster {cluster.alias}"
        )
        return {"acls": len(bindings), "topics": sorted({binding.name for binding in bindings})}

    def settle(self, given: Unfence, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # what is deleted is not deleted again

    def undo(self, given: Unfence, context: Context) -> str:
        bindings = noted_acls(context)
        if not bindings:
            return "no ACL had been deleted"
        cluster = context.reach.source if given.on == "source" else context.reach.target
        require_done(
            cluster.create_acls(bindings),
            "created",
            hint="kafka-acls.sh --add, with what failover show RUN lists under the step",
        )
        return f"created {len(bindings)} ACLs again"


def _found(given: Unfence, context: Context) -> tuple[Cluster, list[AclBinding]]:
    cluster = context.reach.source if given.on == "source" else context.reach.target
    there = cluster.acls()
    if isinstance(there, Fault):
        if there.number == NO_AUTHORIZER:
            return cluster, []
        raise StepFailed(
            f"the ACLs of {cluster.alias} cannot be read: {there}", hint="this user needs DESCRIBE on the cluster"
        )
    topics = set(given.topics or data_topics(context))
    fences = {binding for topic in topics for binding in denying(topic, given.principals)}
    found = [binding for binding in there if binding in fences]
    for topic in sorted({binding.name for binding in found}):
        readers = reading(topic)
        others = [acl for acl in there if (acl.resource, acl.name) == ("topic", topic) and acl not in found]
        if others and all(acl in readers for acl in others):
            found += others
    return cluster, found


KIND = UnfenceKind()
