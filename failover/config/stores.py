"""Reads trust and key stores of any kind Java clients use into PEM text: PEM itself, PKCS#12, JKS.

What a store is tells its content, not its name: a ".jks" that keytool of Java 9 or later wrote is PKCS#12. Nothing is
written anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from failover.config import pem
from failover.config.secret import Secret
from failover.config.stores_jks import DamagedStore, JksEntry, WrongPassword, read_jks, unprotected
from failover.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

_OUTDATED = "keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12 -deststoretype PKCS12"


class Store(msgspec.Struct, frozen=True):
    """Is one trust or key store as configured.

    ``where`` names the setting that holds the path, ``password_where`` the one that holds the password;
    ``password_setting`` is the one an operator would give it in, ``key_setting`` that of the key's own password.
    """

    path: str
    where: str
    password: Secret | None
    password_where: str
    password_setting: str
    key_setting: str = ""

    def certificates(self) -> str:
        """Gives the trusted certificates; raises ConfigError if there are none or the store cannot be read."""
        kind, data = pem.read_store(self.path, where=self.where)
        if kind == "PEM":
            return pem.certificates(data.decode("latin-1"), where=self.where)
        if kind == "JKS":
            trusted = [der for entry in self._jks(data) if entry.protected_key is None for der in entry.certificates]
        elif kind == "PKCS12":
            trusted = [_der(each.certificate) for each in self._pkcs12(data).additional_certs]
        else:
            raise self._unknown(data)
        if not trusted:
            raise ConfigError(
                f"{self.where}: {self.path} holds no trusted certificate", hint="keytool -list -keystore shows entries"
            )
        return "".join(pem.encoded("CERTIFICATE", der) for der in trusted)

    def identity(self, key_password: Secret | None) -> tuple[str, Secret]:
        """Gives the certificate chain, own first, and its private key, unencrypted.

        ``key_password`` None means the store's own, as in Java. Raises ConfigError if the store cannot be read, holds
        no key or more than one.
        """
        kind, data = pem.read_store(self.path, where=self.where)
        if kind == "PEM":
            text = data.decode("latin-1")
            key = private_key(text, key_password, where=self.where, setting=self.key_setting)
            return pem.certificates(text, where=self.where), key
        if kind == "JKS":
            return self._jks_identity(data, key_password or self.password)
        if kind == "PKCS12":
            return self._pkcs12_identity(data)
        raise self._unknown(data)

    # -- JKS -------------------------------------------------------------------------------------

    def _jks(self, data: bytes) -> tuple[JksEntry, ...]:
        try:
            return read_jks(data, self.password.reveal() if self.password else None)
        except WrongPassword:
            raise self._wrong_password() from None
        except DamagedStore as damage:
            raise self._damaged(str(damage)) from None

    def _jks_identity(self, data: bytes, key_password: Secret | None) -> tuple[str, Secret]:
        entries = [entry for entry in self._jks(data) if entry.protected_key is not None]
        if len(entries) != 1:
            raise self._not_one_key([entry.alias for entry in entries])
        entry = entries[0]
        if key_password is None:
            raise ConfigError(
                f"{self.where}: the key in {self.path} is protected and no password is set",
                hint=f"set {self.password_setting}=…",
            )
        try:
            key = unprotected(entry.protected_key or b"", key_password.reveal())
        except WrongPassword:
            raise ConfigError(
                f"{self.where}: the password of the key '{entry.alias}' in {self.path} is wrong",
                hint=f"set {self.key_setting}=… (without it the store's password is tried)",
            ) from None
        except DamagedStore as damage:
            raise self._damaged(str(damage)) from None
        chain = "".join(pem.encoded("CERTIFICATE", der) for der in entry.certificates)
        return chain, Secret(pem.encoded("PRIVATE KEY", key))

    # -- PKCS#12 ---------------------------------------------------------------------------------

    def _pkcs12(self, data: bytes) -> PKCS12KeyAndCertificates:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

        try:
            return load_pkcs12(data, self.password.reveal().encode() if self.password else None)
        except UnsupportedAlgorithm as error:
            raise ConfigError(
                f"{self.where}: {self.path} is encrypted in a way that is not supported ({error})",
                hint=f"write it anew with a current Java: {_OUTDATED.format(path=self.path)}",
            ) from None
        except ValueError as error:
            if "password" in str(error).lower():
                raise self._wrong_password() from None
            raise self._damaged("it is no valid PKCS#12 store") from None

    def _pkcs12_identity(self, data: bytes) -> tuple[str, Secret]:
        store = self._pkcs12(data)
        if store.key is None or store.cert is None:
            raise self._not_one_key([])
        others = [each.certificate for each in store.additional_certs]
        chain = _chain(store.cert.certificate, others)
        return "".join(pem.encoded("CERTIFICATE", _der(each)) for each in chain), _plain_pkcs8(store.key)

    # -- what can be wrong -----------------------------------------------------------------------

    def _wrong_password(self) -> ConfigError:
        if self.password is None:
            return ConfigError(
                f"{self.where}: {self.path} wants a password and none is set", hint=f"set {self.password_setting}=…"
            )
        return ConfigError(
            f"{self.where}: the password does not open {self.path}, or the file was changed since it was written",
            hint=f"check {self.password_where} with: keytool -list -keystore {self.path}",
        )

    def _damaged(self, what: str) -> ConfigError:
        return ConfigError(f"{self.where}: {self.path} is damaged: {what}", hint="copy the file again")

    def _not_one_key(self, aliases: Sequence[str]) -> ConfigError:
        if not aliases:
            return ConfigError(
                f"{self.where}: {self.path} holds no private key with its certificate",
                hint="it must be the key store, not the trust store",
            )
        return ConfigError(
            f"{self.where}: {self.path} holds {len(aliases)} private keys: {', '.join(aliases)}",
            hint=f"keep the one to show to the brokers: {_OUTDATED.format(path=self.path)} -srcalias {aliases[0]}",
        )

    def _unknown(self, data: bytes) -> ConfigError:
        if data.startswith(pem.JCEKS_MAGIC):
            return ConfigError(
                f"{self.where}: {self.path} is a JCEKS store, which cannot be read here",
                hint=f"convert it: {_OUTDATED.format(path=self.path)}",
            )
        return ConfigError(
            f"{self.where}: {self.path} is no PEM file, PKCS#12 store or JKS store",
            hint="give a PEM file, or the store a Java client uses",
        )


def private_key(text: str, password: Secret | None, *, where: str, setting: str) -> Secret:
    """Gives the private key of a PEM text as OpenSSL wants it, decrypted with ``password`` if it is encrypted."""
    key, encrypted = pem.private_key(text, where=where)
    if not encrypted:
        return Secret(key)
    if password is None:
        raise ConfigError(f"{where}: the private key is encrypted and no password is set", hint=f"set {setting}=…")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return _plain_pkcs8(load_pem_private_key(key.encode(), password.reveal().encode()))
    except UnsupportedAlgorithm as error:
        raise ConfigError(
            f"{where}: the private key is encrypted in a way that is not supported ({error})",
            hint="convert it: openssl pkcs8 -topk8 -v2 aes-256-cbc -in KEY -out NEW",
        ) from None
    except ValueError:
        raise ConfigError(f"{where}: the password of the private key is wrong", hint=f"set {setting}=…") from None


def check_identity(chain: str, key: Secret, *, where: str, now: datetime | None = None) -> None:
    """Refuses a certificate that has expired or does not belong to the key, before any broker sees it."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    try:
        own = x509.load_pem_x509_certificates(chain.encode())[0]
        private = load_pem_private_key(key.reveal().encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(
            f"{where}: the certificate or its key is damaged or of an unknown kind", hint="copy the file again"
        ) from None
    if own.not_valid_after_utc < (now or datetime.now(UTC)):
        raise ConfigError(
            f"{where}: the client certificate {own.subject.rfc4514_string()} expired on "
            f"{own.not_valid_after_utc:%Y-%m-%d %H:%M} UTC",
            hint="have it renewed; is this machine's clock right?",
        )
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if own.public_key().public_bytes(*form) != private.public_key().public_bytes(*form):
        raise ConfigError(
            f"{where}: the private key does not belong to the certificate {own.subject.rfc4514_string()}",
            hint="the first certificate must be the key's own, its authorities follow",
        )


def _plain_pkcs8(key: object) -> Secret:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    encoded: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())  # type: ignore[attr-defined]
    return Secret(encoded.decode())


def _chain(own: Certificate, others: Sequence[Certificate]) -> list[Certificate]:
    """Orders certificates as TLS sends them: each followed by its issuer."""
    chain = [own]
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((each for each in others if each.subject == chain[-1].issuer and each not in chain), None)
        if issuer is None:
            break
        chain.append(issuer)
    return chain


def _der(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)
