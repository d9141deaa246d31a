"""What findings ask a cluster beside the plan: ACLs, SCRAM users, settings of topics. Raw, one request each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from failover.errors import ClusterError
from failover.kafka.faults import fault_of_loss
from failover.kafka.wire.acls import (
    Acl,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    create_acls,
    delete_acls,
    describe_acls,
    word,
)
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.scram_users import scram_users
from failover.kafka.wire.topics import describe_topic_configs
from failover.model.names import Fault
from failover.model.rights import AclBinding, ScramUser

if TYPE_CHECKING:
    from failover.config.clients import ClientSettings
    from failover.kafka.wire.thread import WireThread

V = TypeVar("V")

_ANY_RESOURCE = 1


class Aside:
    """Holds connections of their own for what may be slow or never answered: brokers answer a connection in order.

    Each thing is asked once; silence is its answer, and decides nothing about the cluster.
    """

    def __init__(self, alias: str, settings: ClientSettings, thread: WireThread, *, silence: float) -> None:
        self._alias = alias
        self._settings = settings
        self._thread = thread
        self._silence = silence
        self._lock = threading.Lock()
        self._wire: WireCluster | None = None

    def acls(self) -> tuple[AclBinding, ...] | Fault:
        """Reads every ACL of every kind; faults as of ``describe_acls``."""
        found = self.ask(lambda wire: describe_acls(wire, _ANY_RESOURCE))
        return found if isinstance(found, Fault) else tuple(_binding(acl) for acl in found)

    def change_acls(self, bindings: Collection[AclBinding], *, delete: bool) -> dict[AclBinding, Fault | None]:
        """Creates or deletes ACLs; one that is there, or is not, is no fault."""
        acls = {_acl(binding): binding for binding in bindings}
        found = self.ask(lambda wire: (delete_acls if delete else create_acls)(wire, acls))
        if isinstance(found, Fault):
            return dict.fromkeys(bindings, found)
        return {acls[acl]: fault for acl, fault in found.items()}

    def scram_users(self) -> tuple[ScramUser, ...] | Fault:
        """Reads every user that brokers know by SCRAM."""
        return self.ask(scram_users)

    def topic_settings(self, topics: Collection[str], names: Collection[str]) -> dict[str, dict[str, str] | Fault]:
        """Reads these settings of topics as they are in effect; one without a value is left out."""
        found = self.ask(lambda wire: describe_topic_configs(wire, topics, names))
        if isinstance(found, Fault):
            return dict.fromkeys(topics, found)
        return {
            topic: entries
            if isinstance(entries, Fault)
            else {entry.name: entry.value for entry in entries if entry.value is not None}
            for topic, entries in found.items()
        }

    def ask(self, work: Callable[[WireCluster], Coroutine[Any, Any, V | Fault]]) -> V | Fault:
        """Asks for anything else; a cluster that cannot be asked is a fault of the answer."""
        try:
            with self._lock:
                if self._wire is None:
                    wire = WireCluster(self._settings, alias=self._alias, silence=self._silence)
                    self._thread.run(wire.open())
                    self._wire = wire
                wire = self._wire
            return self._thread.run(work(wire))
        except ClusterError as error:
            return fault_of_loss(error)

    def close(self) -> None:
        """Ends the connections."""
        with self._lock:
            wire, self._wire = self._wire, None
        if wire is not None:
            self._thread.run(wire.close())


def _acl(binding: AclBinding) -> Acl:
    return Acl(
        name=binding.name,
        principal=binding.principal,
        host=binding.host,
        operation=AclOperation[binding.operation],
        permission=AclPermission[binding.permission],
        resource=AclResource[binding.resource.upper().replace("-", "_")],
        pattern=AclPattern[binding.pattern.upper()],
    )


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
