"""A configuration as Strimzi's ``KafkaMirrorMaker2`` resource: one for each target, secrets named and never written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from failover.config.connect_json import BYTES, Connector, flow_connectors
from failover.config.flow import Config, FlowConfig
from failover.config.jaas import parse_jaas
from failover.config.mm2 import CONVERTERS, with_prefix
from failover.config.mm2_keys import CHECKPOINT, CONNECTOR_KEYS, HEARTBEAT, ROLES, SOURCE, is_client_key
from failover.config.providers import REFERENCE
from failover.config.secret import Secret
from failover.config.settings import Setting
from failover.config.strimzi_oauth import CERTIFICATES, HANDLER, NO_CERTIFICATES, fields_of
from failover.errors import ConfigError

Version = Literal["v1", "v1beta2"]
_FIELDS: Final = {SOURCE: "sourceConnector", CHECKPOINT: "checkpointConnector", HEARTBEAT: "heartbeatConnector"}
_PATTERNS: Final = {
    "topics": "topicsPattern",
    "topics.exclude": "topicsExcludePattern",
    "groups": "groupsPattern",
    "groups.exclude": "groupsExcludePattern",
}
_STORAGE: Final = {
    "groupId": ("group.id", ""),
    "configStorageTopic": ("config.storage.topic", "-configs"),
    "offsetStorageTopic": ("offset.storage.topic", "-offsets"),
    "statusStorageTopic": ("status.storage.topic", "-status"),
}
# What may stand in a cluster's config (Strimzi: KafkaMirrorMaker2ClusterSpec.FORBIDDEN_PREFIX_EXCEPTIONS).
_PERMITTED: Final = (
    "ssl.endpoint.identification.algorithm",
    "ssl.cipher.suites",
    "ssl.protocol",
    "ssl.enabled.protocols",
)
_SCRAM: Final = {"SCRAM-SHA-512": "scram-sha-512", "SCRAM-SHA-256": "scram-sha-256", "PLAIN": "plain"}
_SECRETS: Final = "mirror-secrets"
_DROPPED: Final = ("name", "connector.class", "tasks.max")
_CONNECTIONS: Final = ("source.cluster.", "target.cluster.", "failover.")
# The operator makes the worker's converters and clients itself.
_NOT_WORKER: Final = ("config.providers", "client.id", *CONVERTERS, "replication.policy")


class Resources:
    """Makes the resources of some flows. ``remarks``: what its reader must know, secrets to be made among it."""

    def __init__(self, config: Config, version: Version) -> None:
        self.config = config
        self.version = version
        self.remarks: list[str] = []

    def make(self, flows: Sequence[FlowConfig]) -> list[dict[str, Any]]:
        """Gives one resource for each target; raises ConfigError for what the resource has no place for."""
        targets = dict.fromkeys(flow.target.alias for flow in flows)
        return [self._resource([flow for flow in flows if flow.target.alias == target]) for target in targets]

    def _resource(self, flows: Sequence[FlowConfig]) -> dict[str, Any]:
        target = flows[0].target.alias
        # Written out: Strimzi wants a full version that its own release supports.
        major, minor = self.config.mm2_version
        spec: dict[str, Any] = {"version": f"{major}.{minor}.0", "replicas": 1}
        made = [flow_connectors(flow) for flow in flows]
        into = self._cluster(target, made[0][0], "target") | self._worker(flows[0])
        if self.version == "v1":
            spec["target"] = into
        else:
            sources = [
                self._cluster(flow.source.alias, one[0], "source") for flow, one in zip(flows, made, strict=True)
            ]
            spec |= {"connectCluster": target, "clusters": [*sources, self._in_config(into)]}
        spec["mirrors"] = [self._mirror(flow, one) for flow, one in zip(flows, made, strict=True)]
        metadata = {"name": re.sub(r"[^a-z0-9-]+", "-", f"mirror-to-{target}".lower()).strip("-")}
        namespaces = {one for connectors in made for connector in connectors for one in _namespaces(connector)}
        if len(namespaces) == 1:
            metadata["namespace"] = namespaces.pop()
        return {
            "apiVersion": f"kafka.strimzi.io/{self.version}",
            "kind": "KafkaMirrorMaker2",
            "metadata": metadata,
            "spec": spec,
        }

    def _mirror(self, flow: FlowConfig, connectors: Sequence[Connector]) -> dict[str, Any]:
        mirror: dict[str, Any] = {}
        if self.version == "v1":
            mirror["source"] = self._cluster(flow.source.alias, connectors[0], "source")
        else:
            mirror |= {"sourceCluster": flow.source.alias, "targetCluster": flow.target.alias}
        for connector in connectors:
            kind = connector.kind or SOURCE
            if kind == HEARTBEAT and self.version == "v1":
                self.remarks.append(f"{flow.name} gets no heartbeats: version v1 has no heartbeatConnector")
                continue
            spec: dict[str, Any] = {}
            if "tasks.max" in connector.settings:
                spec["tasksMax"] = connector.settings.integer("tasks.max")
            config = {}
            for key, setting in connector.settings.items():
                # The operator's worker has MM2's converters already.
                usual = (key in CONVERTERS and setting.trimmed == BYTES) or _is_of_worker(flow, key)
                if key in _PATTERNS and kind != HEARTBEAT and _is_shared(connectors, key):
                    mirror[_PATTERNS[key]] = setting.text
                elif not usual and key not in _DROPPED and not key.startswith(_CONNECTIONS):
                    config[key] = self._plain(setting)
            mirror[_FIELDS[kind]] = spec | ({"config": config} if config else {})
        order = ["source", "sourceCluster", "targetCluster", *_FIELDS.values(), *_PATTERNS.values()]
        return {key: mirror[key] for key in order if key in mirror}

    def _cluster(self, alias: str, connector: Connector, side: str) -> dict[str, Any]:
        settings = {
            key: one for key, one in with_prefix(connector.settings, f"{side}.cluster.").items() if key != "alias"
        }
        cluster: dict[str, Any] = {"alias": alias, "bootstrapServers": settings.pop("bootstrap.servers").text}
        protocol = settings.pop("security.protocol").trimmed.upper() if "security.protocol" in settings else "PLAINTEXT"
        if protocol.endswith("SSL"):
            cluster["tls"] = {"trustedCertificates": self._trusted(alias, settings)}
        if protocol.startswith("SASL"):
            cluster["authentication"] = self._login(alias, settings)
        elif protocol == "SSL" and any(key.startswith("ssl.keystore.") for key in settings):
            cluster["authentication"] = {"type": "tls", "certificateAndKey": self._certificate(alias, settings)}
        config = {key: settings.pop(key).text for key in _PERMITTED if key in settings}
        if config:
            cluster["config"] = config
        ignored = [key for key in settings if is_client_key(key)]
        if ignored:
            self.remarks.append(f"left out of {alias}, since Strimzi sets it itself: {', '.join(sorted(ignored))}")
        return cluster

    def _trusted(self, alias: str, settings: dict[str, Setting]) -> list[dict[str, str]]:
        present = [settings.pop(key) for key in list(settings) if key.startswith("ssl.truststore.")]
        if not present:
            return []
        return self._trusted_in(present, f"{alias}-ca", f"the PEM certificates to trust for {alias}")

    def _trusted_in(self, present: Sequence[Setting], secret: str, content: str) -> list[dict[str, str]]:
        """Gives the references that settings hold; without any, one to a secret of this name that has to be made."""
        named = [one for setting in present for one in _secrets_in(setting.text)]
        if not named:
            self._make_secret(secret, {"ca.crt": content})
            return [{"secretName": secret, "certificate": "ca.crt"}]
        return [{"secretName": name, "pattern" if "*" in key else "certificate": key} for name, key in named]

    def _certificate(self, alias: str, settings: dict[str, Setting]) -> dict[str, str]:
        chain, key = settings.get("ssl.keystore.certificate.chain"), settings.get("ssl.keystore.key")
        named = [one for setting in (chain, key) if setting is not None for one in _secrets_in(setting.text)]
        for name in [name for name in settings if name.startswith("ssl.key")]:
            del settings[name]
        if len(named) == 2:
            return {"secretName": named[0][0], "certificate": named[0][1], "key": named[1][1]}
        self._make_secret(
            f"{alias}-user",
            {"user.crt": f"the certificate for {alias}", "user.key": "its key, PKCS#8 in PEM, unencrypted"},
        )
        return {"secretName": f"{alias}-user", "certificate": "user.crt", "key": "user.key"}

    def _login(self, alias: str, settings: dict[str, Setting]) -> dict[str, Any]:
        mechanism = settings["sasl.mechanism"].trimmed if "sasl.mechanism" in settings else "GSSAPI"
        jaas = settings.get("sasl.jaas.config")
        parsed = None
        if jaas is not None and mechanism in _SCRAM:
            try:
                parsed = parse_jaas(jaas.text, where=jaas.described())
            except ConfigError:
                parsed = None  # a reference that gives the whole text: it goes over as it is
        if parsed is not None and "username" in parsed.options and "password" in parsed.options:
            for key in ("sasl.mechanism", "sasl.jaas.config"):
                settings.pop(key, None)
            named = _secrets_in(parsed.options["password"].reveal())
            if not named:
                self._make_secret(f"{alias}-login", {"password": "the password of its user"})
            name, key = named[0] if named else (f"{alias}-login", "password")
            return {
                "type": _SCRAM[mechanism],
                "username": parsed.options["username"].reveal(),
                "passwordSecret": {"secretName": name, "password": key},
            }
        if (token := self._token(alias, mechanism, settings)) is not None:
            return token
        if settings.pop(CERTIFICATES, None) is not None:
            self.remarks.append(f"{alias}: {NO_CERTIFICATES}")
        config = {}
        for key in [key for key in settings if key.startswith("sasl.")]:
            config[key] = self._plain(settings.pop(key), f"{alias}-login")
        return {"type": "custom", "sasl": True, "config": config}

    def _token(self, alias: str, mechanism: str, settings: dict[str, Setting]) -> dict[str, Any] | None:
        """Gives what Strimzi's library reads as ``oauth``, which version v1 has not; None for what is none of it."""
        handler = settings.get("sasl.login.callback.handler.class")
        jaas = settings.get("sasl.jaas.config")
        if self.version == "v1" or mechanism != "OAUTHBEARER" or handler is None or jaas is None:
            return None
        if handler.trimmed != HANDLER:
            return None

        def secret(field: str, key: str, text: str) -> Mapping[str, str]:
            named = _secrets_in(text)
            if not named:
                self._make_secret(f"{alias}-oauth", {field: f"the {field} for {alias}"})
            name, entry = named[0] if named else (f"{alias}-oauth", field)
            return {"secretName": name, key: entry}

        try:
            found = fields_of(parse_jaas(jaas.text, where=jaas.described()), secret)
        except ConfigError:
            return None  # a reference that gives the whole text
        if found is None:
            return None
        for key in ("sasl.mechanism", "sasl.jaas.config", "sasl.login.callback.handler.class"):
            del settings[key]
        certificates = settings.pop(CERTIFICATES, None)
        if certificates is not None:
            found["tlsTrustedCertificates"] = self._trusted_in(
                [certificates], f"{alias}-oauth-ca", "the PEM certificates to trust for its tokens"
            )
        return found

    def _plain(self, setting: Setting, secret_name: str = _SECRETS) -> str:
        """Gives a value; a literal secret becomes a reference to a Kubernetes secret that has to be made."""
        if isinstance(setting.value, Secret) and setting.text and not REFERENCE.search(setting.text):
            self._make_secret(secret_name, {setting.key: f"the value of {setting.key}"})
            return f"${{strimzisecrets:NAMESPACE/{secret_name}:{setting.key}}}"
        return setting.text

    def _worker(self, flow: FlowConfig) -> dict[str, Any]:
        kept = self.config.form == "strimzi"
        found: dict[str, Any] = {}
        for field, (key, suffix) in _STORAGE.items():
            setting = flow.worker[key]
            given = setting.origin.kind != "driver" or kept
            found[field] = setting.text if given else f"mirror-to-{flow.target.alias}{suffix}"
        config = {}
        taken = {key for key, _ in _STORAGE.values()}
        for key, setting in flow.worker.items():
            role, _, name = key.partition(".")
            connection = is_client_key(key) or (role in ROLES and is_client_key(name))
            made = (
                setting.origin.kind == "driver" or key in taken or key.startswith(_NOT_WORKER) or key in CONNECTOR_KEYS
            )
            if not connection and not made:
                config[key] = self._plain(setting)
        if config:
            found["config"] = config
        return found

    def _in_config(self, into: Mapping[str, Any]) -> dict[str, Any]:
        """Puts the worker's names where v1beta2 has them: into the target's config."""
        names = {key: into[field] for field, (key, _) in _STORAGE.items() if field in into}
        rest = {key: value for key, value in into.items() if key not in _STORAGE and key != "config"}
        return rest | {"config": names | dict(into.get("config", {}))}

    def _make_secret(self, name: str, keys: Mapping[str, str]) -> None:
        options = " ".join(f"--from-file={key}=FILE" for key in keys)
        what = "; ".join(f"{key}: {text}" for key, text in keys.items())
        self.remarks.append(f"make a secret ({what}): kubectl create secret generic {name} {options}")


def _is_of_worker(flow: FlowConfig, key: str) -> bool:
    """Tells whether a connector's setting only repeats one of its worker, which the resource has too."""
    name = f"producer.{key.removeprefix('producer.override.')}"
    return key.startswith("producer.override.") and key not in flow.connectors[SOURCE] and name in flow.worker


def _is_shared(connectors: Sequence[Connector], key: str) -> bool:
    """Tells whether a pattern may stand for the whole mirror: no connector that has topics or groups says otherwise."""
    kinds = (CHECKPOINT,) if key.startswith("groups") else (SOURCE, CHECKPOINT)
    having = [one.settings for one in connectors if one.kind in kinds]
    return len({settings[key].text if key in settings else None for settings in having}) == 1


def _namespaces(connector: Connector) -> Iterator[str]:
    for setting in connector.settings.values():
        for match in REFERENCE.finditer(setting.text):
            if match.group(1).endswith("secrets") and "/" in (match.group(2) or ""):
                yield match.group(2).partition("/")[0]


def _secrets_in(text: str) -> list[tuple[str, str]]:
    """Gives (name, key) of each Kubernetes secret that a value refers to."""
    return [
        ((match.group(2) or "").rpartition("/")[2], match.group(3))
        for match in REFERENCE.finditer(text)
        if match.group(1).endswith("secrets")
    ]
