"""One broker's settings and command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from failover.lab.certs import AUDIENCE, Certificates
from failover.lab.ports import LOOPBACK
from failover.lab.state import ADMIN, Broker, Cluster, LabOptions

# fast timers: what takes a production cluster minutes must happen within a test's patience
_TIMERS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.max.session.timeout.ms": "1800000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "8388608",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "controlled.shutdown.max.retries": "1",
    # a killed broker may register again only when its old session is over
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
}
# few internal partitions: each is a file to open at start and a coordinator to load
_SMALL = {
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "1",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "auto.create.topics.enable": "true",
    "num.partitions": "1",
}
_PROTOCOLS = {
    "CONTROLLER": "PLAINTEXT",
    "PLAINTEXT": "PLAINTEXT",
    "PROXIED": "PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "SSL": "SSL",
}
_LOGIN = "org.apache.kafka.common.security"
_REPLICATED = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")


def server_properties(
    broker: Broker,
    cluster: Cluster,
    options: LabOptions,
    *,
    passwords: Mapping[str, str],
    certificates: Certificates | None,
) -> str:
    """Returns a broker's server.properties (KRaft; the first three nodes of a larger cluster form its quorum)."""
    nodes = cluster.brokers
    # two controllers survive no death of either; so one, or three
    voters = nodes[:3] if len(nodes) >= 3 else nodes[:1]
    listeners = {"PLAINTEXT": broker.plaintext}
    if broker.sasl:
        listeners["SASL_SSL"] = broker.sasl
    if broker.tls:
        listeners["SSL"] = broker.tls
    if broker.proxied:
        listeners["PROXIED"] = broker.proxied
    advertised = listeners | ({"PROXIED": broker.proxy} if broker.proxied else {})
    bound = listeners | ({"CONTROLLER": broker.controller} if broker in voters else {})
    replicas = min(3, len(nodes))
    settings = {
        "process.roles": "broker,controller" if broker in voters else "broker",
        "node.id": str(broker.node),
        "controller.quorum.voters": ",".join(f"{voter.node}@{LOOPBACK}:{voter.controller}" for voter in voters),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": _listeners(bound),
        "advertised.listeners": _listeners(advertised),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in _PROTOCOLS.items()),
        "log.dirs": str(broker.folder / "data"),
        "default.replication.factor": str(replicas),
        **{f"{topic}.replication.factor": str(replicas) for topic in _REPLICATED},
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.min.isr": "1",
        **_SMALL,
        **_TIMERS,
    }
    if options.authorizer:
        settings |= {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{ADMIN}",
        }
    if certificates is not None:
        settings |= _sasl(passwords, certificates)
    return "".join(f"{key}={value}\n" for key, value in (settings | options.settings).items())


def token_flags(certificates: Certificates) -> list[str]:
    """Returns the JVM flags that let a broker read the keys of tokens from a file (Kafka 4.0 and later ask for it)."""
    return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={certificates.jwks.as_uri()}"]


def java_command(
    executable: Path,
    flags: Sequence[str],
    jars: Sequence[Path],
    *,
    marker: str,
    logging: Path,
    arguments: Sequence[str],
) -> list[str]:
    """Returns the command line of one of Kafka's main classes, marked so that the lab can find its process again."""
    setting = "log4j2.configurationFile" if logging.name.startswith("log4j2") else "log4j.configuration"
    return [
        str(executable),
        f"-Dfailover.lab={marker}",
        *flags,
        f"-D{setting}={logging.as_uri()}",
        "-cp",
        ":".join(map(str, jars)),
        *arguments,
    ]


def write_logging(folder: Path, version: str) -> Path:
    """Writes the logging configuration (warnings to standard output): Log4j 1 up to Kafka 3, Log4j 2 since."""
    if version.startswith("3."):
        path = folder / "log4j.properties"
        path.write_text(
            "log4j.rootLogger=WARN, OUT\n"
            "log4j.appender.OUT=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.OUT.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.OUT.layout.ConversionPattern=%d %p %c{1} - %m%n\n"
        )
        return path
    path = folder / "log4j2.properties"
    path.write_text(
        "appender.out.type=Console\nappender.out.name=OUT\n"
        "appender.out.layout.type=PatternLayout\nappender.out.layout.pattern=%d %p %c{1} - %m%n\n"
        "rootLogger.level=WARN\nrootLogger.appenderRef.out.ref=OUT\n"
    )
    return path


def _listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in ports.items())


def _sasl(passwords: Mapping[str, str], certificates: Certificates) -> dict[str, str]:
    users = " ".join(f'user_{user}="{password}"' for user, password in passwords.items())
    prefix = "listener.name.sasl_ssl"
    bearer = f"{prefix}.oauthbearer"
    return {
        f"{prefix}.sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN,OAUTHBEARER",
        f"{prefix}.scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
        f"{prefix}.plain.sasl.jaas.config": f"{_LOGIN}.plain.PlainLoginModule required {users};",
        f"{bearer}.sasl.jaas.config": f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
        f"{bearer}.sasl.server.callback.handler.class": f"{_LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        # without it a session outlives the token that opened it
        f"{bearer}.connections.max.reauth.ms": "3600000",
        "sasl.oauthbearer.jwks.endpoint.url": certificates.jwks.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca),
        "ssl.client.auth": "none",
        "listener.name.ssl.ssl.client.auth": "required",
        # a certificate's user is its common name
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+)$/$1/",
    }
