from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from failover.config.clients import ClientSettings, TlsSettings
from failover.config.secret import Secret
from failover.config.tls import as_path, ssl_context
from failover.errors import ClusterError, ConfigError, CredentialsRefused
from failover.kafka.wire.connection import ConnectionLost
from failover.kafka.wire.dial import Address, Dialer
from tests.unit.wire.fake_broker import FakeBroker


def made(names: list[x509.GeneralName]) -> tuple[str, str]:
    """Makes a self-signed certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cipher = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, cipher)
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), pem.decode()


@pytest.fixture(scope="module")
def server():
    return made([x509.IPAddress(ip_address("127.0.0.1"))])


@pytest.fixture(scope="module")
def client():
    return made([x509.DNSName("client")])


def dialled(settings: TlsSettings, context: ssl.SSLContext) -> None:
    """Connects to a broker behind this server-side context."""

    async def scene() -> None:
        async with FakeBroker({}, {1: (0, 9)}, tls=context) as broker:
            where = Address("127.0.0.1", broker.port)
            dialer = Dialer(ClientSettings((where,), "SSL", tls=settings), alias="a", client_id="t")
            connection = await dialer.dial(where, peer="broker 1", silence=5)
            assert connection.versions[1] == (0, 9)
            connection.close()

    asyncio.run(scene())


def listening(certificate: str, key: str, *, clients: str | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with as_path(certificate) as chain, as_path(key) as secret:
        context.load_cert_chain(chain, secret)
    if clients is not None:
        context.load_verify_locations(cadata=clients)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def test_both_sides_show_their_certificate(server, client):
    settings = TlsSettings(ca_pem=server[0], certificate_chain_pem=client[0], key_pem=Secret(client[1]))
    dialled(settings, listening(*server, clients=client[0]))


def test_a_missing_client_certificate_is_refused_credentials(server, client):
    # asyncio's server closes without the alert of TLS, as it looks to a client when the alert is lost
    with pytest.raises(CredentialsRefused, match="ends the TLS session") as caught:
        dialled(TlsSettings(ca_pem=server[0]), listening(*server, clients=client[0]))
    assert "client certificate" in caught.value.hint


def test_a_broker_that_goes_away_after_the_handshake_is_lost_not_refusing(server):
    async def scene() -> None:
        async with FakeBroker({18: lambda _: None}, {}, tls=listening(*server)) as broker:
            where = Address("127.0.0.1", broker.port)
            broker.script[18] = lambda _: broker.stop_listening()
            dialer = Dialer(
                ClientSettings((where,), "SSL", tls=TlsSettings(ca_pem=server[0])), alias="a", client_id="t"
            )
            with pytest.raises(ConnectionLost, match="cannot be connected to"):
                await dialer.dial(where, peer="broker 1", silence=5)

    asyncio.run(scene())


def test_an_unknown_server_is_refused_credentials(server, client):
    with pytest.raises(CredentialsRefused, match="certificate"):
        dialled(TlsSettings(ca_pem=client[0]), listening(*server))


def test_the_host_name_is_checked_unless_told_otherwise():
    elsewhere = made([x509.DNSName("elsewhere")])
    with pytest.raises(CredentialsRefused, match="not valid for"):
        dialled(TlsSettings(ca_pem=elsewhere[0]), listening(*elsewhere))
    dialled(TlsSettings(ca_pem=elsewhere[0], verify_hostname=False), listening(*elsewhere))


@pytest.mark.parametrize(
    "change",
    [
        lambda chain, key, other: TlsSettings(certificate_chain_pem=chain, key_pem=Secret(other)),
        lambda chain, key, other: TlsSettings(certificate_chain_pem="no pem", key_pem=Secret(other)),
        lambda chain, key, other: TlsSettings(ca_pem="no pem"),
    ],
    ids=["another key", "no certificate", "no authority"],
)
def test_certificates_that_cannot_be_used_are_a_configuration_error(server, client, change):
    settings: Callable[[str, str, str], TlsSettings] = change
    with pytest.raises(ConfigError, match="cannot be used"):
        ssl_context(settings(client[0], client[1], server[1]))


def test_an_encrypted_key_is_refused_instead_of_asked_about(client):
    key = serialization.load_pem_private_key(client[1].encode(), None)
    cipher = serialization.BestAvailableEncryption(b"secret")
    encrypted = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, cipher).decode()
    with pytest.raises(ConfigError, match="cannot be used"):
        ssl_context(TlsSettings(certificate_chain_pem=client[0], key_pem=Secret(encrypted)))


def test_no_key_is_written_to_disk_and_no_descriptor_left(client, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = set(os.listdir("/dev/fd"))
    ssl_context(TlsSettings(certificate_chain_pem=client[0], key_pem=Secret(client[1])))
    assert set(os.listdir("/dev/fd")) == before
    assert not list(tmp_path.iterdir())


def test_where_there_are_no_memory_files_a_pipe_serves(client, monkeypatch):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    ssl_context(TlsSettings(certificate_chain_pem=client[0], key_pem=Secret(client[1])))


def test_a_plain_text_listener_is_no_tls(server):
    async def scene() -> None:
        async with FakeBroker({}, {}) as broker:
            where = Address("127.0.0.1", broker.port)
            dialer = Dialer(
                ClientSettings((where,), "SSL", tls=TlsSettings(ca_pem=server[0])), alias="a", client_id="t"
            )
            with pytest.raises(ClusterError):
                await dialer.dial(where, peer="broker 1", silence=0.3)

    asyncio.run(scene())
