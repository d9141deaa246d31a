"""Services of Amazon and Google that run the connectors without Connect's REST interface: their own commands."""

from __future__ import annotations

import re

import msgspec

from failover.connect.access import Elsewhere

_GOOGLE = re.compile(
    r"projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/connectClusters/(?P<cluster>[^/]+)"
    r"(/connectors/(?P<connector>[^/]+))?"
)
_PLACEHOLDER = "CONNECTOR"
_MSK_VERBS = {"pause": "pause-connector", "resume": "resume-connector", "restart": "restart-connector"}
_GOOGLE_VERBS = ("pause", "resume", "stop", "restart")


class VendorCommands(msgspec.Struct, frozen=True):
    """Is what to type instead: commands, and what to know about them."""

    vendor: str
    commands: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def vendor_commands(where: Elsewhere, verb: str, names: tuple[str, ...] = ()) -> VendorCommands:
    """Gives a vendor's commands for one of ``connect``'s verbs; ``names``: the connectors, as they are called there."""
    return _msk(where.name, verb) if where.vendor == "msk" else _google(where.name, verb, names)


def _msk(arn: str, verb: str) -> VendorCommands:
    region = ("--region", arn.split(":")[3]) if arn.count(":") >= 5 else ()
    one = (*region, "--connector-arn", arn)
    described = ("aws", "kafkaconnect", "describe-connector", *one)
    match verb:
        case "list":
            return VendorCommands("Amazon MSK Connect", (("aws", "kafkaconnect", "list-connectors", *region),))
        case "status" | "watch":
            return VendorCommands("Amazon MSK Connect", (described,))
        case "deploy":
            return VendorCommands(
                "Amazon MSK Connect",
                (("aws", "kafkaconnect", "create-connector", *region, "--cli-input-json", "file://connector.json"),),
                ("Its connectorConfiguration is the flat map of failover config convert --to connect.",),
            )
        case "offsets":
            return VendorCommands(
                "Amazon MSK Connect", (), ("Positions lie in its offsets topic; no command shows or sets them.",)
            )
        case "stop":
            return VendorCommands(
                "Amazon MSK Connect",
                (("aws", "kafkaconnect", "pause-connector", *one), ("aws", "kafkaconnect", "delete-connector", *one)),
                (
                    "It has no stop. Pausing is enough for a failover; an AWS CLI without pause-connector can only"
                    " delete.",
                    "A deleted connector that is created again begins where its offsets topic says, if its worker"
                    " configuration names the same offset.storage.topic.",
                ),
            )
    return VendorCommands("Amazon MSK Connect", (("aws", "kafkaconnect", _MSK_VERBS[verb], *one),))


def _google(name: str, verb: str, names: tuple[str, ...]) -> VendorCommands:
    match = _GOOGLE.fullmatch(name)
    assert match is not None
    place = ("--connect-cluster", match["cluster"], "--location", match["location"], "--project", match["project"])
    own = names or ((match["connector"],) if match["connector"] else (_PLACEHOLDER,))
    base = ("gcloud", "managed-kafka", "connectors")
    vendor = "Google Cloud Managed Service for Apache Kafka"
    if verb == "list":
        return VendorCommands(vendor, ((*base, "list", *place),))
    if verb in _GOOGLE_VERBS:
        return VendorCommands(vendor, tuple((*base, verb, one, *place) for one in own))
    if verb == "deploy":
        made = tuple((*base, "create", one, *place, "--config-file", f"{one}.json") for one in own)
        note = "The files are the flat maps of failover config convert --to connect, one a connector."
        return VendorCommands(vendor, made, (note,))
    if verb == "offsets":
        return VendorCommands(vendor, (), ("Positions lie in its offsets topic; no command shows or sets them.",))
    return VendorCommands(vendor, tuple((*base, "describe", one, *place) for one in own))
