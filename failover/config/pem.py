"""Reads PEM text as Kafka's clients do, and tells PEM, JKS and PKCS#12 stores apart by their content."""

from __future__ import annotations

import base64
import binascii
import re
import textwrap
from pathlib import Path
from typing import Final, Literal

from failover.config.stores_jks import MAGIC
from failover.errors import ConfigError

StoreKind = Literal["PEM", "JKS", "PKCS12", "unknown"]

# Kafka (DefaultSslEngineFactory.PemParser) takes any white space, or none, between the markers and the base64 text:
# a value continued over lines of a properties file arrives as one line.
_BLOCK: Final = re.compile(r"-+BEGIN ([A-Z0-9 ]+?)-+(.*?)-+END \1-{1,5}", re.DOTALL)
JCEKS_MAGIC: Final = b"\xce\xce\xce\xce"


def store_kind(data: bytes) -> StoreKind:
    """Tells what a trust or key store file is, by its first bytes and not by its name."""
    if data.startswith(MAGIC):
        return "JKS"
    if b"-----BEGIN " in data:
        return "PEM"
    # A DER sequence: a PKCS#12 store, which is also what keytool writes as ".jks" since Java 9.
    return "PKCS12" if data.startswith(b"\x30") else "unknown"


def read_store(path: str, *, where: str) -> tuple[StoreKind, bytes]:
    """Reads a store file; raises ConfigError naming the setting ``where`` if that fails."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"{where}: {path} cannot be read: {reason}", hint="check the path and its permissions"
        ) from None
    return store_kind(data), data


def certificates(text: str, *, where: str) -> str:
    """Gives the certificates of a PEM text, one after another, in the form OpenSSL wants."""
    found = [_normal(label, body, where) for label, body in _BLOCK.findall(text) if label.endswith("CERTIFICATE")]
    if not found:
        raise ConfigError(f"{where} holds no PEM certificate", hint="it must contain -----BEGIN CERTIFICATE-----")
    return "".join(found)


def private_key(text: str, *, where: str) -> tuple[str, bool]:
    """Gives the private key of a PEM text in the form OpenSSL wants, and whether it is encrypted."""
    found = [(label, body) for label, body in _BLOCK.findall(text) if label.endswith("PRIVATE KEY")]
    if not found:
        raise ConfigError(f"{where} holds no PEM private key", hint="it must contain -----BEGIN PRIVATE KEY-----")
    if len(found) > 1:
        raise ConfigError(f"{where} holds {len(found)} private keys", hint="keep one")
    label, body = found[0]
    if "Proc-Type" in body:
        raise ConfigError(
            f"{where} holds a key in OpenSSL's old encrypted format, which Java cannot read either",
            hint="convert it: openssl pkcs8 -topk8 -in KEY -out NEW",
        )
    return _normal(label, body, where), label == "ENCRYPTED PRIVATE KEY"


def encoded(label: str, der: bytes) -> str:
    """Writes DER as a PEM block."""
    lines = "\n".join(textwrap.wrap(base64.b64encode(der).decode(), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"


def _normal(label: str, body: str, where: str) -> str:
    try:
        return encoded(label, base64.b64decode("".join(body.split()), validate=True))
    except (binascii.Error, ValueError):
        raise ConfigError(f"{where}: a PEM block ({label}) is damaged", hint="copy the file again") from None
