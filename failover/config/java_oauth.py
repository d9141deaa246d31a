"""Turns the settings of OAUTHBEARER and AWS_MSK_IAM into a source of tokens.

Three ways of writing client credentials are known: Kafka's own (KIP-768, and KIP-1139 of Kafka 4.1), and Strimzi's
library, which Strimzi's KafkaMirrorMaker2 uses. Other callback classes are Java code and are named as not usable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn
from urllib.parse import unquote, urlsplit

from failover.config.clients import TlsSettings
from failover.config.java_reader import ClientReader
from failover.config.java_sasl import login_module
from failover.config.java_tls import read_tls
from failover.config.oauth import RENEW_AT, AwsIam, ClientCredentials, TokenFile, TokenSettings, UnsecuredToken
from failover.config.secret import Secret
from failover.config.settings import Origin, Setting, make_setting
from failover.config.strimzi_oauth import CERTIFICATES
from failover.errors import ConfigError

_LOGIN_CALLBACK, _CLIENT_CALLBACK = "sasl.login.callback.handler.class", "sasl.client.callback.handler.class"
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_CREDENTIALS = "sasl.oauthbearer.client.credentials."

# Known by the class name alone: the packages changed (Kafka 3.4) and vendors shade them.
_KAFKA_CALLBACK: Final = "OAuthBearerLoginCallbackHandler"
_UNSECURED_CALLBACK: Final = "OAuthBearerUnsecuredLoginCallbackHandler"
_STRIMZI_CALLBACK: Final = "JaasClientOauthLoginCallbackHandler"
_AWS_CALLBACKS: Final = ("IAMClientCallbackHandler", "IAMOAuthBearerLoginCallbackHandler")
_PLAIN_CLIENT_CALLBACKS: Final = ("OAuthBearerSaslClientCallbackHandler", *_AWS_CALLBACKS)
_RETRIEVERS: Final = ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")
_JAAS: Final = "sasl.jaas.config"
_EXAMPLE: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'clientId="…" clientSecret="…" scope="…";'
)
# Strimzi's options for ways to a token that are not known here.
_STRIMZI_OTHERS: Final = (
    "oauth.access.token",
    "oauth.refresh.token",
    "oauth.password.grant.username",
    "oauth.client.assertion",
    "oauth.client.assertion.location",
)
_AWS_OTHERS: Final = ("awsRoleAccessKeyId", "awsRoleSecretAccessKey", "awsRoleSessionToken", "awsRoleExternalId")


def read_token(reader: ClientReader, mechanism: str) -> TokenSettings:
    """Gives the source of tokens; raises ConfigError naming the setting and what to write instead."""
    renew_at = reader.fraction("sasl.login.refresh.window.factor", low=0.5, high=1.0, default=RENEW_AT)
    login, client = _class(reader, _LOGIN_CALLBACK), _class(reader, _CLIENT_CALLBACK)
    if reader.value("sasl.login.class"):
        _refuse(reader, "sasl.login.class")
    if client and client not in _PLAIN_CLIENT_CALLBACKS:
        _refuse(reader, _CLIENT_CALLBACK)
    if mechanism == "AWS_MSK_IAM" or login in _AWS_CALLBACKS or client in _AWS_CALLBACKS:
        return TokenSettings(_aws(reader), (), renew_at)
    options = {name: value.reveal() for name, value in login_module(reader, _EXAMPLE).options.items()}
    if login == _STRIMZI_CALLBACK:
        return TokenSettings(_strimzi(reader, options), _extensions(options, "oauth.sasl.extension."), renew_at)
    if login not in ("", _KAFKA_CALLBACK, _UNSECURED_CALLBACK):
        _refuse(reader, _LOGIN_CALLBACK)
    if login == _KAFKA_CALLBACK or (not login and reader.value(_ENDPOINT)):
        return TokenSettings(_kafka(reader, options), _extensions(options, "extension_"), renew_at)
    return TokenSettings(_unsecured(reader, options), _extensions(options, "unsecuredLoginExtension_"), renew_at)


# -- Kafka's own ---------------------------------------------------------------------------------


def _kafka(reader: ClientReader, options: Mapping[str, str]) -> ClientCredentials | TokenFile:
    subject = reader.value("sasl.oauthbearer.sub.claim.name") or "sub"
    retriever = _class(reader, _RETRIEVER)
    if retriever and retriever not in _RETRIEVERS:
        reader.refuse_class(
            _RETRIEVER,
            f"use client credentials: set {reader.own(_RETRIEVER)}= and {reader.own(_JAAS)}={_EXAMPLE}",
        )
    url = reader.value(_ENDPOINT)
    parts = urlsplit(url)
    if parts.scheme == "file":
        return TokenFile(path=unquote(parts.path), subject_claim=subject)
    _check_url(url, reader.where(_ENDPOINT), reader.own(_ENDPOINT))
    client_id = reader.value(f"{_CREDENTIALS}client.id") or options.get("clientId", "")
    client_secret = reader.value(f"{_CREDENTIALS}client.secret") or options.get("clientSecret", "")
    if not client_id or not client_secret:
        missing = "clientId" if not client_id else "clientSecret"
        raise ConfigError(
            f"{reader.where(_JAAS)} has no {missing} for {_ENDPOINT}", hint=f"set {reader.own(_JAAS)}={_EXAMPLE}"
        )
    connect, read = (reader.milliseconds(f"sasl.login.{name}.timeout.ms") for name in ("connect", "read"))
    pause, longest = (reader.milliseconds(f"sasl.login.retry.backoff.{name}ms") for name in ("", "max."))
    return ClientCredentials(
        url=Secret(url),
        client_id=client_id,
        client_secret=Secret(client_secret),
        scope=reader.value("sasl.oauthbearer.scope") or options.get("scope", ""),
        subject_claim=subject,
        urlencode=reader.boolean("sasl.oauthbearer.header.urlencode"),
        tls=_tls(reader, options, "ssl."),
        connect_seconds=5.0 if connect is None else connect,
        read_seconds=10.0 if read is None else read,
        backoff_seconds=0.1 if pause is None else pause,
        longest_backoff_seconds=10.0 if longest is None else longest,
    )


def _unsecured(reader: ClientReader, options: Mapping[str, str]) -> UnsecuredToken:
    """Reads Kafka's default callback (OAuthBearerUnsecuredLoginCallbackHandler): a claim for each option."""
    where = reader.where(_JAAS)
    claims: list[tuple[str, str | float | tuple[str, ...]]] = []
    for name, value in options.items():
        kind, _, claim = name.removeprefix("unsecuredLogin").partition("Claim_")
        if not name.startswith("unsecuredLogin") or not claim:
            continue
        if kind == "String":
            claims.append((claim, value))
        elif kind == "Number":
            claims.append((claim, _number(value, name, where)))
        elif kind == "List" and value:
            # Its first character separates the rest.
            claims.append((claim, tuple(value[1:].split(value[0]))))
    principal = dict(claims).get(options.get("unsecuredLoginPrincipalClaimName", "sub"))
    if not isinstance(principal, str) or not principal:
        raise ConfigError(
            f"{where} names no way to get a token",
            hint=f"set {reader.own(_ENDPOINT)}=https://… and {reader.own(_LOGIN_CALLBACK)}="
            f"org.apache.kafka.common.security.oauthbearer.{_KAFKA_CALLBACK}",
        )
    seconds = _number(options.get("unsecuredLoginLifetimeSeconds", "3600"), "unsecuredLoginLifetimeSeconds", where)
    return UnsecuredToken(claims=tuple(claims), principal=principal, seconds=seconds)


def _extensions(options: Mapping[str, str], prefix: str) -> tuple[tuple[str, str], ...]:
    return tuple((name[len(prefix) :], value) for name, value in options.items() if name.startswith(prefix))


# -- Strimzi's library ---------------------------------------------------------------------------


def _strimzi(reader: ClientReader, options: Mapping[str, str]) -> ClientCredentials | TokenFile:
    where = reader.where(_JAAS)
    subject = options.get("oauth.username.claim") or "sub"
    for name in _STRIMZI_OTHERS:
        if options.get(name):
            raise ConfigError(
                f"{where}: the option {name} cannot be used here",
                hint=f"give a client id and secret: set {reader.own(_LOGIN_CALLBACK)}=, {reader.own(_ENDPOINT)}=… "
                f"and {reader.own(_JAAS)}={_EXAMPLE}",
            )
    if path := options.get("oauth.access.token.location"):
        return TokenFile(path=path, subject_claim=subject)
    url = options.get("oauth.token.endpoint.uri", "")
    _check_url(url, f"{where}: oauth.token.endpoint.uri", reader.own(_JAAS))
    client_id, client_secret = options.get("oauth.client.id", ""), options.get("oauth.client.secret", "")
    if not client_id or not client_secret:
        missing = "oauth.client.id" if not client_id else "oauth.client.secret"
        raise ConfigError(
            f"{where} has no {missing}", hint=f"set {reader.own(_JAAS)}=… with oauth.client.id and oauth.client.secret"
        )
    connect = _number(options.get("oauth.connect.timeout.seconds", "5"), "oauth.connect.timeout.seconds", where)
    read = _number(options.get("oauth.read.timeout.seconds", "10"), "oauth.read.timeout.seconds", where)
    return ClientCredentials(
        url=Secret(url),
        client_id=client_id,
        client_secret=Secret(client_secret),
        scope=options.get("oauth.scope", ""),
        audience=options.get("oauth.audience", ""),
        subject_claim=subject,
        tls=_tls(reader, options, "oauth.ssl."),
        connect_seconds=connect,
        read_seconds=read,
    )


# -- Amazon MSK ----------------------------------------------------------------------------------


def _aws(reader: ClientReader) -> AwsIam:
    from failover.config.oauth_aws import region_of

    jaas = reader.value(_JAAS)
    options = {name: value.reveal() for name, value in login_module(reader, "").options.items()} if jaas else {}
    for name in _AWS_OTHERS:
        if options.get(name):
            raise ConfigError(
                f"{reader.where(_JAAS)}: the option {name} cannot be used here",
                hint="give these credentials as a profile of the AWS configuration and name it: awsProfileName",
            )
    hosts = [server.strip().rpartition(":")[0] for server in reader.value("bootstrap.servers").split(",")]
    region = next(filter(None, map(region_of, hosts)), "") or options.get("awsStsRegion", "") or _region_around()
    if not region:
        raise ConfigError(
            f"cluster '{reader.alias}' uses AWS_MSK_IAM and no AWS region is known: its brokers' names hold none",
            hint="set the environment variable AWS_REGION",
        )
    return AwsIam(
        region=region,
        profile=options.get("awsProfileName", ""),
        role_arn=options.get("awsRoleArn", ""),
        role_session=options.get("awsRoleSessionName", ""),
    )


def _region_around() -> str:
    import os

    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""


# -- shared --------------------------------------------------------------------------------------


def _class(reader: ClientReader, key: str) -> str:
    """Gives a class name without its package."""
    return reader.value(key).rpartition(".")[2]


def _refuse(reader: ClientReader, key: str) -> NoReturn:
    reader.refuse_class(
        key,
        f"use client credentials: set {reader.own(key)}=, {reader.own(_ENDPOINT)}=https://… and "
        f"{reader.own(_JAAS)}={_EXAMPLE}",
    )


def _check_url(url: str, where: str, own: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        # The address itself may hold a password.
        what = "is no http:// or https:// address" if url else "is not set"
        raise ConfigError(f"{where} {what}", hint=f"set {own} to the token endpoint of the identity provider")


def _number(text: str, name: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{where}: the option {name} is no number", hint="write digits, nothing after them") from None


def _tls(reader: ClientReader, options: Mapping[str, str], prefix: str) -> TlsSettings | None:
    """Gives the TLS settings for the token endpoint, which stand among the JAAS options; None without any.

    Trusted certificates in a key of their own go before those.
    """
    jaas = reader.properties[_JAAS]
    settings: dict[str, Setting] = {}
    for name, value in options.items():
        if name.startswith(prefix):
            key = "ssl." + name[len(prefix) :]
            origin = Origin(jaas.origin.kind, f"{jaas.origin.key or _JAAS}: {name}", jaas.origin.file, jaas.origin.line)
            settings[key] = make_setting(key, value, origin, secret=True)
    if reader.value(CERTIFICATES):
        settings["ssl.truststore.certificates"] = reader.properties[CERTIFICATES]
    if not settings:
        return None
    return read_tls(ClientReader(settings, reader.alias, own_prefix=f"{reader.own(_JAAS)}: "))
