"""How to connect to one cluster: the same frozen value serves librdkafka and the raw connection."""

from __future__ import annotations

from typing import Literal

import msgspec

from failover.config.secret import Secret

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]


class SaslSettings(msgspec.Struct, frozen=True):
    """Is the identity shown to a cluster; ``mechanism`` in Kafka's words (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512)."""

    mechanism: str
    username: str
    password: Secret


class TlsSettings(msgspec.Struct, frozen=True):
    """Says whom to trust and which certificate to show, all as PEM text.

    ``ca_pem`` None means the system's trust store. ``key_pem`` is PKCS#8 as Java wants it, encrypted if
    ``key_password`` is set. ``verify_hostname`` is false where ``ssl.endpoint.identification.algorithm`` is empty.
    """

    ca_pem: str | None = None
    certificate_chain_pem: str | None = None
    key_pem: Secret | None = None
    key_password: Secret | None = None
    verify_hostname: bool = True


class ClientSettings(msgspec.Struct, frozen=True):
    """Is all that is needed to connect to one cluster in one role.

    ``bootstrap`` holds (host, port) pairs in the order written; IPv6 hosts come without brackets. ``sasl`` is set
    exactly for the SASL_… protocols, ``tls`` exactly for SSL and SASL_SSL.
    """

    bootstrap: tuple[tuple[str, int], ...]
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl: SaslSettings | None = None
    tls: TlsSettings | None = None

    def librdkafka(self) -> dict[str, str]:
        """Gives these settings as confluent-kafka properties, secrets revealed: for a constructor, never for a text."""
        servers = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.bootstrap)
        properties = {"bootstrap.servers": ",".join(servers), "security.protocol": self.security_protocol}
        if self.sasl is not None:
            properties["sasl.mechanism"] = self.sasl.mechanism
            properties["sasl.username"] = self.sasl.username
            properties["sasl.password"] = self.sasl.password.reveal()
        if self.tls is not None:
            properties["ssl.endpoint.identification.algorithm"] = "https" if self.tls.verify_hostname else "none"
            if self.tls.ca_pem is not None:
                properties["ssl.ca.pem"] = self.tls.ca_pem
            if self.tls.certificate_chain_pem is not None:
                properties["ssl.certificate.pem"] = self.tls.certificate_chain_pem
            if self.tls.key_pem is not None:
                properties["ssl.key.pem"] = self.tls.key_pem.reveal()
            if self.tls.key_password is not None:
                properties["ssl.key.password"] = self.tls.key_password.reveal()
        return properties
