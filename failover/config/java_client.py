"""Turns Java client settings into connection settings by one explicit table; nothing passes through.

librdkafka and Java share names but not meanings, and librdkafka refuses what it does not know, so each Java setting
is used, refused with what to do instead, or ignored for a stated reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NoReturn, cast, get_args

from failover.config import pem
from failover.config.clients import ClientSettings, SaslSettings, SecurityProtocol, TlsSettings
from failover.config.jaas import parse_jaas
from failover.config.mm2_keys import is_client_key
from failover.config.secret import Secret
from failover.config.settings import Note, Setting
from failover.errors import ConfigError

USED: Final = frozenset(
    {
        "bootstrap.servers",
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.certificates",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        # Of JKS and PKCS#12 stores only; a PEM store has none.
        "ssl.truststore.password",
        "ssl.keystore.password",
    }
)
REFUSED_WITH_SASL: Final = (
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
)
REFUSED_WITH_TLS: Final = ("ssl.engine.factory.class",)
# Key or prefix (with its dot) and why it is left aside.
IGNORED: Final = {
    "ssl.protocol": "OpenSSL picks the newest version both sides speak",
    "ssl.enabled.protocols": "OpenSSL picks the newest version both sides speak",
    "ssl.cipher.suites": "OpenSSL picks the cipher",
    "ssl.provider": "it names a Java security provider",
    "ssl.keymanager.algorithm": "it concerns Java only",
    "ssl.trustmanager.algorithm": "it concerns Java only",
    "ssl.secure.random.implementation": "it concerns Java only",
    "sasl.kerberos.": "it concerns Kerberos only",
    "sasl.oauthbearer.": "it concerns OAUTHBEARER only",
    "sasl.login.refresh.": "it concerns OAUTHBEARER only",
    "sasl.login.connect.timeout.ms": "it concerns OAUTHBEARER only",
    "sasl.login.read.timeout.ms": "it concerns OAUTHBEARER only",
    "sasl.login.retry.": "it concerns OAUTHBEARER only",
}

_LOGIN_MODULES: Final = ("PlainLoginModule", "ScramLoginModule")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# Kafka: ClientUtils and Utils.HOST_PORT_PATTERN; a leading PROTOCOL:// is allowed and means nothing.
_HOST_PORT: Final = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
# Kafka: ConfigTransformer.DEFAULT_PATTERN.
_REFERENCE: Final = re.compile(r"\$\{([^}]*?):(?:[^}]*?:)?[^}]*?\}")


def references(text: str) -> tuple[str, ...]:
    """Gives the provider names of all ``${provider:path:key}`` in a value."""
    return tuple(match.group(1) for match in _REFERENCE.finditer(text))


def read_client(
    properties: Mapping[str, Setting], *, alias: str, providers: frozenset[str] = frozenset()
) -> ClientSettings:
    """Gives the connection settings that Java client properties mean, for the cluster ``alias``.

    ``providers`` are the declared configuration providers: a needed value that refers to one is an error, a
    reference to an undeclared one stays literal, as in Kafka. Reads PEM files, contacts nothing. Raises ConfigError
    naming the setting and what to write instead, before any connection.
    """
    return _Reader(properties, alias, providers).client()


def client_notes(properties: Mapping[str, Setting], alias: str) -> Iterable[Note]:
    """Gives a note for each TLS or SASL setting that MM2 uses and this tool does not."""
    for key, setting in properties.items():
        if not is_client_key(key) or key in USED or key in REFUSED_WITH_SASL or key in REFUSED_WITH_TLS:
            continue
        reason = next(
            (why for name, why in IGNORED.items() if key == name or (key.startswith(name) and name[-1] == ".")), ""
        )
        message = f"{setting.origin.key or key} is not used to connect to {alias}"
        yield Note("not-used", key, f"{message}: {reason}" if reason else message, setting.origin)


class _Reader:
    def __init__(self, properties: Mapping[str, Setting], alias: str, providers: frozenset[str]) -> None:
        self.properties = properties
        self.alias = alias
        self.providers = providers

    def client(self) -> ClientSettings:
        protocol = self.protocol()
        bootstrap = self.bootstrap()
        sasl = self.sasl() if protocol.startswith("SASL_") else None
        tls = self.tls() if protocol.endswith("SSL") else None
        return ClientSettings(bootstrap, protocol, sasl, tls)

    def value(self, key: str) -> str:
        """Gives a trimmed value, empty if not set; refuses one that only a provider could resolve."""
        setting = self.properties.get(key)
        if setting is None:
            return ""
        for provider in references(setting.text):
            if provider in self.providers:
                raise ConfigError(
                    f"{setting.described()} takes its value from the configuration provider '{provider}', "
                    f"which cannot be asked; it is needed to connect to {self.alias}",
                    hint=f"give the value itself with --set {self.own(key)}=… or in the file",
                )
        return setting.trimmed

    def where(self, key: str) -> str:
        setting = self.properties.get(key)
        return setting.described() if setting is not None else f"{self.alias}.{key}"

    def own(self, key: str) -> str:
        return f"failover.cluster.{self.alias}.{key}"

    def protocol(self) -> SecurityProtocol:
        protocol = (self.value("security.protocol") or "PLAINTEXT").upper()
        known = get_args(SecurityProtocol)
        if protocol not in known:
            raise ConfigError(
                f"{self.where('security.protocol')}: '{protocol}' is not a security protocol",
                hint=f"write one of {', '.join(known)}, with nothing after it",
            )
        return cast(SecurityProtocol, protocol)

    def bootstrap(self) -> tuple[tuple[str, int], ...]:
        servers = [server.strip() for server in self.value("bootstrap.servers").split(",") if server.strip()]
        if not servers:
            raise ConfigError(
                f"cluster '{self.alias}' has no bootstrap.servers", hint=f"set {self.alias}.bootstrap.servers=host:port"
            )
        pairs = []
        for server in servers:
            match = _HOST_PORT.fullmatch(server)
            if match is None or not match.group(1) or not 0 < int(match.group(2)) < 65536:
                raise ConfigError(
                    f"{self.where('bootstrap.servers')}: '{server}' is not host:port",
                    hint="write host:port, several separated by commas, with nothing after them",
                )
            pairs.append((match.group(1), int(match.group(2))))
        return tuple(pairs)

    # -- SASL ------------------------------------------------------------------------------------

    def sasl(self) -> SaslSettings:
        mechanism = self.value("sasl.mechanism") or "GSSAPI"
        if mechanism not in _MECHANISMS:
            given = "is not set, which means GSSAPI (Kerberos)," if not self.value("sasl.mechanism") else f"{mechanism}"
            raise ConfigError(
                f"{self.where('sasl.mechanism')}: {given} cannot be used here: only {', '.join(_MECHANISMS)}",
                hint=f"give this tool credentials of its own: {self.own('sasl.mechanism')}=SCRAM-SHA-512 and "
                f"{self.own('sasl.jaas.config')}=…, or another listener by {self.own('bootstrap.servers')}",
            )
        for key in REFUSED_WITH_SASL:
            if self.value(key):
                self.refuse_class(key, f"set {self.own('sasl.jaas.config')}=… and {self.own(key)}=")
        jaas = self.value("sasl.jaas.config")
        if not jaas:
            module_name = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
            raise ConfigError(
                f"cluster '{self.alias}' uses {mechanism} without sasl.jaas.config (a JVM's login file is not read)",
                hint=f"set {self.own('sasl.jaas.config')}=org.apache.kafka.common.security.{module_name} "
                'required username="…" password="…";',
            )
        module = parse_jaas(jaas, where=self.where("sasl.jaas.config"))
        if module.short_name not in _LOGIN_MODULES:
            raise ConfigError(
                f"{self.where('sasl.jaas.config')}: {module.name} is a Java class and cannot be used here",
                hint=f"give a user name and password with {self.own('sasl.jaas.config')}",
            )
        username, password = module.options.get("username"), module.options.get("password")
        if not username or password is None:
            missing = "username" if not username else "password"
            raise ConfigError(
                f"{self.where('sasl.jaas.config')} has no {missing}",
                hint='it needs username="…" password="…" before the semicolon',
            )
        if "tokenauth" in module.options:
            raise ConfigError(
                f"{self.where('sasl.jaas.config')}: delegation tokens (tokenauth) cannot be used here",
                hint=f"give a user name and password with {self.own('sasl.jaas.config')}",
            )
        return SaslSettings(mechanism, username.reveal(), password)

    def refuse_class(self, key: str, hint: str) -> NoReturn:
        raise ConfigError(f"{self.where(key)}: {self.value(key)} is a Java class and cannot be used here", hint=hint)

    # -- TLS -------------------------------------------------------------------------------------

    def tls(self) -> TlsSettings:
        for key in REFUSED_WITH_TLS:
            if self.value(key):
                self.refuse_class(key, f"set {self.own('ssl.truststore.location')} to a PEM file and {self.own(key)}=")
        chain, private_key, encrypted = self.identity()
        password = Secret(self.value("ssl.key.password")) if self.value("ssl.key.password") else None
        if encrypted and password is None:
            raise ConfigError(
                f"the private key for cluster '{self.alias}' is encrypted and there is no ssl.key.password",
                hint=f"set {self.own('ssl.key.password')}=…",
            )
        return TlsSettings(
            ca_pem=self.authorities(),
            certificate_chain_pem=chain,
            key_pem=private_key,
            key_password=password if encrypted else None,
            verify_hostname=self.verify_hostname(),
        )

    def verify_hostname(self) -> bool:
        setting = self.properties.get("ssl.endpoint.identification.algorithm")
        if setting is None:
            return True
        algorithm = self.value("ssl.endpoint.identification.algorithm").lower()
        if algorithm not in ("", "https"):
            # Java's "LDAPS" differs only in wildcards; not checking at all would be the wrong guess.
            raise ConfigError(
                f"{setting.described()}: '{setting.shown}' is not known",
                hint="write https, or nothing to switch the check off",
            )
        return algorithm == "https"

    def authorities(self) -> str | None:
        inline = self.value("ssl.truststore.certificates")
        if inline:
            return pem.certificates(inline, where=self.where("ssl.truststore.certificates"))
        text = self.pem_file("truststore")
        return None if text is None else pem.certificates(text, where=self.where("ssl.truststore.location"))

    def identity(self) -> tuple[str | None, Secret | None, bool]:
        chain_key, key_key = "ssl.keystore.certificate.chain", "ssl.keystore.key"
        chain, key = self.value(chain_key), self.value(key_key)
        if bool(chain) != bool(key):
            present, absent = (chain_key, key_key) if chain else (key_key, chain_key)
            raise ConfigError(f"{self.where(present)} is set without {absent}", hint="set both or neither")
        if not key:
            text = self.pem_file("keystore")
            if text is None:
                return None, None, False
            chain = key = text
            chain_key = key_key = "ssl.keystore.location"
        key_pem, encrypted = pem.private_key(key, where=self.where(key_key))
        return pem.certificates(chain, where=self.where(chain_key)), Secret(key_pem), encrypted

    def pem_file(self, store: str) -> str | None:
        """Gives the text of a PEM trust or key store; refuses the binary kinds with the commands that convert them."""
        key = f"ssl.{store}.location"
        path = self.value(key)
        if not path:
            return None
        kind, data = pem.read_store(path, where=self.where(key))
        if kind == "PEM":
            return data.decode("latin-1")
        if kind == "unknown":
            raise ConfigError(f"{self.where(key)}: {path} is no PEM file", hint="give a PEM file")
        name = {"JKS": "a Java key store (JKS)", "PKCS12": "a PKCS#12 store"}[kind]
        stem = path.rsplit(".", 1)[0] if "." in path.rsplit("/", 1)[-1] else path
        part = "-nokeys" if store == "truststore" else "-nodes"
        if kind == "JKS":
            steps = f"keytool -importkeystore -srckeystore {path} -destkeystore {stem}.p12 -deststoretype PKCS12; "
            steps += f"openssl pkcs12 -in {stem}.p12 {part} -out {stem}.pem"
        else:
            steps = f"openssl pkcs12 -in {path} {part} -out {stem}.pem"
        raise ConfigError(
            f"{self.where(key)}: {path} is {name}, which cannot be read here",
            hint=f"{steps}; then set {self.own(f'ssl.{store}.type')}=PEM and {self.own(key)}={stem}.pem",
        )
