"""Strimzi's KafkaMirrorMaker2 resource: where the state of a flow's connectors is written, and how it is changed there.

The operator compares what runs with the resource every two minutes and puts back what differs, so a connector that was
paused by REST runs again. What is written into the resource stays. Pure: nothing is asked or sent here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from failover.config.strimzi import KIND
from failover.connect.values import Expanded, Info, Status
from failover.errors import ConfigError, UsageError

RESOURCE: Final = "kafkamirrormaker2s.kafka.strimzi.io"
RECONCILED: Final = 150.0
"""Seconds after which the operator has compared once (Strimzi: STRIMZI_FULL_RECONCILIATION_INTERVAL_MS, 120 s)."""

STATES: Final = {"pause": "paused", "stop": "stopped", "resume": "running"}
"""What ``state`` of a connector in the resource is for each verb (Strimzi 0.38 and later)."""

_CLASSES: Final = {"source": "MirrorSource", "checkpoint": "MirrorCheckpoint", "heartbeat": "MirrorHeartbeat"}


class Place(msgspec.Struct, frozen=True):
    """Is where a resource describes a flow: ``mirrors[index]``; ``kinds``: the connectors it has there.

    ``guard``: the path and value by which a patch makes sure that the list did not change meanwhile.
    """

    name: str
    namespace: str
    index: int
    kinds: tuple[str, ...]
    guard: tuple[str, str]


class Patch(msgspec.Struct, frozen=True):
    """Is a change of a resource: the operations of a JSON patch, and the command that applies it."""

    resource: str
    namespace: str
    operations: tuple[dict[str, str], ...]
    command: tuple[str, ...]


def flows(resource: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Gives the flows a resource describes, in its own order."""
    spec = resource.get("spec") or {}
    return [_aliases(spec, mirror) for mirror in spec.get("mirrors") or []]


def find_place(resources: Sequence[Mapping[str, Any]], source: str, target: str) -> Place:
    """Finds a flow in resources; raises ConfigError where none or more than one has it."""
    found = []
    for resource in resources:
        spec, meta = resource.get("spec") or {}, resource.get("metadata") or {}
        for index, mirror in enumerate(spec.get("mirrors") or []):
            if _aliases(spec, mirror) == (source, target):
                kinds = tuple(kind for kind in _CLASSES if isinstance(mirror.get(f"{kind}Connector"), Mapping))
                old = "sourceCluster" in mirror
                guard = f"/spec/mirrors/{index}/" + ("sourceCluster" if old else "source/alias")
                name, namespace = str(meta.get("name") or ""), str(meta.get("namespace") or "")
                found.append(Place(name, namespace, index, kinds, (guard, source)))
    if len(found) == 1:
        return found[0]
    names = ", ".join(place.name for place in found)
    if found:
        raise UsageError(f"{source}->{target} is in several resources: {names}", hint="name one with --resource")
    described = ", ".join(f"{a}->{b}" for resource in resources for a, b in flows(resource)) or "none"
    raise ConfigError(f"no {KIND} resource describes {source}->{target}", hint=f"there are: {described}")


def patch_for(place: Place, kinds: Collection[str], verb: str, *, program: str = "kubectl") -> Patch:
    """Makes the patch that pauses, stops or resumes a flow's connectors of these kinds."""
    operations = [{"op": "test", "path": place.guard[0], "value": place.guard[1]}]
    operations += [
        {"op": "add", "path": f"/spec/mirrors/{place.index}/{kind}Connector/state", "value": STATES[verb]}
        for kind in place.kinds
        if kind in kinds
    ]
    text = msgspec.json.encode(operations).decode()
    command = [program, "patch", RESOURCE, place.name]
    command += ["--namespace", place.namespace] if place.namespace else []
    command += ["--type", "json", "--patch", text]
    return Patch(place.name, place.namespace, tuple(operations), tuple(command))


def snippet(source: str, target: str, kinds: Collection[str], verb: str) -> str:
    """Writes what the flow's entry of ``spec.mirrors`` must say, for a resource that is not at hand."""
    import yaml

    entry: dict[str, Any] = {"sourceCluster": source, "targetCluster": target}
    entry |= {f"{kind}Connector": {"state": STATES[verb]} for kind in _CLASSES if kind in kinds}
    return str(yaml.safe_dump({"spec": {"mirrors": [entry]}}, sort_keys=False))


def reported(resource: Mapping[str, Any]) -> dict[str, Expanded]:
    """Gives the connectors of a resource as the operator last saw them (its ``status.connectors``)."""
    from failover.config.mm2_keys import CONNECTOR_CLASSES

    seen: dict[str, Status] = {}
    for entry in (resource.get("status") or {}).get("connectors") or []:
        try:
            status = msgspec.convert(entry, Status)
        except msgspec.ValidationError:
            continue  # a connector the operator could not ask about has no state
        seen[status.name] = status
    spec = resource.get("spec") or {}
    found: dict[str, Expanded] = {}
    for mirror in spec.get("mirrors") or []:
        source, target = _aliases(spec, mirror)
        for kind, class_ in _CLASSES.items():
            if isinstance(mirror.get(f"{kind}Connector"), Mapping):
                name = f"{source}->{target}.{class_}Connector"
                config = {
                    "connector.class": CONNECTOR_CLASSES[kind],
                    "source.cluster.alias": source,
                    "target.cluster.alias": target,
                }
                found[name] = Expanded(Info(name, config), seen.get(name))
    return found


def _aliases(spec: Mapping[str, Any], mirror: Mapping[str, Any]) -> tuple[str, str]:
    """Reads a mirror's flow: v1beta2 names both clusters in it, v1 has one target for all."""
    source = mirror.get("sourceCluster") or (mirror.get("source") or {}).get("alias") or ""
    own = (spec.get("target") or {}).get("alias")
    target = mirror.get("targetCluster") or own or spec.get("connectCluster") or ""
    return str(source), str(target)
