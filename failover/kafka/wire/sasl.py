"""SASL without I/O: the bytes a client sends for PLAIN, SCRAM and OAUTHBEARER, and what it checks in the answers.

Sources: RFC 4616 (PLAIN), RFC 5802 and RFC 7677 (SCRAM), RFC 7628 (OAUTHBEARER). A conversation is a generator: it
yields the client's messages and is sent the server's; it ends when the server has proven itself.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Generator
from typing import TYPE_CHECKING

from failover.config.clients import SaslSettings
from failover.errors import ConfigError

if TYPE_CHECKING:
    from failover.config.oauth import Token

Conversation = Generator[bytes, bytes, None]

SUPPORTED = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_MOST_ITERATIONS = 1_000_000
"""More would let a false server keep this client busy (Kafka's own servers use 4096 to 16384)."""


class ServerNotProven(Exception):
    """Says that a server's part of the exchange is malformed, does not prove that it knows the password, or refuses."""


class Authenticator:
    """Opens SASL conversations with one identity.

    It keeps the salted password of each (salt, iterations), so that a second connection costs no new key derivation.
    """

    def __init__(self, settings: SaslSettings) -> None:
        if settings.mechanism not in SUPPORTED:
            raise ConfigError(
                f"SASL mechanism {settings.mechanism} is not supported",
                hint=f"supported are {', '.join(SUPPORTED)}; failover.cluster.<alias>.* may name others than MM2's",
            )
        self.mechanism = settings.mechanism
        self.provider = settings.token.provider() if settings.token is not None else None
        self._settings = settings
        self._salted: dict[tuple[bytes, int], bytes] = {}

    @property
    def remedy(self) -> str:
        """Says what an operator checks when the credentials are refused."""
        if self.provider is None:
            return "check the user name and password of this cluster"
        return "does the cluster take tokens of this issuer, audience and scope, and do the clocks agree?"

    def conversation(self, *, nonce: str | None = None, token: Token | None = None) -> Conversation:
        """Begins an exchange; ``nonce`` replaces the random one in test vectors, ``token`` is OAUTHBEARER's."""
        if self.mechanism == "OAUTHBEARER":
            return self._bearer(token)
        if self.mechanism == "PLAIN":
            return self._plain()
        return self._scram(_HASHES[self.mechanism], nonce or secrets.token_urlsafe(24))

    def _bearer(self, token: Token | None) -> Conversation:
        assert self.provider is not None
        assert token is not None
        pairs = {"auth": f"Bearer {token.value.reveal()}", **self.provider.extensions}
        answer = yield b"n,,\x01" + b"".join(f"{key}={value}\x01".encode() for key, value in pairs.items()) + b"\x01"
        if answer:
            # A challenge says why it refuses; Kafka's broker says so once more, as an error, to this empty answer.
            yield b"\x01"
            raise ServerNotProven(f"it refuses the token: {answer[:200].decode('utf-8', 'replace')}")

    def _password(self) -> str:
        return self._settings.password.reveal() if self._settings.password else ""

    def _plain(self) -> Conversation:
        yield f"\0{self._settings.username}\0{self._password()}".encode()

    def _scram(self, name: str, nonce: str) -> Conversation:
        user = self._settings.username.replace("=", "=3D").replace(",", "=2C")
        first_bare = f"n={user},r={nonce}"
        server_first = yield f"n,,{first_bare}".encode()
        salt, iterations, combined = _server_first(server_first, nonce)
        salted = self._salted_password(name, salt, iterations)
        without_proof = f"c=biws,r={combined}"
        signed = b",".join((first_bare.encode(), server_first, without_proof.encode()))
        client_key = hmac.digest(salted, b"Client Key", name)
        signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
        proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
        server_final = yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
        expected = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
        shown = _decoded(_attributes(server_final).get("v", ""))
        if not hmac.compare_digest(shown, expected):
            raise ServerNotProven("the server does not prove that it knows the password")

    def _salted_password(self, name: str, salt: bytes, iterations: int) -> bytes:
        key = salt, iterations
        if key not in self._salted:
            self._salted[key] = hashlib.pbkdf2_hmac(name, self._password().encode(), salt, iterations)
        return self._salted[key]


def _server_first(message: bytes, nonce: str) -> tuple[bytes, int, str]:
    attributes = _attributes(message)
    combined, salt, count = attributes.get("r", ""), _decoded(attributes.get("s", "")), attributes.get("i", "")
    if not combined.startswith(nonce) or combined == nonce:
        raise ServerNotProven("the server answers another exchange's nonce")
    if not salt or not count.isascii() or not count.isdigit() or not 0 < int(count) <= _MOST_ITERATIONS:
        raise ServerNotProven("the server names no usable salt or iteration count")
    return salt, int(count), combined


def _attributes(message: bytes) -> dict[str, str]:
    try:
        fields = message.decode().split(",")
    except UnicodeDecodeError as error:
        raise ServerNotProven("the server's message is no text") from error
    return {field[0]: field[2:] for field in fields if field[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ServerNotProven("the server's message is no base64") from error
