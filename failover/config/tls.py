"""Python's own TLS context, from the same settings librdkafka gets."""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterator

from failover.config.clients import TlsSettings
from failover.errors import ConfigError


def ssl_context(tls: TlsSettings) -> ssl.SSLContext:
    """Makes the TLS context of a cluster. Raises ``ConfigError`` where a certificate or key cannot be used.

    With ``verify_hostname`` false the chain is still verified (Kafka: an empty ssl.endpoint.identification.algorithm).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.verify_hostname
    try:
        if tls.ca_pem is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(cadata=tls.ca_pem)
        if tls.certificate_chain_pem is not None and tls.key_pem is not None:
            with as_path(tls.certificate_chain_pem) as chain, as_path(tls.key_pem.reveal()) as key:
                # An encrypted key OpenSSL would ask about on the terminal; the empty answer makes it fail instead.
                context.load_cert_chain(chain, key, password=lambda: b"")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        raise ConfigError(
            f"the TLS certificate or key cannot be used: {reason.replace('_', ' ').lower()}",
            hint="does the key belong to the certificate, and is each whole?",
        ) from error
    return context


@contextlib.contextmanager
def as_path(pem: str) -> Iterator[str]:
    """Gives a PEM text a path without writing it to disk: OpenSSL reads keys from files only."""
    content = pem.encode()
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:  # a pipe holds 64 KiB before a reader comes, a chain takes a few
        descriptor, writing = os.pipe()
        os.write(writing, content)
        os.close(writing)
    try:
        yield f"/dev/fd/{descriptor}"
    finally:
        os.close(descriptor)


def tls_hint(reason: str, alias: str) -> str:
    """Says what to do about a TLS session that did not come about, by OpenSSL's words for the reason."""
    said = reason.lower().replace("_", " ")
    own = f"failover.cluster.{alias}."
    for words, hint in (
        (("has expired",), "the broker's certificate, or its authority's, is out of date: or is this machine's clock?"),
        (
            ("hostname mismatch", "ip address mismatch", "doesn't match"),
            "bootstrap.servers must use a name that stands in the certificate "
            f"({own}ssl.endpoint.identification.algorithm= switches the check off)",
        ),
        (
            ("self-signed", "self signed", "issuer certificate", "verify failed", "could not be verified"),
            f"does {own}ssl.truststore.location (else MM2's) hold the authority that signed the broker's certificate?",
        ),
        (
            ("wrong version number", "record layer", "packet length", "connecting to a plaintext"),
            "the listener does not speak TLS: check security.protocol and the port",
        ),
        (
            ("certificate required", "bad certificate", "unknown ca", "certificate unknown"),
            f"the broker wants a client certificate it trusts: check {own}ssl.keystore.location (else MM2's)",
        ),
    ):
        if any(word in said for word in words):
            return hint
    return "check the truststore, the keystore and that the listener speaks TLS"
