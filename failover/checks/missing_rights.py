"""Which ACLs and SCRAM users of the source applications will miss on the target. Pure.

An ACL of the source counts when it is about a topic the flow mirrors, one of the plan's groups, or a transactional id
or the whole cluster while its principal has a right on one of these. MM2 (MirrorSourceConnector.syncTopicAcls) copies
some topic ACLs alone, by whole names and without WRITE: group ACLs, prefixes and users stay behind.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from failover.model.plan import PlannedGroup
from failover.model.rights import AclBinding, ScramUser
from failover.model.snapshot import Snapshot

_USER = "User:"
_EVERY = "*"
_IMPLY_DESCRIBE = frozenset({"READ", "WRITE", "DELETE", "ALTER"})


class MissingRights(NamedTuple):
    """Is what the target lacks, in order. ``acls``: with the names they need there."""

    acls: tuple[AclBinding, ...] = ()
    users: tuple[ScramUser, ...] = ()


def missing_rights(snapshot: Snapshot, groups: Sequence[PlannedGroup]) -> MissingRights:
    """Compares what both clusters told; nothing is missing where either did not tell."""
    source, target = snapshot.source, snapshot.target
    wanted: dict[AclBinding, None] = {}
    if source.acls is not None:
        wanted = dict.fromkeys(_wanted(source.acls, snapshot, [group.group for group in groups]))
    acls: list[AclBinding] = []
    if target.acls is not None:
        there = _Covered(target.acls)
        acls = [acl for acl in wanted if not there.has(acl)]
    users: list[ScramUser] = []
    if source.users is not None and target.users is not None:
        known = {user.name for user in target.users}
        named = {acl.principal.removeprefix(_USER) for acl in wanted if acl.principal.startswith(_USER)}
        everybody = source.acls is None or _EVERY in named
        users = [user for user in source.users if user.name not in known and (everybody or user.name in named)]
    return MissingRights(tuple(sorted(acls)), tuple(sorted(users)))


def _wanted(acls: Collection[AclBinding], snapshot: Snapshot, groups: Collection[str]) -> Iterator[AclBinding]:
    """Gives the source's ACLs that matter, under the names that count on the target."""
    names = {
        source_topic: topic for topic, source_topic in snapshot.mirrored.items() if topic not in snapshot.originals
    }
    topics, copies, groups = sorted(names), sorted(names.values()), sorted(groups)
    prefix = snapshot.flow.source + snapshot.flow.separator
    principals = set()
    for acl in acls:
        if acl.resource == "topic" and _concerns(acl, topics):
            principals.add(acl.principal)
            yield acl  # after the failover applications use the plain name as well
            if acl.pattern == "literal":
                if names.get(acl.name, acl.name) != acl.name:
                    yield from _for_copies(acl, names[acl.name])
            elif _begins_one(copies, prefix + acl.name):
                yield from _for_copies(acl, prefix + acl.name)
        elif acl.resource == "group" and _concerns(acl, groups):
            principals.add(acl.principal)
            yield acl
    for acl in acls:
        if acl.principal not in principals:
            continue
        if acl.resource == "transactional-id" or (acl.resource, acl.operation) == ("cluster", "IDEMPOTENT_WRITE"):
            yield acl


def _for_copies(acl: AclBinding, name: str) -> Iterator[AclBinding]:
    """Gives the ACL for a mirrored topic: applications read there, and only the mirror writes."""
    if (acl.permission, acl.operation) in (("ALLOW", "WRITE"), ("ALLOW", "CREATE"), ("ALLOW", "IDEMPOTENT_WRITE")):
        return
    operation = "READ" if (acl.permission, acl.operation) == ("ALLOW", "ALL") else acl.operation
    yield AclBinding(acl.resource, acl.pattern, name, acl.principal, acl.host, acl.permission, operation)


def _concerns(acl: AclBinding, names: Sequence[str]) -> bool:
    """Says whether an ACL is about one of these names, which are sorted."""
    if acl.pattern == "prefixed":
        return _begins_one(names, acl.name)
    at = bisect_left(names, acl.name)
    return acl.pattern == "literal" and (acl.name == _EVERY or names[at : at + 1] == [acl.name])


def _begins_one(names: Sequence[str], prefix: str) -> bool:
    at = bisect_left(names, prefix)
    return at < len(names) and names[at].startswith(prefix)


class _Covered:
    """Holds the target's ACLs; ``has`` says whether they give (or deny) what another one does."""

    def __init__(self, acls: Iterable[AclBinding]) -> None:
        self._by: dict[tuple[str, str, str], list[AclBinding]] = defaultdict(list)
        self._same = frozenset(acls)
        for acl in self._same:
            self._by[acl.resource, acl.principal, acl.permission].append(acl)

    def has(self, wanted: AclBinding) -> bool:
        if wanted in self._same:
            return True
        for principal in (wanted.principal, _USER + _EVERY):
            for acl in self._by.get((wanted.resource, principal, wanted.permission), ()):
                if acl.host in (wanted.host, _EVERY) and _gives(acl, wanted) and _spans(acl, wanted):
                    return True
        return False


def _gives(acl: AclBinding, wanted: AclBinding) -> bool:
    if acl.operation in (wanted.operation, "ALL"):
        return True
    # Kafka (AclAuthorizer): what is allowed to read, write, delete or alter may be described, too
    return acl.permission == "ALLOW" and wanted.operation == "DESCRIBE" and acl.operation in _IMPLY_DESCRIBE


def _spans(acl: AclBinding, wanted: AclBinding) -> bool:
    if acl.pattern == "prefixed":
        return wanted.name.startswith(acl.name) and (wanted.pattern == "prefixed" or wanted.name != _EVERY)
    return acl.name == _EVERY or (wanted.pattern == "literal" and acl.name == wanted.name)
