"""What findings ask a cluster beside the plan: ACLs, SCRAM users, settings of topics. Raw, one request each."""

from __future__ import annotations

from collections.abc import Collection

from failover.kafka.wire.acls import Acl, AclOperation, AclPattern, AclPermission, AclResource, describe_acls, word
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.topics import describe_topic_configs
from failover.model.names import Fault
from failover.model.rights import AclBinding

_ANY_RESOURCE = 1


async def acl_bindings(wire: WireCluster) -> tuple[AclBinding, ...] | Fault:
    """Reads every ACL of every kind; faults as of ``describe_acls``."""
    found = await describe_acls(wire, _ANY_RESOURCE)
    return found if isinstance(found, Fault) else tuple(_binding(acl) for acl in found)


async def topic_settings(
    wire: WireCluster, topics: Collection[str], names: Collection[str]
) -> dict[str, dict[str, str] | Fault]:
    """Reads these settings of topics as they are in effect; one without a value is left out."""
    found = await describe_topic_configs(wire, topics, names)
    return {
        topic: entries
        if isinstance(entries, Fault)
        else {entry.name: entry.value for entry in entries if entry.value is not None}
        for topic, entries in found.items()
    }


def _binding(acl: Acl) -> AclBinding:
    return AclBinding(
        resource=word(AclResource, acl.resource).lower().replace("_", "-"),
        pattern=word(AclPattern, acl.pattern).lower(),
        name=acl.name,
        principal=acl.principal,
        host=acl.host,
        permission=word(AclPermission, acl.permission),
        operation=word(AclOperation, acl.operation),
    )
