"""Turns the ``ssl.`` settings of a Java client into TLS settings: stores read, keys decrypted, all as PEM text."""

from __future__ import annotations

from typing import Final

from failover.config import pem
from failover.config.clients import TlsSettings
from failover.config.java_reader import ClientReader
from failover.config.secret import Secret
from failover.config.stores import Store, check_identity, private_key
from failover.errors import ConfigError

DEFAULT_ENGINE: Final = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"


def read_tls(reader: ClientReader) -> TlsSettings:
    """Gives the TLS settings; raises ConfigError naming the setting and what to write instead."""
    engine = "ssl.engine.factory.class"
    if reader.value(engine) not in ("", DEFAULT_ENGINE):
        reader.refuse_class(
            engine,
            f"give the certificates in {reader.own('ssl.truststore.location')} and, for a client certificate, "
            f"{reader.own('ssl.keystore.location')}, and set {reader.own(engine)}=",
        )
    chain, key = _identity(reader)
    return TlsSettings(
        ca_pem=_authorities(reader),
        certificate_chain_pem=chain,
        key_pem=key,
        verify_hostname=_verify_hostname(reader),
    )


def _verify_hostname(reader: ClientReader) -> bool:
    key = "ssl.endpoint.identification.algorithm"
    if key not in reader.properties:
        return True
    algorithm = reader.value(key)
    if algorithm.lower() not in ("", "https"):
        # Java's "LDAPS" differs only in wildcards; not checking at all would be the wrong guess.
        raise ConfigError(
            f"{reader.where(key)}: '{algorithm}' is not known",
            hint="write https, or nothing to switch the check off",
        )
    return bool(algorithm)


def _authorities(reader: ClientReader) -> str | None:
    inline = reader.value("ssl.truststore.certificates")
    if inline:
        return pem.certificates(inline, where=reader.where("ssl.truststore.certificates"))
    store = _store(reader, "truststore")
    return None if store is None else store.certificates()


def _identity(reader: ClientReader) -> tuple[str | None, Secret | None]:
    chain_key, key_key, password_key = "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.key.password"
    chain, key = reader.value(chain_key), reader.value(key_key)
    if bool(chain) != bool(key):
        present, absent = (chain_key, key_key) if chain else (key_key, chain_key)
        raise ConfigError(f"{reader.where(present)} is set without {absent}", hint="set both or neither")
    password = reader.secret(password_key)
    if key:
        where = reader.where(key_key)
        certificates = pem.certificates(chain, where=reader.where(chain_key))
        private = private_key(key, password, where=where, setting=reader.own(password_key))
    else:
        store = _store(reader, "keystore")
        if store is None:
            return None, None
        where = f"{store.where}: {store.path}"
        certificates, private = store.identity(password)
    check_identity(certificates, private, where=where)
    return certificates, private


def _store(reader: ClientReader, kind: str) -> Store | None:
    location, password = f"ssl.{kind}.location", f"ssl.{kind}.password"
    path = reader.value(location)
    if not path:
        return None
    return Store(
        path,
        where=reader.where(location),
        password=reader.secret(password),
        password_where=reader.where(password),
        password_setting=reader.own(password),
        key_setting=reader.own("ssl.key.password"),
    )
