"""Says, for each setting of a plain Java client, what becomes of it here: the one table, also printed in the docs.

librdkafka and Java share names but not meanings, and librdkafka refuses what it does not know; so nothing passes
through. A setting is ``used``, ``refused`` with what to do instead, or ``left`` for a reason.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Treatment = Literal["used", "refused", "left"]


class Row(NamedTuple):
    """Is one Java setting, or with a dot at its end all below it.

    ``librdkafka`` and ``raw`` say what a used one becomes in the two clients, "" for nothing; ``reason`` what is
    special about it: which values are refused, or why it is left.
    """

    java: str
    treatment: Treatment
    librdkafka: str = ""
    raw: str = ""
    reason: str = ""

    def covers(self, key: str) -> bool:
        """Tells whether the row is about this key."""
        return key == self.java or (self.java.endswith(".") and key.startswith(self.java))


_OPENSSL: Final = "OpenSSL picks the newest version both sides speak"
_JAVA_ONLY: Final = "it concerns Java only"
_BROKERS: Final = "it concerns brokers only"
_RENEWAL: Final = "a token is renewed after sasl.login.refresh.window.factor of its life, whatever is left"
_VALIDATION: Final = "the brokers validate the token"
_ASSERTION: Final = "it belongs to the JWT bearer grant, which is refused"
_TIMEOUT: Final = "--timeout says how long a cluster may be silent"
_TUNING: Final = "it tunes MM2's own clients, not this tool's"

TABLE: Final[tuple[Row, ...]] = (
    # -- where and how ---------------------------------------------------------------------------
    Row("bootstrap.servers", "used", "bootstrap.servers", "the addresses dialled first"),
    Row("security.protocol", "used", "security.protocol", "TLS or not, SASL or not"),
    Row(
        "client.id", "used", "client.id", "client id of each request",
        "only as failover.cluster.ALIAS.client.id; MM2's own stays MM2's (brokers' logs, quotas)",
    ),
    # -- SASL ------------------------------------------------------------------------------------
    Row(
        "sasl.mechanism", "used", "sasl.mechanism", "SaslHandshake",
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; AWS_MSK_IAM becomes OAUTHBEARER; GSSAPI (also the default) "
        "and others are refused",
    ),
    Row(
        "sasl.jaas.config", "used", "sasl.username, sasl.password, oauth_cb", "SaslAuthenticate",
        "login modules of PLAIN, SCRAM, OAUTHBEARER and AWS_MSK_IAM; others and tokenauth are refused",
    ),
    Row(
        "sasl.login.callback.handler.class", "used", "oauth_cb", "token provider",
        "Kafka's OAuthBearerLoginCallbackHandler and OAuthBearerUnsecuredLoginCallbackHandler, Strimzi's "
        "JaasClientOauthLoginCallbackHandler, Amazon's IAMOAuthBearerLoginCallbackHandler; others are refused",
    ),
    Row(
        "sasl.client.callback.handler.class", "used", "oauth_cb", "token provider",
        "Kafka's OAuthBearerSaslClientCallbackHandler, Amazon's IAMClientCallbackHandler; others are refused",
    ),
    Row(
        "sasl.oauth.truststore.certificates", "used", "oauth_cb", "token provider",
        "this tool's own: PEM of whom the token endpoint is trusted by (Strimzi's tlsTrustedCertificates)",
    ),
    Row("sasl.login.class", "refused", reason="a Java class"),
    Row(
        "sasl.oauthbearer.token.endpoint.url", "used", "oauth_cb", "token provider",
        "http, https, or file: a file with a token",
    ),
    Row("sasl.oauthbearer.client.credentials.client.id", "used", "oauth_cb", "token provider", "else clientId in JAAS"),
    Row(
        "sasl.oauthbearer.client.credentials.client.secret", "used", "oauth_cb", "token provider",
        "else clientSecret in JAAS",
    ),
    Row("sasl.oauthbearer.scope", "used", "oauth_cb", "token provider", "else scope in JAAS"),
    Row("sasl.oauthbearer.header.urlencode", "used", "oauth_cb", "token provider"),
    Row("sasl.oauthbearer.sub.claim.name", "used", "oauth_cb (its principal)", "", "names the principal in librdkafka"),
    Row(
        "sasl.oauthbearer.jwt.retriever.class", "used", "oauth_cb", "token provider",
        "DefaultJwtRetriever, ClientCredentialsJwtRetriever, FileJwtRetriever; others are refused, the JWT bearer "
        "grant among them",
    ),
    Row("sasl.oauthbearer.assertion.", "left", reason=_ASSERTION),
    Row("sasl.oauthbearer.", "left", reason=_VALIDATION),
    Row("sasl.login.refresh.window.factor", "used", "oauth_cb", "token provider", "0.8 unless set"),
    Row("sasl.login.refresh.", "left", reason=_RENEWAL),
    Row("sasl.login.connect.timeout.ms", "used", "oauth_cb", "token provider", "5 s unless set"),
    Row("sasl.login.read.timeout.ms", "used", "oauth_cb", "token provider", "10 s unless set"),
    Row("sasl.login.retry.backoff.ms", "used", "oauth_cb", "token provider", "four attempts, 10 s in all"),
    Row("sasl.login.retry.backoff.max.ms", "used", "oauth_cb", "token provider"),
    Row("sasl.kerberos.", "left", reason="it concerns Kerberos only"),
    Row("sasl.server.", "left", reason=_BROKERS),
    Row("sasl.enabled.mechanisms", "left", reason=_BROKERS),
    # -- TLS -------------------------------------------------------------------------------------
    Row(
        "ssl.truststore.location", "used", "ssl.ca.pem", "trusted certificates",
        "PEM, PKCS#12 or JKS, told by the content; without one the system's trust store",
    ),
    Row("ssl.truststore.password", "used", "ssl.ca.pem", "trusted certificates", "of PKCS#12 and JKS"),
    Row("ssl.truststore.type", "used", "ssl.ca.pem", "trusted certificates", "the content of the file decides"),
    Row("ssl.truststore.certificates", "used", "ssl.ca.pem", "trusted certificates", "PEM in the setting itself"),
    Row(
        "ssl.keystore.location", "used", "ssl.certificate.pem, ssl.key.pem", "client certificate",
        "PEM, PKCS#12 or JKS with one private key",
    ),
    Row(
        "ssl.keystore.password", "used", "ssl.certificate.pem, ssl.key.pem", "client certificate", "of PKCS#12 and JKS"
    ),
    Row(
        "ssl.keystore.type", "used", "ssl.certificate.pem, ssl.key.pem", "client certificate",
        "the content of the file decides",
    ),
    Row("ssl.keystore.certificate.chain", "used", "ssl.certificate.pem", "client certificate", "PEM in the setting"),
    Row("ssl.keystore.key", "used", "ssl.key.pem", "client certificate", "PEM in the setting, encrypted or not"),
    Row("ssl.key.password", "used", "ssl.key.pem", "client certificate", "the key is decrypted in memory"),
    Row(
        "ssl.endpoint.identification.algorithm", "used", "ssl.endpoint.identification.algorithm", "host name check",
        "https; set and empty switches the check off (librdkafka: none)",
    ),
    Row("ssl.engine.factory.class", "refused", reason="a Java class"),
    Row("ssl.protocol", "left", reason=_OPENSSL),
    Row("ssl.enabled.protocols", "left", reason=_OPENSSL),
    Row("ssl.cipher.suites", "left", reason="OpenSSL picks the cipher"),
    Row("ssl.provider", "left", reason="it names a Java security provider"),
    Row("security.providers", "left", reason="it names a Java security provider"),
    Row("ssl.keymanager.algorithm", "left", reason=_JAVA_ONLY),
    Row("ssl.trustmanager.algorithm", "left", reason=_JAVA_ONLY),
    Row("ssl.secure.random.implementation", "left", reason=_JAVA_ONLY),
    Row("ssl.client.auth", "left", reason=_BROKERS),
    Row("ssl.principal.mapping.rules", "left", reason=_BROKERS),
    Row("ssl.allow.", "left", reason=_BROKERS),
    # -- times and the rest ----------------------------------------------------------------------
    Row("bootstrap.controllers", "left", reason="this tool speaks to brokers"),
    Row("request.timeout.ms", "left", reason=_TIMEOUT),
    Row("default.api.timeout.ms", "left", reason=_TIMEOUT),
    Row("socket.connection.setup.timeout.", "left", reason=_TIMEOUT),
    Row("connections.max.idle.ms", "left", reason=_TUNING),
    Row("metadata.", "left", reason=_TUNING),
    Row("reconnect.backoff.", "left", reason=_TUNING),
    Row("retry.backoff.", "left", reason=_TUNING),
    Row("retries", "left", reason=_TUNING),
    Row("send.buffer.bytes", "left", reason=_TUNING),
    Row("receive.buffer.bytes", "left", reason=_TUNING),
    Row("client.dns.lookup", "left", reason="all addresses of a name are tried"),
    Row("client.rack", "left", reason="this tool reads from leaders"),
    Row("interceptor.classes", "left", reason=_JAVA_ONLY),
    Row("metric.reporters", "left", reason=_JAVA_ONLY),
    Row("metrics.", "left", reason=_JAVA_ONLY),
    Row("enable.metrics.push", "left", reason=_TUNING),
)  # fmt: skip


def row_of(key: str) -> Row | None:
    """Gives the row about a key: its own, else the longest prefix; None for a key no plain client has."""
    return max((row for row in TABLE if row.covers(key)), key=lambda row: len(row.java), default=None)


def table_markdown() -> str:
    """Gives the table as docs/security.md holds it."""

    def code(text: str) -> str:
        return ", ".join(
            f"`{part}`" if part.replace(".", "").replace("_", "").isalnum() else part for part in text.split(", ")
        )

    lines = ["| Java client setting | librdkafka | raw connection | remarks |", "|--|--|--|--|"]
    for row in TABLE:
        name = f"`{row.java}*`" if row.java.endswith(".") else f"`{row.java}`"
        if row.treatment == "used":
            cells = name, code(row.librdkafka), row.raw, row.reason
        elif row.treatment == "refused":
            cells = name, "refused", "refused", row.reason
        else:
            cells = name, "–", "–", row.reason
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
