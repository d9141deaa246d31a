"""Copies the ACLs of mirrored topics to the target, as MirrorMaker 2 does; none is ever removed there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from failover.kafka.wire.acls import Acl, AclPattern, create_acls, describe_acls
from failover.kafka.wire.cluster import WireCluster
from failover.model.names import Fault
from failover.replication.topic_acls import mirrored_acls

_log = logging.getLogger(__name__)

_DENIED, _SECURITY_DISABLED = 31, 54
_SWITCH = "sync.topic.acls.enabled"
_SHOWN = 3


class AclSync:
    """Compares the ACLs of both clusters and creates what the target lacks; see ``mirrored_acls`` for the rule.

    One request to each cluster a round; nothing is sent to create what is there. An ACL that the target refuses is
    told once and not sent again.
    """

    def __init__(
        self,
        source: WireCluster,
        target: WireCluster,
        *,
        replicates: Callable[[str], bool],
        rename: Callable[[str], str],
    ) -> None:
        self._source = source
        self._target = target
        self._replicates = replicates
        self._rename = rename
        self._refused: set[Acl] = set()
        self._trouble = ""

    async def sync(self) -> None:
        """Does one round. Raises ``ClusterUnreachable``, ``CredentialsRefused``."""
        theirs = await describe_acls(self._source, pattern=AclPattern.LITERAL)
        if isinstance(theirs, Fault):
            self._cannot("read on", self._source, "DESCRIBE", theirs)
            return
        wanted = mirrored_acls(theirs, replicates=self._replicates, rename=self._rename)
        if wanted:
            ours = await describe_acls(self._target, pattern=AclPattern.LITERAL)
            if isinstance(ours, Fault):
                self._cannot("created on", self._target, "ALTER (DESCRIBE is in it)", ours)
                return
            there = self._refused.union(ours)
            if not await self._create([acl for acl in wanted if acl not in there]):
                return
        if self._trouble:
            self._trouble = ""
            _log.warning("topic ACLs of %s are copied to %s again", self._source.alias, self._target.alias)

    # -- inside ----------------------------------------------------------------------------------

    async def _create(self, acls: Sequence[Acl]) -> bool:
        """Creates ACLs and tells what came of it; False: not now."""
        answers = await create_acls(self._target, acls) if acls else {}
        faults = {acl: reason for acl, reason in answers.items() if reason is not None}
        if made := [acl for acl in answers if acl not in faults]:
            _log.info("%s of %s on %s: %s", _counted(made), self._source.alias, self._target.alias, _some(made))
        passing = [reason for reason in faults.values() if _is_general(reason)]
        refused = {acl: reason for acl, reason in faults.items() if not _is_general(reason)}
        if refused:
            reason = next(iter(refused.values()))
            _log.warning(
                "cluster %s refuses %s (%s): %s", self._target.alias, _counted(refused), reason, _some(refused)
            )
            self._refused.update(refused)
        if passing:
            self._cannot("created on", self._target, "ALTER", passing[0])
        return not passing

    def _cannot(self, step: str, cluster: WireCluster, right: str, reason: Fault) -> None:
        kind = f"{step} {reason.number}"
        if kind == self._trouble:
            return
        self._trouble = kind
        if reason.number == _SECURITY_DISABLED:
            _log.info("ACL sync off: no authorizer on %s", cluster.alias)
            return
        why, way = str(reason), ""
        if reason.number == _DENIED:
            # the broker's own words are about the request's innards
            why, way = reason.name, f"; grant {right} on the cluster {cluster.alias}, or set {_SWITCH}=false"
        _log.warning("topic ACLs cannot be %s %s: %s%s", step, cluster.alias, why, way)


def _is_general(reason: Fault) -> bool:
    """Says whether a fault is about the cluster, and not about an ACL."""
    return reason.retriable or reason.number < 0 or reason.number in (_DENIED, _SECURITY_DISABLED)


def _counted(acls: Sequence[Acl] | dict[Acl, Fault]) -> str:
    return "1 topic ACL" if len(acls) == 1 else f"{len(acls)} topic ACLs"


def _some(acls: Iterable[Acl]) -> str:
    texts = [str(acl) for acl in acls]
    more = len(texts) - _SHOWN
    return "; ".join(texts[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
