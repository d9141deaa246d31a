"""Which ACLs of the source the target gets (MM2: MirrorSourceConnector.syncTopicAcls). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from failover.kafka.wire.acls import Acl, AclOperation, AclPattern, AclPermission, AclResource


def mirrored_acls(
    acls: Iterable[Acl], *, replicates: Callable[[str], bool], rename: Callable[[str], str]
) -> dict[Acl, None]:
    """Gives the ACLs that the target shall have, each once.

    They are those on topics by their whole names that the flow mirrors (``replicates``), whether such a topic exists
    or not, under the target's name (``rename``). WRITE is not allowed there, so ALLOW WRITE is left out and ALLOW ALL
    becomes ALLOW READ; what is denied is denied. To MM2 ``*`` is a topic's name as any other.
    """
    return {
        acl._replace(name=rename(acl.name), operation=AclOperation.READ if _is_all(acl) else acl.operation): None
        for acl in acls
        if acl.resource == AclResource.TOPIC
        and acl.pattern == AclPattern.LITERAL
        and (acl.permission, acl.operation) != (AclPermission.ALLOW, AclOperation.WRITE)
        and replicates(acl.name)
    }


def _is_all(acl: Acl) -> bool:
    return (acl.permission, acl.operation) == (AclPermission.ALLOW, AclOperation.ALL)
