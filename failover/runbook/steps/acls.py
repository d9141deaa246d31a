"""What applications may do on the source, given to them on the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from failover.errors import Refused, StepFailed
from failover.model.names import Fault
from failover.model.rights import AclBinding
from failover.runbook.kinds import Context, Kind, Result, Settled
from failover.runbook.steps.noted_acls import note_acls, noted_acls, require_done, told

_RIGHT = "this user needs ALTER on the target's cluster"


class Acls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``plan``: a plan's id; what it found missing counts. ``apply``: create them; else fail where some are missing.

    ``users``: fail where SCRAM users are missing: their passwords are told to nobody, so they cannot be copied.
    """

    plan: str
    apply: bool = True
    users: bool = True


class AclsKind(Kind[Acls]):
    """Creates on the target the ACLs that applications have on the source and lack there, as a plan found them.

    One that keeps everybody from writing is a fence of the source and is not copied. The way back deletes exactly those
    that were created. ``failover show PLAN`` names them;
    ``failover plan --format kafka-acls`` prints the commands.
    """

    parameters = Acls
    results = {"created": "ACLs created", "users": "SCRAM users that are missing"}  # noqa: RUF012
    undoes = True

    def preview(self, given: Acls, context: Context) -> str:
        acls, users = _missing(given, context)
        verb = "create" if given.apply else "fail for"
        return f"would {verb} {len(acls)} ACLs on the target; SCRAM users missing there: {', '.join(users) or 'none'}"

    def run(self, given: Acls, context: Context) -> Result:
        acls, users = _missing(given, context)
        printed = "failover plan --format kafka-acls prints the commands"
        if users and given.users:
            raise Refused(f"the target lacks users: {', '.join(users[:5])}", hint=printed)
        if acls and not given.apply:
            raise Refused(f"the target lacks {len(acls)} ACLs, the first: {told(acls[0])}", hint=printed)
        there = context.reach.target.acls() if acls else ()
        if isinstance(there, Fault):
            raise StepFailed(f"the ACLs of the target cannot be read: {there}")
        wanted = [acl for acl in acls if acl not in there]
        note_acls(context, wanted)
        require_done(context.reach.target.create_acls(wanted), "created", hint=_RIGHT)
        return {"created": len(noted_acls(context)), "users": users}

    def settle(self, given: Acls, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # what is there is not created again

    def undo(self, given: Acls, context: Context) -> str:  # noqa: ARG002 - what was noted is put back
        bindings = noted_acls(context)
        require_done(context.reach.target.delete_acls(bindings), "deleted", hint=_RIGHT)
        return f"deleted {len(bindings)} ACLs"

    def by_hand(self, given: Mapping[str, Any]) -> str:  # noqa: ARG002 - the same for all
        return "failover plan --format kafka-acls"


def _missing(given: Acls, context: Context) -> tuple[list[AclBinding], list[str]]:
    from failover.library.planning import saved_plan

    plan = saved_plan(context.reach.state, given.plan)
    return [acl for acl in plan.missing_acls if not _fences(acl)], [user.name for user in plan.missing_users]


def _fences(acl: AclBinding) -> bool:
    """Says whether an ACL keeps everybody from writing: a fence of the source, which has no place on the target."""
    return (acl.permission, acl.operation, acl.principal) == ("DENY", "WRITE", "User:*")


KIND = AclsKind()
