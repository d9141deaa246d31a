"""A certificate authority and a server certificate for the lab's TLS listeners, as PEM files."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

import msgspec

from failover.lab.files import write_private


class Certificates(msgspec.Struct, frozen=True):
    """Names the PEM files: ``ca`` for clients, ``server`` (key and chain) for brokers."""

    ca: Path
    server: Path


def make_certificates(folder: Path, *, days: int = 30) -> Certificates:
    """Writes a new authority and a certificate for 127.0.0.1 and localhost; the authority's key is not kept."""
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

    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
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
    folder.mkdir(parents=True, exist_ok=True)
    files = Certificates(folder / "ca.pem", folder / "server.pem")
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    write_private(files.ca, authority.public_bytes(pem))
    # Kafka's PEM stores take PKCS#8 only
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    write_private(files.server, private + server.public_bytes(pem) + authority.public_bytes(pem))
    return files
