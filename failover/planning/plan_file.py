"""Plan files: JSON, kind failover.plan, version 1. Unknown fields are ignored, edits are not."""

from __future__ import annotations

import msgspec

from failover.errors import PlanInvalid
from failover.model.plan import Plan, PlanOptions
from failover.planning.fingerprint import fingerprint

READABLE = (1,)


class _Head(msgspec.Struct):
    kind: str = ""
    version: int | None = None


class _Asked(msgspec.Struct):
    options: PlanOptions


def encode_plan(plan: Plan) -> bytes:
    """Writes a plan as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n"


def decode_plan(data: bytes, where: str = "") -> Plan:
    """Reads a plan file. Raises ``PlanInvalid`` for another kind or version, damage, or an edit; it names ``where``."""
    again = "run failover plan again"
    named = f"{where}: " if where else ""
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PlanInvalid(f"{named}this is no plan file: {error}", hint=again) from error
    if head.kind != "failover.plan":
        said = f"its kind is {head.kind!r}" if head.kind else "it has no kind"
        raise PlanInvalid(f"{named}this is no plan file: {said}, not 'failover.plan'", hint=again)
    if head.version not in READABLE:
        raise PlanInvalid(
            f"{named}the plan has version {head.version}; this program reads version {READABLE[-1]}",
            hint="use the version of failover that made it, or " + again,
        )
    try:
        plan = msgspec.json.decode(data, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PlanInvalid(f"{named}the plan file is damaged: {error}", hint=again) from error
    if plan.fingerprint != fingerprint(plan):
        raise PlanInvalid(
            f"plan {plan.id} was edited: its fingerprint does not match its content",
            hint="a plan is executed as it was made; " + again + " with the options you need",
        )
    return plan


def decode_options(data: bytes) -> PlanOptions:
    """Reads only what was asked of a plan, quickly, from a file already read whole; raises ``DecodeError``."""
    return msgspec.json.decode(data, type=_Asked).options
