"""TLS for raw connections, from the same settings librdkafka gets."""

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
            password = tls.key_password.reveal() if tls.key_password else None
            with _as_path(tls.certificate_chain_pem) as chain, _as_path(tls.key_pem.reveal()) as key:
                # Without a password OpenSSL would ask on the terminal; the empty answer makes it fail instead.
                context.load_cert_chain(chain, key, password=password or (lambda: b""))
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        raise ConfigError(
            f"the TLS certificate or key cannot be used: {reason.replace('_', ' ').lower()}",
            hint="does the key belong to the certificate, and is the key password right?",
        ) from error
    return context


@contextlib.contextmanager
def _as_path(pem: str) -> Iterator[str]:
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
