"""The settings MM2 knows, their defaults, and who reads them: the tables behind ``mm2.py``.

Source: the ConfigDefs of MirrorSourceConfig, MirrorCheckpointConfig, MirrorHeartbeatConfig, the filters' own
ConfigDefs and MirrorMakerConfig, Kafka 2.4 to 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SOURCE: Final = "source"
CHECKPOINT: Final = "checkpoint"
HEARTBEAT: Final = "heartbeat"
CONNECTORS: Final = (SOURCE, CHECKPOINT, HEARTBEAT)

CONNECTOR_CLASSES: Final = {
    SOURCE: "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    CHECKPOINT: "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
    HEARTBEAT: "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
}

# The version whose defaults and aliases hold unless failover.mm2.version says otherwise.
ASSUMED_VERSION: Final = (4, 1)

_BASE: Final = {
    "enabled": "true",
    "admin.timeout.ms": "60000",
    "replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    "replication.policy.separator": ".",
    "replication.policy.internal.topic.separator.enabled": "true",
    "forwarding.admin.class": "org.apache.kafka.clients.admin.ForwardingAdmin",
    "tasks.max": "1",
}
_TOPIC_FILTER: Final = {
    "topic.filter.class": "org.apache.kafka.connect.mirror.DefaultTopicFilter",
    "topics": ".*",
    "topics.exclude": r"mm2.*\.internal,.*\.replica,__.*",
}
_SHARED: Final = {
    "offset-syncs.topic.location": "source",
    "emit.offset-syncs.enabled": "true",
    "consumer.poll.timeout.ms": "1000",
}
_SOURCE: Final = {
    "config.property.filter.class": "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
    "config.properties.exclude": r"follower\.replication\.throttled\.replicas,leader\.replication\.throttled\.replicas,"
    r"message\.timestamp\.difference\.max\.ms,message\.timestamp\.type,unclean\.leader\.election\.enable,"
    r"min\.insync\.replicas",
    "use.defaults.from": "target",
    "replication.factor": "2",
    "offset-syncs.topic.replication.factor": "3",
    "offset.lag.max": "100",
    "refresh.topics.enabled": "true",
    "refresh.topics.interval.seconds": "600",
    "sync.topic.configs.enabled": "true",
    "sync.topic.configs.interval.seconds": "600",
    "sync.topic.acls.enabled": "true",
    "sync.topic.acls.interval.seconds": "600",
    "heartbeats.replication.enabled": "true",
}
_CHECKPOINT: Final = {
    "group.filter.class": "org.apache.kafka.connect.mirror.DefaultGroupFilter",
    "groups": ".*",
    "groups.exclude": "console-consumer-.*,connect-.*,__.*",
    "refresh.groups.enabled": "true",
    "refresh.groups.interval.seconds": "600",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": "60",
    "checkpoints.topic.replication.factor": "3",
    "sync.group.offsets.enabled": "false",
    "sync.group.offsets.interval.seconds": "60",
}
_HEARTBEAT: Final = {
    "emit.heartbeats.enabled": "true",
    "emit.heartbeats.interval.seconds": "1",
    "heartbeats.topic.replication.factor": "3",
}

# The deprecated name of each filter setting (Kafka 2.7 to 3.9; removed in 4.0, KAFKA-17529 and its neighbours).
ALIASES: Final = {
    "topics.exclude": "topics.blacklist",
    "groups.exclude": "groups.blacklist",
    "config.properties.exclude": "config.properties.blacklist",
}

# Keys of the connectors' ConfigDefs without a default above: a top-level one of these is kept (rule 1 of
# MirrorMakerConfig.connectorBaseConfig), any other is dropped.
_WITHOUT_DEFAULT: Final = frozenset(
    {
        "name",
        "connector.class",
        "connector.plugin.version",
        "tasks.max.enforce",
        "source.cluster.alias",
        "target.cluster.alias",
        "key.converter",
        "value.converter",
        "header.converter",
        "key.converter.plugin.version",
        "value.converter.plugin.version",
        "header.converter.plugin.version",
        "config.action.reload",
        "transforms",
        "predicates",
        "errors.retry.timeout",
        "errors.retry.delay.max.ms",
        "errors.tolerance",
        "errors.log.enable",
        "errors.log.include.messages",
        "metric.reporters",
        "auto.include.jmx.reporter",
        "add.source.alias.to.metrics",
        "use.incremental.alter.configs",
        "metric.names.formats",
        "config.providers",
        "security.protocol",
        *ALIASES.values(),
    }
)

# Read by the configuration filter from the connector's settings, yet in no connector's ConfigDef (KIP-894).
_DROPPED_DEFAULTS: Final = frozenset({"use.defaults.from"})

CONNECTOR_KEYS: Final = frozenset(_BASE | _TOPIC_FILTER | _SHARED | _SOURCE | _CHECKPOINT | _HEARTBEAT) - (
    _DROPPED_DEFAULTS
) | (_WITHOUT_DEFAULT)

# Top-level keys the driver itself reads.
DRIVER_KEYS: Final = frozenset(
    {
        "clusters",
        "dedicated.mode.enable.internal.rest",
        "listeners",
        "admin.listeners",
        "admin.listeners.https.configs",
        "rest.advertised.host.name",
        "rest.advertised.port",
        "rest.advertised.listener",
        "rest.extension.classes",
        "response.http.headers.config",
        "access.control.allow.origin",
        "access.control.allow.methods",
    }
)

# Prefixes of top-level keys that reach the Connect worker (MirrorMakerConfig.workerConfig).
WORKER_PREFIXES: Final = (
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    "replication.policy",
)

# Worker settings an operator may want; they reach the worker of A->B only as B.<key>.
WORKER_KEYS: Final = frozenset(
    {
        "offset.flush.interval.ms",
        "offset.flush.timeout.ms",
        "scheduled.rebalance.max.delay.ms",
        "exactly.once.source.support",
        "group.id",
        "client.id",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "rebalance.timeout.ms",
        "plugin.path",
        "plugin.discovery",
        "connector.client.config.override.policy",
        "topic.creation.enable",
        "request.timeout.ms",
    }
)

# Connector settings that no connector's ConfigDef of MM2 names; they count only as A->B.<key>.
FLOW_ONLY_KEYS: Final = frozenset(
    {
        "use.defaults.from",
        "exactly.once.support",
        "transaction.boundary",
        "transaction.boundary.interval.ms",
        "offsets.storage.topic",
    }
)
FLOW_ONLY_PREFIXES: Final = (
    "producer.override.",
    "admin.override.",
    "topic.creation.",
    "transforms.",
)

ROLES: Final = ("producer", "consumer", "admin")


_SSL_KEYS: Final = (
    "protocol provider cipher.suites enabled.protocols keystore.type keystore.location keystore.password keystore.key "
    "keystore.certificate.chain key.password truststore.type truststore.location truststore.password "
    "truststore.certificates keymanager.algorithm trustmanager.algorithm endpoint.identification.algorithm "
    "secure.random.implementation engine.factory.class"
)
_SASL_KEYS: Final = (
    "mechanism jaas.config client.callback.handler.class login.callback.handler.class login.class "
    "kerberos.service.name kerberos.kinit.cmd kerberos.ticket.renew.window.factor kerberos.ticket.renew.jitter "
    "kerberos.min.time.before.relogin login.refresh.window.factor login.refresh.window.jitter "
    "login.refresh.min.period.seconds login.refresh.buffer.seconds login.connect.timeout.ms login.read.timeout.ms "
    "login.retry.backoff.ms login.retry.backoff.max.ms oauthbearer.token.endpoint.url oauthbearer.scope.claim.name "
    "oauthbearer.sub.claim.name oauthbearer.jwks.endpoint.url oauthbearer.expected.audience "
    "oauthbearer.expected.issuer oauthbearer.clock.skew.seconds oauthbearer.header.urlencode "
    "oauthbearer.client.credentials.client.id oauthbearer.client.credentials.client.secret oauthbearer.scope "
    "oauth.truststore.certificates"  # this tool's own
)
CLIENT_KEYS: Final = frozenset(
    {
        "bootstrap.servers",
        "security.protocol",
        *(f"ssl.{key}" for key in _SSL_KEYS.split()),
        *(f"sasl.{key}" for key in _SASL_KEYS.split()),
    }
)
"""Connection settings by their full names, to find the one that was meant (Kafka: SslConfigs, SaslConfigs)."""

_ANY_ROLE_KEYS: Final = (
    "client.id client.rack request.timeout.ms retries retry.backoff.ms retry.backoff.max.ms metadata.max.age.ms "
    "reconnect.backoff.ms reconnect.backoff.max.ms connections.max.idle.ms send.buffer.bytes receive.buffer.bytes "
    "metric.reporters metrics.num.samples interceptor.classes default.api.timeout.ms client.dns.lookup "
    "socket.connection.setup.timeout.ms"
)
_PRODUCER_KEYS: Final = (
    "acks batch.size linger.ms compression.type buffer.memory max.request.size max.block.ms delivery.timeout.ms "
    "max.in.flight.requests.per.connection enable.idempotence partitioner.class transactional.id "
    "transaction.timeout.ms key.serializer value.serializer compression.zstd.level compression.lz4.level "
    "compression.gzip.level"
)
_CONSUMER_KEYS: Final = (
    "isolation.level auto.offset.reset fetch.min.bytes fetch.max.bytes fetch.max.wait.ms max.partition.fetch.bytes "
    "max.poll.records max.poll.interval.ms session.timeout.ms heartbeat.interval.ms enable.auto.commit "
    "auto.commit.interval.ms group.id check.crcs partition.assignment.strategy key.deserializer value.deserializer "
    "exclude.internal.topics allow.auto.create.topics"
)
ROLE_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "producer": CLIENT_KEYS | frozenset(f"{_ANY_ROLE_KEYS} {_PRODUCER_KEYS}".split()),
    "consumer": CLIENT_KEYS | frozenset(f"{_ANY_ROLE_KEYS} {_CONSUMER_KEYS}".split()),
    "admin": CLIENT_KEYS | frozenset(_ANY_ROLE_KEYS.split()),
}
"""The settings of each kind of client that people write, to find the one that was meant."""

STORAGE_KEYS: Final = frozenset(
    {
        *(
            f"{kind}.storage.{key}"
            for kind in ("offset", "config", "status")
            for key in ("topic", "replication.factor")
        ),
        "offset.storage.partitions",
        "offset.storage.file.filename",
        "status.storage.partitions",
        "task.shutdown.graceful.timeout.ms",
        "worker.sync.timeout.ms",
        "worker.unsync.backoff.ms",
    }
)
"""What the worker reads of the keys that reach it by their prefix."""

OWN_KEYS: Final = frozenset(
    {
        "checkpoint.enabled",
        "checkpoint.interval.seconds",
        "connect.ca",
        "connect.password",
        "connect.url",
        "connect.user",
        "config.property.filter.class",
        "exact.max.records",
        "group.filter.class",
        "mm2.version",
        "replication.policy.class",
        "replication.policy.topic.map",
        "replicator.buffer.memory",
        "replicator.exactly.once",
        "replicator.lag.group",
        "replicator.provenance.headers",
        "replicator.rate.limit.bytes",
        "replicator.restart",
        "replicator.restart.max",
        "replicator.restart.min",
        "replicator.session.timeout",
        "rest.password",
        "rest.ssl.certificate",
        "rest.ssl.key",
        "rest.ssl.key.password",
        "rest.token",
        "rest.user",
        "runs.topic",
        "secrets.dir",
        "state.dir",
        "topic.filter.class",
    }
)
"""This tool's own settings, ``failover.`` removed."""

# What guides write where MM2 has another name, and old MirrorMaker's names.
UNOFFICIAL: Final[Mapping[str, str]] = {
    "topics.regex": "topics",
    "topics.whitelist": "topics",
    "whitelist": "topics",
    "blacklist": "topics.exclude",
    "groups.regex": "groups",
    "groups.whitelist": "groups",
}


def is_client_key(key: str) -> bool:
    """Tells whether MirrorClientConfig.CLIENT_CONFIG_DEF has the key: bootstrap, protocol, TLS and SASL settings."""
    return key in ("bootstrap.servers", "security.protocol") or key.startswith(("ssl.", "sasl."))


def is_connector_key(key: str) -> bool:
    """Tells whether one of the three connectors' ConfigDefs has the key."""
    return key in CONNECTOR_KEYS or key.startswith(("ssl.", "sasl."))


def connector_defaults(connector: str, version: tuple[int, int]) -> Mapping[str, str]:
    """Gives the defaults of one connector (``source``, ``checkpoint`` or ``heartbeat``) in an MM2 version."""
    match connector:
        case "source":
            defaults = _BASE | _TOPIC_FILTER | _SHARED | _SOURCE
        case "checkpoint":
            defaults = _BASE | _TOPIC_FILTER | _SHARED | _CHECKPOINT
        case _:
            defaults = _BASE | _HEARTBEAT
    if version < (4, 0) and "topics.exclude" in defaults:
        defaults = {**defaults, "topics.exclude": r".*[\-\.]internal,.*\.replica,__.*"}
    if version >= (4, 3) and "config.properties.exclude" in defaults:
        # KAFKA-20163: the dots lost their backslashes, and two keys came in under their broker names.
        escaped = defaults["config.properties.exclude"]
        added = ",log.message.timestamp.before.max.ms,log.message.timestamp.after.max.ms"
        defaults = {**defaults, "config.properties.exclude": escaped.replace("\\", "") + added}
    return defaults
