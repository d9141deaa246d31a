"""OAUTHBEARER and AWS_MSK_IAM as Java clients, Strimzi and Amazon's library write them."""

from __future__ import annotations

import base64
import logging
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from confluent_kafka import Producer

from failover.config.clients import ClientSettings
from failover.config.java_client import read_client
from failover.config.oauth import AwsIam, ClientCredentials, TokenFile, TokenSource, UnsecuredToken
from failover.config.secret import Secret
from failover.config.settings import Origin, make_setting
from failover.errors import ConfigError, TokenUnavailable

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
KAFKA = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
OLDER = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
STRIMZI = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
LOGIN, ENDPOINT = "sasl.login.callback.handler.class", "sasl.oauthbearer.token.endpoint.url"
URL = "https://idp.example.com/token"
CERTIFICATE = (Path(__file__).parent / "pem" / "certificate.pem").read_text()


def read(jaas: str = "", mechanism: str = "OAUTHBEARER", **pairs: str) -> ClientSettings:
    named = {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        **({"sasl.jaas.config": jaas} if jaas else {}),
        **pairs,
    }
    settings = {key: make_setting(key, value, Origin("file", f"A.{key}", "f", 7)) for key, value in named.items()}
    return read_client(settings, alias="A")


def source(jaas: str = "", mechanism: str = "OAUTHBEARER", **pairs: str) -> TokenSource:
    sasl = read(jaas, mechanism, **pairs).sasl
    assert sasl is not None
    assert sasl.token is not None
    assert sasl.mechanism == "OAUTHBEARER"
    return sasl.token.source


def refused(jaas: str = "", mechanism: str = "OAUTHBEARER", **pairs: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(jaas, mechanism, **pairs)
    assert caught.value.exit_code == 2
    assert caught.value.hint
    assert "hunter2" not in caught.value.message + caught.value.hint
    return caught.value


@pytest.mark.parametrize("pairs", [{LOGIN: KAFKA}, {LOGIN: OLDER}, {}])
def test_client_credentials_in_jaas(pairs):
    jaas = f'{MODULE} clientId="app" clientSecret="hunter2" scope="kafka";'
    assert source(jaas, **{ENDPOINT: URL}, **pairs) == ClientCredentials(
        url=Secret(URL), client_id="app", client_secret=Secret("hunter2"), scope="kafka"
    )


def test_client_credentials_in_settings_of_their_own_win():
    found = source(
        f'{MODULE} clientId="old" clientSecret="old" scope="old";',
        **{
            ENDPOINT: URL,
            LOGIN: KAFKA,
            "sasl.oauthbearer.client.credentials.client.id": "app",
            "sasl.oauthbearer.client.credentials.client.secret": "hunter2",
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.header.urlencode": "true",
            "sasl.oauthbearer.sub.claim.name": "azp",
            "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.x.ClientCredentialsJwtRetriever",
            "sasl.login.connect.timeout.ms": "1000",
            "sasl.login.read.timeout.ms": "2000",
            "sasl.login.retry.backoff.ms": "30",
            "sasl.login.retry.backoff.max.ms": "400",
        },
    )
    assert found == ClientCredentials(
        url=Secret(URL),
        client_id="app",
        client_secret=Secret("hunter2"),
        scope="kafka",
        urlencode=True,
        subject_claim="azp",
        connect_seconds=1,
        read_seconds=2,
        backoff_seconds=0.03,
        longest_backoff_seconds=0.4,
    )


def test_extensions_and_when_to_renew():
    jaas = f'{MODULE} clientId="a" clientSecret="b" extension_logicalCluster="lkc-1";'
    sasl = read(jaas, **{ENDPOINT: URL, "sasl.login.refresh.window.factor": "0.6"}).sasl
    assert sasl is not None
    assert sasl.token is not None
    assert (sasl.token.extensions, sasl.token.renew_at) == ((("logicalCluster", "lkc-1"),), 0.6)
    assert "is not within 0.5 to 1" in refused(jaas, **{"sasl.login.refresh.window.factor": "3"}).message


def test_the_authority_of_the_endpoint_stands_among_the_jaas_options(tmp_path):
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    options = f'clientId="a" clientSecret="b" ssl.truststore.location="{tmp_path}/ca.pem"'
    found = source(f"{MODULE} {options};", **{ENDPOINT: URL})
    assert isinstance(found, ClientCredentials)
    assert found.tls is not None
    assert found.tls.ca_pem == CERTIFICATE
    error = refused(f"{MODULE} {options.replace('ca.pem', 'no.pem')};", **{ENDPOINT: URL})
    assert error.message.startswith("A.sasl.jaas.config: ssl.truststore.location (f:7): ")
    assert "no.pem cannot be read" in error.message


def test_a_token_file():
    assert source(f"{MODULE};", **{ENDPOINT: "file:///run/to%20ken", LOGIN: KAFKA}) == TokenFile(path="/run/to ken")


def test_strimzis_options(tmp_path):
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    jaas = (
        f'{MODULE} oauth.client.id="app" oauth.client.secret="hunter2" oauth.token.endpoint.uri="{URL}" '
        f'oauth.scope="s" oauth.audience="a" oauth.ssl.truststore.location="{tmp_path}/ca.pem" '
        'oauth.ssl.truststore.type="PEM" oauth.ssl.endpoint.identification.algorithm="" oauth.read.timeout.seconds="3";'
    )
    found = source(jaas, **{LOGIN: STRIMZI})
    assert isinstance(found, ClientCredentials)
    assert (found.client_id, found.scope, found.audience, found.read_seconds) == ("app", "s", "a", 3)
    assert found.client_secret == Secret("hunter2")
    assert found.tls is not None
    assert (found.tls.ca_pem, found.tls.verify_hostname) == (CERTIFICATE, False)
    assert source(f'{MODULE} oauth.access.token.location="/t";', **{LOGIN: STRIMZI}) == TokenFile(path="/t")


def test_kafkas_unsecured_tokens():
    found = source(
        f'{MODULE} unsecuredLoginStringClaim_sub="me" unsecuredLoginNumberClaim_n="1" '
        'unsecuredLoginListClaim_scope=",a,b" unsecuredLoginLifetimeSeconds="30";'
    )
    claims = (("sub", "me"), ("n", 1.0), ("scope", ("a", "b")))
    assert found == UnsecuredToken(claims=claims, principal="me", seconds=30)


@pytest.mark.parametrize(
    ("jaas", "pairs", "words", "hint"),
    [
        ("", {ENDPOINT: URL}, "without sasl.jaas.config", "clientId"),
        (f'{MODULE} clientId="hunter2";', {ENDPOINT: URL}, "has no clientSecret", "clientSecret="),
        (f'{MODULE} clientSecret="hunter2";', {ENDPOINT: URL}, "has no clientId", "clientId="),
        (f"{MODULE};", {LOGIN: KAFKA}, "token.endpoint.url is not set", ENDPOINT),
        (f"{MODULE};", {ENDPOINT: "ftp://x/hunter2"}, "no http:// or https:// address", ENDPOINT),
        (f"{MODULE};", {}, "names no way to get a token", ENDPOINT),
        (f"{MODULE};", {LOGIN: "com.acme.Handler"}, "com.acme.Handler is a Java class", f"{LOGIN}="),
        (f"{MODULE};", {"sasl.login.class": "com.acme.Login"}, "com.acme.Login is a Java class", "sasl.login.class="),
        (
            f"{MODULE};",
            {"sasl.client.callback.handler.class": "com.acme.X"},
            "com.acme.X is a Java class",
            "sasl.client.callback.handler.class=",
        ),
        (
            f"{MODULE};",
            {ENDPOINT: URL, "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.x.JwtBearerJwtRetriever"},
            "JwtBearerJwtRetriever is a Java class",
            "client credentials",
        ),
        (f'{MODULE} oauth.refresh.token="hunter2";', {LOGIN: STRIMZI}, "option oauth.refresh.token", "clientId"),
        (f'{MODULE} oauth.token.endpoint.uri="{URL}";', {LOGIN: STRIMZI}, "has no oauth.client.id", "oauth.client.id"),
        (f"{MODULE};", {LOGIN: STRIMZI}, "oauth.token.endpoint.uri is not set", "token endpoint"),
        (f'{MODULE} unsecuredLoginNumberClaim_n="x";', {}, "unsecuredLoginNumberClaim_n is no number", "digits"),
        (
            f'{MODULE} clientId="a" clientSecret="hunter2";',
            {ENDPOINT: URL, "sasl.login.read.timeout.ms": "5 s"},
            "A.sasl.login.read.timeout.ms (f:7): '5 s' is no number",
            "digits",
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_what_to_do(jaas, pairs, words, hint):
    error = refused(jaas, **pairs)
    assert words in error.message
    assert hint in error.hint


# -- Amazon MSK ----------------------------------------------------------------------------------

BROKER = "b-1.demo.abc123.c2.kafka.eu-central-1.amazonaws.com:9098"
IAM = "software.amazon.msk.auth.iam.IAMLoginModule required"
CALLBACK = {"sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler"}


@pytest.fixture
def around(monkeypatch, tmp_path):
    """Is an environment with AWS credentials and nothing else of AWS."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFAKE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    return monkeypatch


def test_the_region_stands_in_the_brokers_names_or_in_the_environment(around):
    assert source(f"{IAM};", "AWS_MSK_IAM", **{"bootstrap.servers": BROKER}, **CALLBACK) == AwsIam(
        region="eu-central-1"
    )
    assert "no AWS region is known" in refused(f"{IAM};", "AWS_MSK_IAM", **CALLBACK).message
    around.setenv("AWS_REGION", "us-east-2")
    named = f'{IAM} awsProfileName="p" awsRoleArn="r" awsRoleSessionName="s";'
    assert source(named, "AWS_MSK_IAM", **CALLBACK) == AwsIam(
        region="us-east-2", profile="p", role_arn="r", role_session="s"
    )
    over_bearer = {LOGIN: "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"}
    assert source(f"{MODULE};", **over_bearer) == AwsIam(region="us-east-2")
    assert "awsRoleExternalId" in refused(f'{IAM} awsRoleExternalId="x";', "AWS_MSK_IAM", **CALLBACK).message


def test_a_token_is_signed_from_the_environments_credentials(around):
    client = read(f"{IAM};", "AWS_MSK_IAM", **{"bootstrap.servers": BROKER}, **CALLBACK)
    assert client.sasl is not None
    assert client.sasl.token is not None
    token = client.sasl.token.provider().token()
    text = token.value.reveal()
    signed = urlsplit(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
    assert signed.hostname == "kafka.eu-central-1.amazonaws.com"
    query = parse_qs(signed.query)
    assert query["Action"] == ["kafka-cluster:Connect"]
    assert query["X-Amz-Credential"][0].startswith("AKIAFAKE/")
    assert "hunter2" not in signed.geturl()
    assert 600 < token.expires - token.obtained <= 900
    properties = client.librdkafka()
    assert properties["sasl.mechanism"] == "OAUTHBEARER"
    Producer(properties, logger=logging.getLogger("librdkafka"))


def test_without_credentials_or_without_the_signer_it_is_said_what_is_missing(around):
    around.delenv("AWS_ACCESS_KEY_ID")
    around.delenv("AWS_SECRET_ACCESS_KEY")
    lacking = {"bootstrap.servers": BROKER.replace("eu-central-1", "eu-west-1")}
    sasl = read(f'{IAM} awsProfileName="nobody";', "AWS_MSK_IAM", **lacking, **CALLBACK).sasl
    assert sasl is not None
    assert sasl.token is not None
    with pytest.raises(TokenUnavailable, match="AWS credentials for region eu-west-1 cannot be had"):
        sasl.token.provider().token()
    around.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    around.setattr(sasl.token.provider(), "_failed", 0.0)
    with pytest.raises(TokenUnavailable, match="is not installed") as caught:
        sasl.token.provider().token()
    assert caught.value.hint == 'pip install "failover[aws]"'
