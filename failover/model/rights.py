"""Who may do what on a cluster, as its brokers keep it: ACLs and SCRAM users."""

from __future__ import annotations

import msgspec


class AclBinding(msgspec.Struct, frozen=True, order=True):
    """Is one ACL, in Kafka's words.

    ``resource``: topic, group, cluster or transactional-id (another kind by its number). ``pattern``: literal or
    prefixed; the literal name ``*`` stands for every name. ``operation``: READ, ALL …; ``permission``: ALLOW or DENY.
    """

    resource: str
    pattern: str
    name: str
    principal: str
    host: str
    permission: str
    operation: str


class ScramUser(msgspec.Struct, frozen=True, order=True):
    """Is a user that brokers know by SCRAM. ``credentials``: (mechanism, iterations); passwords are told to nobody."""

    name: str
    credentials: tuple[tuple[str, int], ...]
