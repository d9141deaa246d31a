"""Opens connections: TCP, TLS, ApiVersions, SASL, all within the accepted silence."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, NamedTuple

from failover._version import __version__
from failover.config.clients import ClientSettings
from failover.config.tls import ssl_context
from failover.errors import ClusterError, CredentialsRefused, TokenUnavailable
from failover.kafka.faults import name_of
from failover.kafka.wire.connection import API_VERSIONS_KEY, Connection, ConnectionLost, Pace, refused_tls
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.sasl import Authenticator, ServerNotProven

if TYPE_CHECKING:
    from failover.config.oauth import Token

_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_UNSUPPORTED_VERSION, _UNSUPPORTED_MECHANISM = 35, 33
_RENEW_AT = 0.85
"""The share of a SASL session's lifetime after which it is renewed (Kafka's Java client: 85 to 95 %)."""

_BEFORE_SECOND = 0.2


class _EndedUnanswered(Exception):
    """Says that a broker ended a TLS session before it answered the first request."""


class Address(NamedTuple):
    """Is where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Dialer:
    """Opens connections to the brokers of one cluster with one set of credentials.

    Raises ``ConfigError`` when made with certificates or a mechanism that cannot be used.
    """

    def __init__(self, settings: ClientSettings, *, alias: str, client_id: str) -> None:
        self.alias = alias
        self._client_id = client_id
        self._tls = ssl_context(settings.tls) if settings.tls is not None else None
        self._authenticator = Authenticator(settings.sasl) if settings.sasl is not None else None

    async def dial(self, address: Address, *, peer: str, silence: float, pace: Pace | None = None) -> Connection:
        """Opens a connection ready for requests.

        ``silence``: seconds each step may take. Raises ``ConnectionLost`` (nothing written) or ``CredentialsRefused``.

        A broker that wants another client certificate says so after the TLS handshake (TLS 1.3), and its word may be
        lost as it closes. That must not pass for a dead broker, so who ends two sessions in a row before answering
        anything has refused them; one that restarts does not take the second.
        """
        try:
            return await self._open(address, peer, silence, pace)
        except _EndedUnanswered:
            await asyncio.sleep(_BEFORE_SECOND)
        try:
            return await self._open(address, peer, silence, pace)
        except _EndedUnanswered as error:
            raise CredentialsRefused(
                f"cluster {self.alias}: {peer} ends the TLS session before it answers anything",
                alias=self.alias,
                hint="does it want a client certificate (ssl.client.auth=required) that is missing or not trusted?",
            ) from error

    async def _open(self, address: Address, peer: str, silence: float, pace: Pace | None) -> Connection:
        connection = await self._connect(address, peer, silence, pace)
        try:
            connection.versions = await self._api_versions(connection)
            if self._authenticator is not None:
                await self._authenticate(connection, self._authenticator)
                connection.renew = lambda: self._authenticate(connection, self._authenticator)
        except ConnectionLost as error:
            connection.close()
            if self._tls is not None and not connection.versions and not error.silent:
                raise _EndedUnanswered from error
            raise ConnectionLost(
                error.message, alias=self.alias, written=False, silent=error.silent, hint=error.hint
            ) from error
        except BaseException:
            connection.close()
            raise
        return connection

    async def _connect(self, address: Address, peer: str, silence: float, pace: Pace | None) -> Connection:
        loop = asyncio.get_running_loop()
        lost = f"cluster {self.alias}: {peer} "
        hint = f"check that the broker at {address.host}:{address.port} runs and can be reached from here"
        try:
            async with asyncio.timeout(silence):
                _, connection = await loop.create_connection(
                    lambda: Connection(
                        alias=self.alias, peer=peer, client_id=self._client_id, silence=silence, pace=pace
                    ),
                    address.host,
                    address.port,
                    ssl=self._tls,
                )
        except TimeoutError as error:
            raise ConnectionLost(
                f"{lost}did not take a connection within {silence:g} s",
                alias=self.alias,
                written=False,
                silent=True,
                hint=hint,
            ) from error
        except ssl.SSLCertVerificationError as error:
            raise refused_tls(self.alias, peer, error.verify_message) from error
        except ssl.SSLError as error:
            raise refused_tls(self.alias, peer, error.reason or str(error)) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConnectionLost(
                f"{lost}cannot be connected to: {reason}", alias=self.alias, written=False, hint=hint
            ) from error
        return connection

    async def _api_versions(self, connection: Connection) -> dict[int, tuple[int, int]]:
        """Asks which versions the broker speaks; a broker older than the question answers in version 0."""
        asked = Writer(flexible=True)
        asked.string("failover")
        asked.string(__version__)
        asked.tags()
        body = await connection.request(API_VERSIONS_KEY, 3, [asked.data], flexible=True)
        reader = Reader(body, flexible=True)
        error = reader.int16()
        if error == _UNSUPPORTED_VERSION:
            body = await connection.request(API_VERSIONS_KEY, 0, [], flexible=False)
            reader = Reader(body, flexible=False)
            error = reader.int16()
        if error:
            raise connection.error(f"does not tell its API versions: {name_of(error)}")
        versions = {}
        for _ in range(reader.array()):
            key, low, high = reader.int16(), reader.int16(), reader.int16()
            reader.tags()
            versions[key] = low, high
        return versions

    async def _authenticate(self, connection: Connection, authenticator: Authenticator) -> None:
        """Runs the SASL exchange (Kafka: KIP-152), on a live connection again before its session ends (KIP-368)."""
        loop = asyncio.get_running_loop()
        asked = Writer(flexible=False)
        asked.string(authenticator.mechanism)
        reader = Reader(await connection.exchange(_SASL_HANDSHAKE, 1, asked.data), flexible=False)
        error = reader.int16()
        offered = [reader.string() for _ in range(reader.array())]
        if error == _UNSUPPORTED_MECHANISM:
            raise self._refused(
                connection, f"offers {', '.join(offered)}, not {authenticator.mechanism}", "set sasl.mechanism"
            )
        if error:
            raise self._refused(connection, f"refuses the SASL handshake: {name_of(error)}", "check security.protocol")
        _, highest = connection.versions.get(_SASL_AUTHENTICATE, (0, 0))
        version = min(highest, 1)
        conversation = authenticator.conversation(token=await self._token(connection, authenticator))
        message = next(conversation)
        lifetime = 0
        try:
            while True:
                began = loop.time()
                said = Writer(flexible=False)
                said.sized(message)
                reader = Reader(await connection.exchange(_SASL_AUTHENTICATE, version, said.data), flexible=False)
                error, text, answer = reader.int16(), reader.nullable_string(), bytes(reader.sized())
                if error:
                    why = text or name_of(error)
                    raise self._refused(connection, f"refuses the credentials: {why}", authenticator.remedy)
                lifetime = reader.int64() if version >= 1 else 0
                message = conversation.send(answer)
        except StopIteration:
            connection.renew_at = began + lifetime / 1000 * _RENEW_AT if lifetime > 0 else float("inf")
        except ServerNotProven as unproven:
            raise self._refused(connection, f"fails the SASL exchange: {unproven}", authenticator.remedy) from unproven

    async def _token(self, connection: Connection, authenticator: Authenticator) -> Token | None:
        """Gives the token to show, asked for in a thread if none is at hand; None for another mechanism."""
        provider = authenticator.provider
        if provider is None:
            return None
        token = provider.at_hand()
        if token is not None:
            return token
        try:
            return await asyncio.to_thread(provider.token)
        except TokenUnavailable as error:
            raise self._refused(connection, f"cannot be logged in to: {error.message}", error.hint) from error

    def _refused(self, connection: Connection, what: str, hint: str) -> ClusterError:
        return CredentialsRefused(f"cluster {self.alias}: {connection.peer} {what}", alias=self.alias, hint=hint)
