"""The mm2.properties of a lab: short intervals, one flow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec


class MirrorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Says how MirrorMaker 2 mirrors.

    Intervals in seconds. ``both_ways`` enables the opposite flow too. ``identity`` keeps topic
    names (IdentityReplicationPolicy). ``settings`` win over all the others.
    """

    topics: str = ".*"
    groups: str = ".*"
    checkpoint_seconds: int = 2
    refresh_seconds: int = 3
    flush_seconds: float = 2
    tasks: int = 2
    sync_group_offsets: bool = False
    both_ways: bool = False
    identity: bool = False
    settings: dict[str, str] = {}


class Endpoint(msgspec.Struct, frozen=True):
    """Is how MirrorMaker 2 reaches one cluster; ``user`` None means PLAINTEXT."""

    alias: str
    bootstrap: str
    user: str | None = None
    password: str = ""
    mechanism: Literal["SCRAM-SHA-512", "PLAIN"] = "SCRAM-SHA-512"
    ca: Path | None = None


_BACKSLASH = "\\"
_LOGIN = {
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
}
_FACTORS = (
    "replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset-syncs.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor",
)


def mm2_properties(
    source: Endpoint, target: Endpoint, options: MirrorOptions, *, added: Mapping[str, str] | None = None
) -> str:
    """Returns an mm2.properties as ``connect-mirror-maker.sh`` reads it; ``added`` settings win over everything."""
    flow, back = f"{source.alias}->{target.alias}", f"{target.alias}->{source.alias}"
    settings = {"clusters": f"{source.alias}, {target.alias}"}
    for endpoint in (source, target):
        settings |= {f"{endpoint.alias}.{key}": value for key, value in client_properties(endpoint).items()}
    settings |= {f"{flow}.enabled": "true", f"{back}.enabled": str(options.both_ways).lower()}
    for direction in (flow, back) if options.both_ways else (flow,):
        settings |= {
            f"{direction}.topics": options.topics,
            f"{direction}.groups": options.groups,
            f"{direction}.emit.checkpoints.interval.seconds": str(options.checkpoint_seconds),
            f"{direction}.emit.heartbeats.interval.seconds": str(options.checkpoint_seconds),
            f"{direction}.refresh.topics.interval.seconds": str(options.refresh_seconds),
            f"{direction}.refresh.groups.interval.seconds": str(options.refresh_seconds),
            f"{direction}.sync.topic.configs.interval.seconds": str(options.refresh_seconds),
            f"{direction}.sync.topic.acls.enabled": "false",
            f"{direction}.sync.group.offsets.enabled": str(options.sync_group_offsets).lower(),
            f"{direction}.sync.group.offsets.interval.seconds": str(options.checkpoint_seconds),
        }
    settings |= dict.fromkeys(_FACTORS, "1")
    settings["tasks.max"] = str(options.tasks)
    # MM2 (MirrorMakerConfig.workerConfig): a worker's own settings count only under a cluster's prefix
    for endpoint in (source, target):
        settings[f"{endpoint.alias}.offset.flush.interval.ms"] = str(int(options.flush_seconds * 1000))
        # a worker killed with -9 must not keep its tasks for five minutes (Connect's default)
        settings[f"{endpoint.alias}.scheduled.rebalance.max.delay.ms"] = "0"
        # By default each of its workers looks through every jar for plugins: half of all that a start costs.
        settings[f"{endpoint.alias}.plugin.discovery"] = "service_load"
    if options.identity:
        settings["replication.policy.class"] = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    settings |= options.settings
    settings |= dict(added or {})
    # java.util.Properties takes a single backslash away: t\..* must be written t\\..*
    return "".join(f"{key} = {value.replace(_BACKSLASH, _BACKSLASH * 2)}\n" for key, value in settings.items())


def client_properties(endpoint: Endpoint) -> dict[str, str]:
    """Returns a Java client's connection settings for a cluster."""
    own = {"bootstrap.servers": endpoint.bootstrap}
    if endpoint.user is None:
        return own
    login = f'{_LOGIN[endpoint.mechanism]} required username="{endpoint.user}" password="{endpoint.password}";'
    return own | {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": endpoint.mechanism,
        "sasl.jaas.config": login,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(endpoint.ca),
    }
