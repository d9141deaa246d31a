"""Turns the ``sasl.`` settings of a Java client into an identity: a user with a password, or a source of tokens."""

from __future__ import annotations

from typing import Final

from failover.config.clients import SaslSettings
from failover.config.jaas import LoginModule, parse_jaas
from failover.config.java_reader import ClientReader
from failover.errors import ConfigError

WITH_PASSWORD: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = (*WITH_PASSWORD, "OAUTHBEARER", "AWS_MSK_IAM")
CALLBACKS: Final = ("sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class")

_KAFKA: Final = "org.apache.kafka.common.security"
_PASSWORD_MODULES: Final = ("PlainLoginModule", "ScramLoginModule")


def read_sasl(reader: ClientReader) -> SaslSettings:
    """Gives the identity; raises ConfigError naming the setting and what to write instead."""
    given = reader.value("sasl.mechanism")
    mechanism = given or "GSSAPI"
    if mechanism not in MECHANISMS:
        said = mechanism if given else "is not set, which means GSSAPI (Kerberos),"
        raise ConfigError(
            f"{reader.where('sasl.mechanism')}: {said} cannot be used here: only {', '.join(MECHANISMS)}",
            hint=f"give this tool credentials of its own: {reader.own('sasl.mechanism')}=SCRAM-SHA-512 and "
            f"{reader.own('sasl.jaas.config')}=…, or another listener by {reader.own('bootstrap.servers')}",
        )
    if mechanism not in WITH_PASSWORD:
        from failover.config.java_oauth import read_token

        return SaslSettings("OAUTHBEARER", token=read_token(reader, mechanism))
    for key in CALLBACKS:
        if reader.value(key):
            reader.refuse_class(key, f"set {reader.own('sasl.jaas.config')}=… and {reader.own(key)}=")
    return _with_password(reader, mechanism)


def login_module(reader: ClientReader, example: str) -> LoginModule:
    """Gives the one login module of ``sasl.jaas.config``; ``example`` is what the hint offers if it is not set."""
    jaas = reader.value("sasl.jaas.config")
    if not jaas:
        raise ConfigError(
            f"cluster '{reader.alias}' uses {reader.value('sasl.mechanism')} without sasl.jaas.config "
            "(a JVM's login file is not read)",
            hint=f"set {reader.own('sasl.jaas.config')}={example}",
        )
    return parse_jaas(jaas, where=reader.where("sasl.jaas.config"))


def _with_password(reader: ClientReader, mechanism: str) -> SaslSettings:
    name = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    module = login_module(reader, f'{_KAFKA}.{name} required username="…" password="…";')
    where = reader.where("sasl.jaas.config")
    if module.short_name not in _PASSWORD_MODULES:
        raise ConfigError(
            f"{where}: {module.name} is a Java class and cannot be used here",
            hint=f"give a user name and password with {reader.own('sasl.jaas.config')}",
        )
    username, password = module.options.get("username"), module.options.get("password")
    if not username or password is None:
        missing = "username" if not username else "password"
        raise ConfigError(f"{where} has no {missing}", hint='it needs username="…" password="…" before the semicolon')
    if "tokenauth" in module.options:
        raise ConfigError(
            f"{where}: delegation tokens (tokenauth) cannot be used here",
            hint=f"give a user name and password with {reader.own('sasl.jaas.config')}",
        )
    return SaslSettings(mechanism, username.reveal(), password)
