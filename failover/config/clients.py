"""How to connect to one cluster: the same frozen value serves librdkafka and the raw connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from failover.config.secret import Secret

if TYPE_CHECKING:
    from failover.config.oauth import TokenSettings

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]

CLIENT_ID = "failover"


class SaslSettings(msgspec.Struct, frozen=True):
    """Is the identity shown to a cluster; ``mechanism`` as it goes over the wire.

    PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 have a user name and a password, OAUTHBEARER has ``token``.
    """

    mechanism: str
    username: str = ""
    password: Secret | None = None
    token: TokenSettings | None = None

    def librdkafka(self) -> dict[str, Any]:
        """Gives the identity as confluent-kafka properties, the password revealed."""
        if self.token is not None:
            return {"sasl.mechanism": self.mechanism, "oauth_cb": self.token.provider().for_librdkafka}
        return {
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.username,
            "sasl.password": self.password.reveal() if self.password else "",
        }


class TlsSettings(msgspec.Struct, frozen=True):
    """Says whom to trust and which certificate to show, all as PEM text.

    ``ca_pem`` None means the system's trust store. ``key_pem`` is not encrypted. ``verify_hostname`` is false where
    ``ssl.endpoint.identification.algorithm`` is empty.
    """

    ca_pem: str | None = None
    certificate_chain_pem: str | None = None
    key_pem: Secret | None = None
    verify_hostname: bool = True

    def librdkafka(self) -> dict[str, Any]:
        """Gives these settings as confluent-kafka properties, the key revealed."""
        properties = {
            "ssl.endpoint.identification.algorithm": "https" if self.verify_hostname else "none",
            "ssl.ca.pem": self.ca_pem,
            "ssl.certificate.pem": self.certificate_chain_pem,
            "ssl.key.pem": self.key_pem.reveal() if self.key_pem else None,
        }
        return {key: value for key, value in properties.items() if value is not None}


class ClientSettings(msgspec.Struct, frozen=True):
    """Is all that is needed to connect to one cluster in one role.

    ``bootstrap`` holds (host, port) pairs in the order written; IPv6 hosts come without brackets. ``sasl`` is set
    exactly for the SASL_… protocols, ``tls`` exactly for SSL and SASL_SSL. ``client_id`` is what brokers log and
    quotas go by.
    """

    bootstrap: tuple[tuple[str, int], ...]
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl: SaslSettings | None = None
    tls: TlsSettings | None = None
    client_id: str = CLIENT_ID

    def librdkafka(self) -> dict[str, Any]:
        """Gives these settings as confluent-kafka properties, secrets revealed: for a constructor, never for a text."""
        servers = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.bootstrap)
        return {
            "bootstrap.servers": ",".join(servers),
            "security.protocol": self.security_protocol,
            "client.id": self.client_id,
            **(self.sasl.librdkafka() if self.sasl is not None else {}),
            **(self.tls.librdkafka() if self.tls is not None else {}),
        }
