"""Strimzi's authentication of type ``oauth``: its fields as the options of Strimzi's login module, and back again.

Source of the rules: Strimzi (KafkaClientAuthenticationOAuth, AuthenticationUtils) and its library (ClientConfig).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from failover.config.jaas import LoginModule

HANDLER: Final = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
CERTIFICATES: Final = "sasl.oauth.truststore.certificates"
"""Whom the token endpoint's certificate is trusted by, in PEM: this tool's own, since JAAS options have one line."""
NO_CERTIFICATES: Final = (
    f"{CERTIFICATES} is read by this tool alone: for MM2, mount the certificates and add "
    'oauth.ssl.truststore.location="PATH" oauth.ssl.truststore.type="PEM" to sasl.jaas.config'
)

_NO_HOSTNAMES: Final = "oauth.ssl.endpoint.identification.algorithm"
_EXTENSION: Final = "oauth.sasl.extension."
_TEXTS: Final = {
    "clientId": "oauth.client.id",
    "tokenEndpointUri": "oauth.token.endpoint.uri",
    "scope": "oauth.scope",
    "audience": "oauth.audience",
    "accessTokenLocation": "oauth.access.token.location",
    "username": "oauth.password.grant.username",
    "clientAssertionLocation": "oauth.client.assertion.location",
    "clientAssertionType": "oauth.client.assertion.type",
    "connectTimeoutSeconds": "oauth.connect.timeout.seconds",
    "readTimeoutSeconds": "oauth.read.timeout.seconds",
}
_FOUR_TIMES: Final = "the token endpoint is asked four times at most, within 10 s"
# What Strimzi's library does with them is done otherwise here, or not at all.
_NOT_USED: Final = {
    "grantType": ("oauth.client.credentials.grant.type", "tokens are asked for with client_credentials"),
    "httpRetries": ("oauth.http.retries", _FOUR_TIMES),
    "httpRetryPauseMs": ("oauth.http.retry.pause.millis", _FOUR_TIMES),
    "maxTokenExpirySeconds": ("oauth.max.token.expiry.seconds", "the token's own life counts"),
    "accessTokenIsJwt": ("oauth.access.token.is.jwt", "a token that is no JWT is recognised"),
    "includeAcceptHeader": ("oauth.include.accept.header", "the header Accept is sent"),
    "enableMetrics": ("oauth.enable.metrics", "it concerns Java's metrics"),
}
_VALUES: Final = {**_TEXTS, **{field: option for field, (option, _) in _NOT_USED.items()}}
_SECRETS: Final = {
    "clientSecret": ("oauth.client.secret", "key"),
    "accessToken": ("oauth.access.token", "key"),
    "refreshToken": ("oauth.refresh.token", "key"),
    "clientAssertion": ("oauth.client.assertion", "key"),
    "passwordSecret": ("oauth.password.grant.password", "password"),
}
FIELDS: Final = frozenset(
    {
        "type",
        *_VALUES,
        *_SECRETS,
        "disableTlsHostnameVerification",
        "saslExtensions",
        "tlsTrustedCertificates",
    }
)


def options_of(
    authentication: Mapping[str, Any], secret: Callable[[Mapping[str, Any], str], str]
) -> Iterator[tuple[str, str]]:
    """Yields the login module's options for the fields that are set; ``secret`` makes a reference of field and key."""
    for field, option in _VALUES.items():
        value = authentication.get(field)
        if value is not None:
            yield option, str(value).lower() if isinstance(value, bool) else str(value)
    for field, (option, key) in _SECRETS.items():
        source = authentication.get(field)
        if source:
            yield option, secret(source, key)
    if authentication.get("disableTlsHostnameVerification") is True:
        yield _NO_HOSTNAMES, ""
    for name, value in (authentication.get("saslExtensions") or {}).items():
        yield f"{_EXTENSION}{name}", str(value)


def not_used(authentication: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the fields that are set and make no difference here, each with the reason."""
    for field, (_, reason) in _NOT_USED.items():
        usual = field == "grantType" and authentication.get(field) == "client_credentials"
        if authentication.get(field) is not None and not usual:
            yield field, reason


def fields_of(module: LoginModule, secret: Callable[[str, str, str], Mapping[str, str]]) -> dict[str, Any] | None:
    """Gives the fields for a login module of Strimzi's library; None where an option has no field.

    ``secret`` makes a reference to a Kubernetes secret of a field's name, the name of its key and the option's value.
    """
    options = {name: value.reveal() for name, value in module.options.items()}
    fields: dict[str, Any] = {"type": "oauth"}
    for field, option in _VALUES.items():
        if option in options:
            text = options.pop(option)
            fields[field] = text == "true" if text in ("true", "false") else int(text) if text.isdigit() else text
    for field, (option, key) in _SECRETS.items():
        if option in options:
            fields[field] = secret(field, key, options.pop(option))
    if options.get(_NO_HOSTNAMES) == "":
        fields["disableTlsHostnameVerification"] = True
        del options[_NO_HOSTNAMES]
    extensions = {name: options.pop(name) for name in list(options) if name.startswith(_EXTENSION)}
    if extensions:
        fields["saslExtensions"] = {name.removeprefix(_EXTENSION): value for name, value in extensions.items()}
    return None if options else fields
