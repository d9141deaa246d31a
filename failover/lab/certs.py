"""The lab's certificates, and the key its brokers believe tokens by; all as files in one folder."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import secrets
import time
from pathlib import Path

import msgspec

from failover.lab.files import write_private

AUDIENCE = "kafka"
KEY_ID = "lab"


class Certificates(msgspec.Struct, frozen=True):
    """Names the files.

    ``ca`` for clients, ``server`` (key and chain) for brokers, ``client`` (key and chain) for mTLS, all PEM; ``jwks``
    with the public key and ``token_key`` with the private one of whoever signs tokens.
    """

    ca: Path
    server: Path
    client: Path
    jwks: Path
    token_key: Path

    @classmethod
    def within(cls, folder: Path) -> Certificates:
        names = ("ca.pem", "server.pem", "client.pem", "jwks.json", "token-key.pem")
        return cls(*(folder / name for name in names))


def make_certificates(folder: Path, *, client: str, days: int = 30) -> Certificates:
    """Writes a new authority, a certificate for 127.0.0.1 and localhost, one for the user ``client``, and a token key.

    The authority's key is not kept.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    # a day back: the clocks of this machine's containers may differ
    begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    finish = begin + datetime.timedelta(days=days + 1)

    def named(common: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])

    def builder(subject: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(named(subject))
            .issuer_name(named("failover lab"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(finish)
        )

    ca_key, key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    ca_usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    authority = (
        builder("failover lab", ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(ca_usage, critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))]
    server = (
        builder("localhost", key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    user = (
        builder(client, client_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    folder.mkdir(parents=True, exist_ok=True)
    files = Certificates.within(folder)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    write_private(files.ca, authority.public_bytes(pem))
    for path, own, certificate in ((files.server, key, server), (files.client, client_key, user)):
        # Kafka's PEM stores take PKCS#8 only
        private = own.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
        write_private(path, private + certificate.public_bytes(pem) + authority.public_bytes(pem))
    _make_token_key(files)
    return files


def _make_token_key(files: Certificates) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    write_private(files.token_key, key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    numbers = key.public_key().public_numbers()
    public = {"kty": "RSA", "kid": KEY_ID, "use": "sig", "alg": "RS256"}
    public |= {"n": _base64url(numbers.n.to_bytes(256, "big")), "e": _base64url(numbers.e.to_bytes(3, "big"))}
    write_private(files.jwks, json.dumps({"keys": [public]}).encode())


def sign_token(token_key: Path, subject: str, *, seconds: float) -> str:
    """Signs a token (JWT, RS256) the lab's brokers believe: that its bearer is ``subject``, for so many seconds."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    key = serialization.load_pem_private_key(token_key.read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    now = int(time.time())
    claims = {"iss": "failover lab", "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + int(seconds)}
    # two tokens of one second are still two
    claims["jti"] = secrets.token_hex(8)
    header = {"alg": "RS256", "kid": KEY_ID}
    signed = ".".join(_base64url(json.dumps(part).encode()) for part in (header, claims))
    return f"{signed}.{_base64url(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
