from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from failover.config.client_table import TABLE, row_of, table_markdown
from failover.config.clients import ClientSettings, SaslSettings
from failover.config.java_client import client_notes, read_client
from failover.config.mm2_keys import CLIENT_KEYS
from failover.config.secret import Secret
from failover.config.settings import Origin, make_setting
from failover.errors import ConfigError

PEM = Path(__file__).parent / "pem"
CERTIFICATE = (PEM / "certificate.pem").read_text()
KEY = (PEM / "key.pem").read_text()
ENCRYPTED_KEY = (PEM / "encrypted-key.pem").read_text()
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="hunter2";'


def settings(pairs: dict[str, str]) -> dict[str, Any]:
    return {key: make_setting(key, value, Origin("file", f"A.{key}", "f", 7)) for key, value in pairs.items()}


def read(**pairs: str) -> ClientSettings:
    named = {key.replace("_", "."): value for key, value in pairs.items()}
    return read_client(settings({"bootstrap.servers": "h:1", **named}), alias="A")


def refused(**pairs: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(**pairs)
    assert caught.value.exit_code == 2
    assert caught.value.hint
    assert "hunter" not in caught.value.message + caught.value.hint
    return caught.value


def librdkafka_takes(client: ClientSettings) -> None:
    """Lets librdkafka itself judge every property, PEM text included."""
    Producer(client.librdkafka(), logger=logging.getLogger("librdkafka"))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("h:1", (("h", 1),)),
        (" h1:1 ,h2:2, ", (("h1", 1), ("h2", 2))),
        ("[::1]:9092", (("::1", 9092),)),
        ("SASL_SSL://b-1.example.com:9096", (("b-1.example.com", 9096),)),
    ],
)
def test_bootstrap(written, expected):
    client = read(bootstrap_servers=written)
    assert client.bootstrap == expected
    assert client.security_protocol == "PLAINTEXT"
    librdkafka_takes(client)


@pytest.mark.parametrize("written", ["h", "h:", ":1", "h:0", "h:70000", "h:1 # comment", "http://h:1/x"])
def test_bad_bootstrap_names_key_file_and_line(written):
    assert refused(bootstrap_servers=written).message.startswith("A.bootstrap.servers (f:7): ")


def test_no_bootstrap_names_the_cluster():
    assert "cluster 'A' has no bootstrap.servers" in refused(bootstrap_servers=" ").message


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "sasl_plaintext", " SASL_SSL "])
def test_protocols(protocol):
    client = read(security_protocol=protocol, sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=SCRAM)
    assert client.security_protocol == protocol.strip().upper()
    assert (client.sasl is not None) is ("SASL" in client.security_protocol)
    assert (client.tls is not None) is client.security_protocol.endswith("SSL")
    librdkafka_takes(client)


def test_unknown_protocol():
    assert "'TLS' is not a security protocol" in refused(security_protocol="tls").message


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_and_password_come_from_jaas(mechanism):
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    jaas = f'x.shaded.{module} required username="a b" password="p;\\"=x";'
    client = read(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=jaas)
    assert client.sasl is not None
    assert client.sasl == SaslSettings(mechanism, "a b", Secret('p;"=x'))
    assert client.librdkafka()["sasl.password"] == 'p;"=x'
    librdkafka_takes(client)


@pytest.mark.parametrize("mechanism", ["GSSAPI", "DIGEST-MD5", "plain", ""])
def test_mechanisms_that_cannot_be_used_are_named_with_a_way_out(mechanism):
    error = refused(security_protocol="SASL_SSL", sasl_mechanism=mechanism, sasl_jaas_config=SCRAM)
    assert (mechanism or "GSSAPI") in error.message
    assert "A.sasl.mechanism" in error.message
    assert "failover.cluster.A.sasl.jaas.config" in error.hint


@pytest.mark.parametrize(
    "key", ["sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class"]
)
def test_callback_classes_are_named(key):
    pairs = {key.replace(".", "_"): "com.acme.X"}
    error = refused(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config=SCRAM, **pairs)
    assert f"A.{key} (f:7): com.acme.X is a Java class" in error.message
    read(**pairs)  # means nothing without SASL


@pytest.mark.parametrize(
    ("jaas", "words"),
    [
        ("", "without sasl.jaas.config"),
        (SCRAM.replace("username", "user"), "no username"),
        (SCRAM.replace("password", "pass"), "no password"),
        (SCRAM.replace(";", ' tokenauth="true";'), "tokenauth"),
        (SCRAM.replace("ScramLoginModule", "Other"), "scram.Other is a Java class"),
        (SCRAM[:-1], "semicolon"),
    ],
)
def test_jaas_that_gives_no_credentials(jaas, words):
    assert words in refused(security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=jaas).message


@pytest.mark.parametrize(
    ("pairs", "verify"),
    [
        ({}, True),
        ({"ssl_endpoint_identification_algorithm": "https"}, True),
        ({"ssl_endpoint_identification_algorithm": "HTTPS "}, True),
        ({"ssl_endpoint_identification_algorithm": ""}, False),
        ({"ssl_endpoint_identification_algorithm": "  "}, False),
    ],
)
def test_host_name_check_is_off_only_if_the_setting_is_there_and_empty(pairs, verify):
    client = read(security_protocol="SSL", **pairs)
    assert client.tls is not None
    assert client.tls.verify_hostname is verify
    assert client.librdkafka()["ssl.endpoint.identification.algorithm"] == ("https" if verify else "none")
    librdkafka_takes(client)


def test_unknown_host_name_check_is_not_guessed():
    assert (
        "'ldaps' is not known"
        in refused(security_protocol="SSL", ssl_endpoint_identification_algorithm="ldaps").message
    )


def test_system_trust_without_a_trust_store():
    client = read(security_protocol="SSL")
    assert client.tls is not None
    assert client.tls.ca_pem is None


def test_pem_files():
    client = read(
        security_protocol="SSL",
        ssl_truststore_type="PEM",
        ssl_truststore_location=str(PEM / "certificate.pem"),
        ssl_keystore_type="PEM",
        ssl_keystore_location=str(PEM / "both.pem"),
    )
    assert client.tls is not None
    assert client.tls.ca_pem == client.tls.certificate_chain_pem == CERTIFICATE
    assert client.tls.key_pem is not None
    assert client.tls.key_pem.reveal() == KEY
    librdkafka_takes(client)


@pytest.mark.parametrize("joint", ["\n", "", " ", "\r\n"], ids=["lines", "one line", "blanks", "crlf"])
def test_inline_pem_as_properties_files_hold_it(joint):
    client = read(
        security_protocol="SSL",
        ssl_truststore_certificates=joint.join((CERTIFICATE + CERTIFICATE).splitlines()),
        ssl_keystore_certificate_chain=joint.join(CERTIFICATE.splitlines()),
        ssl_keystore_key=joint.join(ENCRYPTED_KEY.splitlines()),
        ssl_key_password="hunter2",
    )
    assert client.tls is not None
    assert client.tls.ca_pem == CERTIFICATE + CERTIFICATE
    assert client.tls.key_pem is not None
    assert client.tls.key_pem.reveal() == KEY
    ssl.create_default_context(cadata=client.tls.ca_pem)
    librdkafka_takes(client)


def test_an_encrypted_key_needs_its_password():
    pairs = {"ssl_keystore_certificate_chain": CERTIFICATE, "ssl_keystore_key": ENCRYPTED_KEY}
    assert "failover.cluster.A.ssl.key.password" in refused(security_protocol="SSL", **pairs).hint


def test_the_password_of_a_plain_key_is_left_out():
    pairs = {"ssl_keystore_certificate_chain": CERTIFICATE, "ssl_keystore_key": KEY, "ssl_key_password": "hunter2"}
    librdkafka_takes(read(security_protocol="SSL", **pairs))


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ({"ssl_keystore_key": KEY}, "is set without ssl.keystore.certificate.chain"),
        ({"ssl_keystore_certificate_chain": CERTIFICATE}, "is set without ssl.keystore.key"),
        ({"ssl_keystore_certificate_chain": CERTIFICATE, "ssl_keystore_key": "hunter"}, "holds no PEM private key"),
        ({"ssl_keystore_certificate_chain": CERTIFICATE, "ssl_keystore_key": KEY + KEY}, "holds 2 private keys"),
        ({"ssl_keystore_certificate_chain": KEY, "ssl_keystore_key": KEY}, "holds no PEM certificate"),
        ({"ssl_truststore_certificates": CERTIFICATE.replace("MII", "M!I")}, "is damaged"),
        ({"ssl_truststore_location": "/nowhere/x.pem"}, "/nowhere/x.pem cannot be read"),
        ({"ssl_truststore_location": __file__}, "is no PEM file, PKCS#12 store or JKS store"),
        ({"ssl_engine_factory_class": "com.acme.X"}, "com.acme.X is a Java class"),
    ],
)
def test_tls_settings_that_cannot_be_used(pairs, words):
    assert words in refused(security_protocol="SSL", **pairs).message


def test_every_java_setting_that_librdkafka_refuses_stays_out():
    extra = {
        "max.request.size": "1",
        "buffer.memory": "1",
        "ssl.protocol": "TLSv1.3",
        "ssl.enabled.protocols": "TLSv1.2",
        "interceptor.classes": "X",
        "metric.reporters": "X",
        "auto.offset.reset": "none",
        "ssl.truststore.type": "PEM",
        "sasl.kerberos.service.name": "kafka",
    }
    client = read_client(settings({"bootstrap.servers": "h:1", **extra}), alias="A")
    assert client.librdkafka() == {
        "bootstrap.servers": "h:1",
        "security.protocol": "PLAINTEXT",
        "client.id": "failover",
    }


def test_settings_that_mean_nothing_here_are_noted_with_the_reason():
    notes = list(
        client_notes(settings({"ssl.protocol": "x", "sasl.kerberos.kinit.cmd": "x", "ssl.foo": "x", "acks": "1"}), "A")
    )
    assert [note.message for note in notes] == [
        "A.ssl.protocol is not used to connect to A: OpenSSL picks the newest version both sides speak",
        "A.sasl.kerberos.kinit.cmd is not used to connect to A: it concerns Kerberos only",
        "A.ssl.foo is not used to connect to A",
    ]


def test_every_connection_setting_of_kafka_has_a_row_of_its_own_or_a_prefix():
    assert [key for key in CLIENT_KEYS if row_of(key) is None] == []
    assert len({row.java for row in TABLE}) == len(TABLE)
    assert all(row.reason for row in TABLE if row.treatment != "used")
    by_key = {key: row_of(key) or TABLE[0] for key in CLIENT_KEYS}
    assert by_key["sasl.oauthbearer.scope.claim.name"].java == "sasl.oauthbearer."
    assert by_key["sasl.oauthbearer.scope"].treatment == "used"


def test_the_documentation_holds_the_table():
    page = Path(__file__).parents[3] / "docs" / "security.md"
    assert table_markdown() in page.read_text()
