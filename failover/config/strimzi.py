"""Strimzi's ``KafkaMirrorMaker2`` resource (v1beta2 and v1): the connectors that its operator would make of it.

Source of the rules: Strimzi (KafkaMirrorMaker2Connectors). Secrets stay references,
``${strimzisecrets:NAMESPACE/NAME:KEY}`` as the operator writes them, and are looked up in ``--secrets-dir`` when a
client needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from failover.config import strimzi_oauth
from failover.config.connect_json import Connector
from failover.config.mm2_keys import CHECKPOINT, CONNECTOR_CLASSES, HEARTBEAT, ROLES, SOURCE, is_client_key
from failover.config.notes import meant, nearest
from failover.config.settings import DRIVER, Note, Origin, Setting, Settings, make_setting
from failover.errors import ConfigError

KIND: Final = "KafkaMirrorMaker2"
_GROUP: Final = "kafka.strimzi.io/"
_CONNECTORS: Final = {
    SOURCE: "sourceConnector",
    CHECKPOINT: "checkpointConnector",
    HEARTBEAT: "heartbeatConnector",
}
_PATTERNS: Final = (
    ("topics", ("topicsPattern",)),
    ("topics.exclude", ("topicsExcludePattern", "topicsBlacklistPattern")),
    ("groups", ("groupsPattern",)),
    ("groups.exclude", ("groupsExcludePattern", "groupsBlacklistPattern")),
)
_MIRROR: Final = frozenset(
    {
        "sourceCluster",
        "targetCluster",
        "source",
        *_CONNECTORS.values(),
        *(field for _, fields in _PATTERNS for field in fields),
    }
)
_WORKER_FIELDS: Final = {
    "groupId": "group.id",
    "configStorageTopic": "config.storage.topic",
    "offsetStorageTopic": "offset.storage.topic",
    "statusStorageTopic": "status.storage.topic",
}
_CLUSTER: Final = frozenset({"alias", "bootstrapServers", "tls", "authentication", "config", *_WORKER_FIELDS})
_CONNECTOR: Final = frozenset(
    {"tasksMax", "config", "autoRestart", "pause", "state", "version", "listOffsets", "alterOffsets"}
)
_Pair: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any]]
# What the operator sets itself in a cluster's `config` (Strimzi: KafkaMirrorMaker2ClusterSpec.FORBIDDEN_PREFIXES).
_FORBIDDEN: Final = ("ssl.", "sasl.", "security.", "listeners", "plugin.path", "rest.", "bootstrap.servers")
_PERMITTED: Final = frozenset(
    {"ssl.endpoint.identification.algorithm", "ssl.cipher.suites", "ssl.protocol", "ssl.enabled.protocols"}
)


class Resource(msgspec.Struct, frozen=True):
    """Is what one resource says: its connectors, its Connect worker, the version of Kafka, and notes."""

    connectors: tuple[Connector, ...]
    worker: Mapping[str, Setting]
    version: Setting | None
    notes: tuple[Note, ...]


def is_resource(document: Any) -> bool:
    """Tells whether a decoded document is a ``KafkaMirrorMaker2`` resource."""
    return (
        isinstance(document, dict)
        and document.get("kind") == KIND
        and str(document.get("apiVersion", "")).startswith(_GROUP)
    )


def read_resource(document: Mapping[str, Any], where: str) -> Resource:
    """Reads a resource; raises ConfigError naming the field that is missing or of the wrong kind."""
    return _Reader(document, where).read()


class _Reader:
    def __init__(self, document: Mapping[str, Any], where: str) -> None:
        self.where = where
        metadata = _dict(document, "metadata", where)
        self.name = str(metadata.get("name", ""))
        self.namespace = str(metadata.get("namespace", ""))
        self.spec = _dict(document, "spec", where)
        self.notes: list[Note] = []

    def read(self) -> Resource:
        target = _dict(self.spec, "target", self.where)
        mirrors = _list(self.spec, "mirrors", self.where)
        clusters = self.clusters(target, [_dict(mirror, "source", self.where) for mirror in mirrors])
        if not mirrors:
            raise ConfigError(f"{self.where}: spec.mirrors is missing or empty", hint="a resource mirrors something")
        connectors = []
        for mirror in mirrors:
            self.unknown(mirror, _MIRROR, "spec.mirrors[].")
            source = _dict(mirror, "source", self.where)
            from_alias = str(source.get("alias", "") or mirror.get("sourceCluster", ""))
            to_alias = str(mirror.get("targetCluster", "") or target.get("alias", "") or self.connect_cluster())
            pair = (
                source or self.cluster(clusters, from_alias, "sourceCluster"),
                self.cluster(clusters, to_alias, "targetCluster"),
            )
            for kind, field in _CONNECTORS.items():
                if mirror.get(field) is not None:
                    connectors.append(self.connector(kind, mirror, _dict(mirror, field, self.where), pair))
        into = target or clusters.get(self.connect_cluster(), {})
        version = self.spec.get("version")
        return Resource(
            tuple(connectors),
            self.worker(into),
            None if version is None else self.setting("failover.mm2.version", version, self.spec, "version"),
            tuple(dict.fromkeys(self.notes)),
        )

    def clusters(self, target: Mapping[str, Any], sources: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """Gives the clusters by their aliases; raises ConfigError for an alias of two."""
        found: dict[str, Mapping[str, Any]] = {}
        for one in filter(None, (*_list(self.spec, "clusters", self.where), target, *sources)):
            alias = str(one.get("alias", ""))
            other = found.setdefault(alias, one)
            if other.get("bootstrapServers") != one.get("bootstrapServers"):
                raise ConfigError(
                    f"{self.where}: two clusters have the alias '{alias}': {other.get('bootstrapServers')} and "
                    f"{one.get('bootstrapServers')}",
                    hint="give each an alias of its own: MirrorMaker 2 knows clusters by nothing else",
                )
        return found

    def connect_cluster(self) -> str:
        return str(self.spec.get("connectCluster", ""))

    def cluster(self, clusters: Mapping[str, Mapping[str, Any]], alias: str, field: str) -> Mapping[str, Any]:
        if alias not in clusters:
            known = ", ".join(clusters) or "none"
            raise ConfigError(
                f"{self.where}: {field} '{alias}' is not among the clusters of the resource", hint=f"they are: {known}"
            )
        return clusters[alias]

    def connector(
        self,
        kind: str,
        mirror: Mapping[str, Any],
        spec: Mapping[str, Any],
        pair: tuple[Mapping[str, Any], Mapping[str, Any]],
    ) -> Connector:
        field = _CONNECTORS[kind]
        self.unknown(spec, _CONNECTOR, f"spec.mirrors[].{field}.")
        settings: dict[str, Setting] = {}
        for side, cluster in zip(("source", "target"), pair, strict=True):
            settings |= self.connection(side, cluster)
        config = _dict(spec, "config", self.where)
        for key, value in config.items():
            settings[key] = self.setting(key, value, config, key)
        if spec.get("tasksMax") is not None:
            settings["tasks.max"] = self.setting("tasks.max", spec["tasksMax"], spec, "tasksMax")
        for key, fields in _PATTERNS:
            for name in reversed(fields):
                if mirror.get(name) is not None:
                    settings[key] = self.setting(key, mirror[name], mirror, name)
        state = "paused" if spec.get("pause") is True else str(spec.get("state") or "running")
        full = CONNECTOR_CLASSES[kind]
        name = f"{pair[0].get('alias')}->{pair[1].get('alias')}.{full.rpartition('.')[2]}"
        if state != "running":
            origin = self.origin(spec, "state" if "state" in spec else "pause")
            self.notes.append(
                Note("connector-stopped", name, f"the resource wants {name} {state}", origin, "set its state: running")
            )
        settings["connector.class"] = make_setting("connector.class", full, DRIVER)
        return Connector(name, Settings(settings))

    def connection(self, side: str, cluster: Mapping[str, Any]) -> dict[str, Setting]:
        """Gives the settings of one cluster in a connector, ``source.cluster.`` or ``target.cluster.`` before them."""
        self.unknown(cluster, _CLUSTER, "a cluster's ")
        alias = str(cluster.get("alias", ""))
        if not alias:
            raise ConfigError(f"{self.where}: a cluster has no alias", hint="write alias: primary")
        found: dict[str, tuple[Any, Mapping[str, Any], str]] = {"alias": (alias, cluster, "alias")}
        if cluster.get("bootstrapServers") is not None:
            found["bootstrap.servers"] = (cluster["bootstrapServers"], cluster, "bootstrapServers")
        tls = cluster.get("tls")
        trusted = _list(tls, "trustedCertificates", self.where) if isinstance(tls, dict) else []
        if trusted:
            found["ssl.truststore.certificates"] = (self.certificates(trusted), cluster, "tls")
            found["ssl.truststore.type"] = ("PEM", cluster, "tls")
        protocol = "SSL" if tls is not None else "PLAINTEXT"
        authentication = _dict(cluster, "authentication", self.where)
        if authentication:
            login = self.login(authentication)
            found |= {key: (text, cluster, "authentication") for key, text in login.items()}
            if "sasl.mechanism" in login:
                protocol = "SASL_SSL" if tls is not None else "SASL_PLAINTEXT"
        found["security.protocol"] = (protocol, cluster, "tls" if tls is not None else "bootstrapServers")
        config = _dict(cluster, "config", self.where)
        for key, value in config.items():
            if self.belongs_to_connection(key, config, side):
                found[key] = (value, config, key)
        prefix = f"{side}.cluster."
        return {prefix + key: self.setting(prefix + key, *rest) for key, rest in found.items()}

    def belongs_to_connection(self, key: str, config: Mapping[str, Any], side: str) -> bool:
        origin = self.origin(config, key)
        if key.startswith(_FORBIDDEN) and key not in _PERMITTED:
            remedy = "use the cluster's bootstrapServers, tls and authentication"
            self.notes.append(Note("dropped", key, f"Strimzi ignores {key} in a cluster's config", origin, remedy))
            return False
        if is_client_key(key):
            return True
        if side == "source":
            role = key.partition(".")[0]
            field = _CONNECTORS[SOURCE]
            remedy = f"write {key} in {field}.config" if role in ROLES else "take it out"
            message = f"{key} in the config of a source cluster reaches no connector and no worker"
            self.notes.append(Note("dropped", key, message, origin, remedy))
        return False

    def login(self, authentication: Mapping[str, Any]) -> dict[str, str]:
        kind = str(authentication.get("type", ""))
        scram = {"scram-sha-512": "SCRAM-SHA-512", "scram-sha-256": "SCRAM-SHA-256"}
        if kind == "tls":
            pair = _dict(authentication, "certificateAndKey", self.where)
            return {
                "ssl.keystore.certificate.chain": self.secret(pair, pair.get("certificate")),
                "ssl.keystore.key": self.secret(pair, pair.get("key")),
                "ssl.keystore.type": "PEM",
            }
        if kind == "plain" or kind in scram:
            source = _dict(authentication, "passwordSecret", self.where)
            module = "plain.PlainLoginModule" if kind == "plain" else "scram.ScramLoginModule"
            options = {
                "username": str(authentication.get("username", "")),
                "password": self.secret(source, source.get("password")),
            }
            return {"sasl.mechanism": scram.get(kind, "PLAIN"), "sasl.jaas.config": _jaas(module, options)}
        if kind == "oauth":
            return self.token(authentication)
        if kind == "custom":
            return {str(key): _text(value) for key, value in _dict(authentication, "config", self.where).items()}
        raise ConfigError(
            f"{self.where}: a cluster's authentication type '{kind}' is not known here",
            hint="tls, plain, scram-sha-256, scram-sha-512, oauth and custom are; "
            "take it out and use --set failover.cluster.ALIAS.… for this tool",
        )

    def token(self, authentication: Mapping[str, Any]) -> dict[str, str]:
        """Gives what Strimzi's operator writes for ``oauth``; the trusted certificates in a key of this tool's own."""
        self.unknown(authentication, strimzi_oauth.FIELDS, "an oauth authentication's ")
        for field, reason in strimzi_oauth.not_used(authentication):
            message = f"{field} of an oauth authentication makes no difference to this tool: {reason}"
            self.notes.append(Note("not-used", field, message, self.origin(authentication, field)))
        _dict(authentication, "saslExtensions", self.where)

        def reference(source: Mapping[str, Any], key: str) -> str:
            return self.secret(source, source.get(key))

        login = {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": strimzi_oauth.HANDLER,
            "sasl.jaas.config": _jaas(
                "oauthbearer.OAuthBearerLoginModule", dict(strimzi_oauth.options_of(authentication, reference))
            ),
        }
        if trusted := _list(authentication, "tlsTrustedCertificates", self.where):
            login[strimzi_oauth.CERTIFICATES] = self.certificates(trusted)
        return login

    def certificates(self, trusted: Sequence[Mapping[str, Any]]) -> str:
        return "\n".join(self.secret(one, one.get("certificate") or one.get("pattern")) for one in trusted)

    def worker(self, cluster: Mapping[str, Any]) -> dict[str, Setting]:
        """Gives the settings of the Connect worker, which lives on the target; names default as in v1beta2."""
        found: dict[str, Setting] = {}
        group = "mirrormaker2-cluster"
        for key, text in {
            "group.id": group,
            "config.storage.topic": f"{group}-configs",
            "offset.storage.topic": f"{group}-offsets",
            "status.storage.topic": f"{group}-status",
        }.items():
            found[key] = make_setting(key, text, DRIVER)
        config = _dict(cluster, "config", self.where)
        for key, value in config.items():
            if not is_client_key(key):
                found[key] = self.setting(key, value, config, key)
        for field, key in _WORKER_FIELDS.items():
            if cluster.get(field) is not None:
                found[key] = self.setting(key, cluster[field], cluster, field)
        return found

    def secret(self, source: Mapping[str, Any], key: Any) -> str:
        name = source.get("secretName")
        if not name or not key:
            raise ConfigError(
                f"{self.where}: a secret is named without secretName or its key",
                hint="it wants secretName and certificate, key or password",
            )
        path = f"{self.namespace}/{name}" if self.namespace else str(name)
        return f"${{strimzisecrets:{path}:{key}}}"

    def setting(self, key: str, value: Any, holder: Mapping[str, Any], field: str) -> Setting:
        if isinstance(value, (dict, list)):
            raise ConfigError(
                f"{self.where}: {field}: a list or mapping stands where a text belongs", hint='write "a,b"'
            )
        return make_setting(key, _text(value), self.origin(holder, field))

    def origin(self, holder: Mapping[str, Any], field: str) -> Origin:
        return Origin("file", field, self.where, getattr(holder, "lines", {}).get(field))

    def unknown(self, holder: Mapping[str, Any], known: frozenset[str], prefix: str) -> None:
        for key in holder:
            if key not in known:
                remedy = meant(nearest(key, known, 0.7)) or "take it out"
                message = f"{prefix}{key} is no field of a {KIND} resource"
                self.notes.append(Note("unknown-key", key, message, self.origin(holder, key), remedy))


def find_resources(documents: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the ``KafkaMirrorMaker2`` resources among documents, those in a Kubernetes ``List`` included."""
    for document in documents:
        if is_resource(document):
            yield document
        elif isinstance(document, dict) and isinstance(document.get("items"), list):
            yield from find_resources(document["items"])


def _jaas(module: str, options: Mapping[str, str]) -> str:
    quoted = " ".join(f'{key}="{_escaped(text)}"' for key, text in options.items())
    return f"org.apache.kafka.common.security.{module} required {quoted};"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _dict(holder: Any, field: str, where: str) -> Mapping[str, Any]:
    found = holder.get(field) if isinstance(holder, dict) else None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigError(f"{where}: {field} is no mapping", hint="see Strimzi's description of the resource")
    return found


def _list(holder: Any, field: str, where: str) -> list[Mapping[str, Any]]:
    found = holder.get(field) if isinstance(holder, dict) else None
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ConfigError(f"{where}: {field} is no list of mappings", hint="see Strimzi's description of the resource")
    return found
