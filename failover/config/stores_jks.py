"""Reads Java key stores (JKS) in memory: their integrity check, their certificates, their protected keys.

Format: big-endian; magic FEEDFEED, version 1 or 2, the entries, then SHA-1 over the password, a fixed phrase and all
that came before (OpenJDK: sun.security.provider.JavaKeyStore; KeyProtector for the keys).
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Final, NamedTuple

MAGIC: Final = b"\xfe\xed\xfe\xed"

_KEY_ENTRY, _CERTIFICATE_ENTRY = 1, 2
_PHRASE: Final = b"Mighty Aphrodite"
_DIGEST: Final = 20
# 1.3.6.1.4.1.42.2.17.1.1, the one way in which a JKS store protects its keys.
_PROTECTION: Final = bytes.fromhex("060a2b060104012a02110101")


class WrongPassword(Exception):
    """Says that a password does not open a store or a key (or that either was changed since it was written)."""


class DamagedStore(Exception):
    """Says that a store is cut off or malformed; the text says where."""


class JksEntry(NamedTuple):
    """Is one entry: a trusted certificate, or a protected key with its chain; certificates are DER."""

    alias: str
    protected_key: bytes | None
    certificates: tuple[bytes, ...]


def read_jks(data: bytes, password: str | None) -> tuple[JksEntry, ...]:
    """Reads the entries in the order of the file.

    Without a password the integrity check is left out, as Java does. Raises ``WrongPassword``, ``DamagedStore``.
    """
    cursor = _Cursor(data[:-_DIGEST])
    if cursor.take(4) != MAGIC:
        raise DamagedStore("it does not begin as a JKS store")
    version = cursor.integer()
    if version not in (1, 2):
        raise DamagedStore(f"its version is {version}, known are 1 and 2")
    if password is not None:
        digest = hashlib.sha1(_utf16(password) + _PHRASE + data[:-_DIGEST], usedforsecurity=False).digest()
        if not hmac.compare_digest(digest, data[-_DIGEST:]):
            raise WrongPassword
    entries = []
    for _ in range(cursor.integer()):
        tag, alias = cursor.integer(), cursor.text()
        cursor.take(8)  # when it was made
        if tag == _KEY_ENTRY:
            key = cursor.sized()
            chain = tuple(cursor.certificate(version) for _ in range(cursor.integer()))
            entries.append(JksEntry(alias, key, chain))
        elif tag == _CERTIFICATE_ENTRY:
            entries.append(JksEntry(alias, None, (cursor.certificate(version),)))
        else:
            raise DamagedStore(f"entry {len(entries) + 1} is of kind {tag}, known are 1 and 2")
    if cursor.left:
        raise DamagedStore(f"{cursor.left} bytes follow the last entry")
    return tuple(entries)


def unprotected(key: bytes, password: str) -> bytes:
    """Takes the protection off a key of ``JksEntry``; gives PKCS#8 as DER. Raises ``WrongPassword``, ``DamagedStore``.

    The protected form is salt, key XOR a stream of chained SHA-1 digests, and SHA-1 over password and key.
    """
    protected = _protected_bytes(key)
    if len(protected) < 2 * _DIGEST:
        raise DamagedStore("a key is too short")
    secret = _utf16(password)
    digest, body, check = protected[:_DIGEST], protected[_DIGEST:-_DIGEST], protected[-_DIGEST:]
    stream = bytearray()
    while len(stream) < len(body):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        stream += digest
    plain = bytes(left ^ right for left, right in zip(body, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain, usedforsecurity=False).digest(), check):
        raise WrongPassword
    return plain


def _protected_bytes(encrypted: bytes) -> bytes:
    """Gives the OCTET STRING of an EncryptedPrivateKeyInfo (RFC 5208): SEQUENCE of algorithm and data."""
    outer = _Cursor(_Cursor(encrypted).der(0x30))
    algorithm = outer.der(0x30)
    if not algorithm.startswith(_PROTECTION):
        raise DamagedStore("a key is protected in an unknown way")
    return outer.der(0x04)


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


class _Cursor:
    """Reads from bytes front to back; raises ``DamagedStore`` at their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count < 0 or count > self.left:
            raise DamagedStore(f"it is cut off at byte {self._at}")
        self._at += count
        return self._data[self._at - count : self._at]

    def integer(self) -> int:
        number: int = struct.unpack(">I", self.take(4))[0]
        return number

    def sized(self) -> bytes:
        return self.take(self.integer())

    def text(self) -> str:
        """Reads what java.io.DataOutput.writeUTF wrote; it only serves to name an entry."""
        return self.take(int.from_bytes(self.take(2), "big")).decode("utf-8", "replace")

    def certificate(self, version: int) -> bytes:
        kind = self.text() if version == 2 else "X.509"
        if kind not in ("X.509", "X509"):
            raise DamagedStore(f"it holds a certificate of kind {kind[:20]!r}")
        return self.sized()

    def der(self, tag: int) -> bytes:
        """Reads the content of one DER value of this tag."""
        if self.take(1)[0] != tag:
            raise DamagedStore("a key is malformed")
        length = self.take(1)[0]
        if length & 0x80:
            length = int.from_bytes(self.take(length & 0x7F), "big")
        return self.take(length)
