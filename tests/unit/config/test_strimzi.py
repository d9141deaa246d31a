"""Strimzi's KafkaMirrorMaker2 resources, both versions, as configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from failover.config.findings import value_findings
from failover.config.load import load_config, select_flow
from failover.config.oauth import ClientCredentials
from failover.errors import ConfigError
from tests.unit.config.test_java_client import CERTIFICATE

V1BETA2 = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: mirror
  namespace: kafka
spec:
  version: 4.0.0
  replicas: 1
  connectCluster: standby
  clusters:
    - alias: primary
      bootstrapServers: p1:9093,p2:9093
      tls:
        trustedCertificates:
          - secretName: primary-ca
            pattern: "*.crt"
      authentication:
        type: scram-sha-512
        username: mm2
        passwordSecret: {secretName: primary-login, password: pw}
    - alias: standby
      bootstrapServers: s1:9092
      config:
        config.storage.replication.factor: -1
        offset.storage.topic: my-offsets
        producer.batch.size: 65536
  mirrors:
    - sourceCluster: primary
      targetCluster: standby
      sourceConnector:
        tasksMax: 5
        config:
          replication.factor: -1
          offset-syncs.topic.location: target
          consumer.fetch.min.bytes: 100
      heartbeatConnector: {config: {heartbeats.topic.replication.factor: 1}}
      checkpointConnector:
        state: paused
        config:
          offset-syncs.topic.location: target
          sync.group.offsets.enabled: "true"
      topicsPattern: "orders|pay.*"
      groupsPattern: "no"
      groupsBlacklistPattern: "tmp-.*"
"""
V1 = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  version: 4.1.0
  target:
    alias: standby
    bootstrapServers: s1:9093
    groupId: mirror-group
    configStorageTopic: mirror-configs
    offsetStorageTopic: mirror-offsets
    statusStorageTopic: mirror-status
    tls: {trustedCertificates: []}
    authentication:
      type: tls
      certificateAndKey: {secretName: mm2-user, certificate: user.crt, key: user.key}
  mirrors:
    - source:
        alias: primary
        bootstrapServers: p1:9093
        authentication:
          type: custom
          sasl: true
          config:
            sasl.mechanism: PLAIN
            sasl.jaas.config: >-
              org.apache.kafka.common.security.plain.PlainLoginModule required
              username="u" password="${strimzisecrets:kafka/own:pw}";
      sourceConnector: {tasksMax: 2}
      checkpointConnector: {}
"""


def load(tmp_path: Path, text: str, *sets: str, secrets: str = ""):
    path = tmp_path / "mirror.yaml"
    path.write_text(text)
    return load_config(path, sets, secrets_dir=secrets)


def test_v1beta2(tmp_path):
    config = load(tmp_path, V1BETA2)
    selected = select_flow(config)
    flow = selected.flow
    assert (selected.name, config.form, config.mm2_version) == ("primary->standby", "strimzi", (4, 0))
    assert (flow.topics, flow.groups, flow.groups_exclude) == (("orders|pay.*",), ("no",), ("tmp-.*",))
    assert flow.connectors["source"].integer("tasks.max") == 5
    assert (flow.offset_syncs_location, flow.sync_group_offsets_enabled) == ("target", True)
    assert flow.connectors["heartbeat"].integer("heartbeats.topic.replication.factor") == 1
    assert str(flow.connectors["source"]["topics"].origin).endswith("mirror.yaml:42")
    worker = flow.worker.texts()
    assert (worker["group.id"], worker["offset.storage.topic"]) == ("mirrormaker2-cluster", "my-offsets")
    assert (worker["status.storage.topic"], worker["producer.batch.size"]) == ("mirrormaker2-cluster-status", "65536")
    ((code, message),) = [(note.code, note.message) for note in config.notes]
    assert code == "connector-stopped"
    assert message == "the resource wants primary->standby.MirrorCheckpointConnector paused"


def test_secrets_come_from_the_folder_when_they_are_needed(tmp_path):
    config = load(tmp_path, V1BETA2)
    assert select_flow(config).target_client().bootstrap == (("s1", 9092),)
    with pytest.raises(ConfigError) as caught:
        select_flow(config).source_client()
    assert "kubectl get secret primary-login -n kafka -o yaml > DIR/primary-login.yaml" in caught.value.hint
    folder = tmp_path / "secrets"
    for name, key, text in (("primary-login", "pw", "hunter2"), ("primary-ca", "a.crt", CERTIFICATE)):
        (folder / name).mkdir(parents=True)
        (folder / name / key).write_text(text)
    for config in (
        load(tmp_path, V1BETA2, secrets=str(folder)),
        load(tmp_path, V1BETA2, f"failover.secrets.dir={folder}"),
    ):
        client = select_flow(config).source_client()
        assert client.security_protocol == "SASL_SSL"
        assert client.tls is not None
        assert client.tls.ca_pem == CERTIFICATE
        assert client.librdkafka()["sasl.password"] == "hunter2"
        assert "hunter2" not in repr(config)


def test_v1(tmp_path):
    config = load(tmp_path, V1)
    flow = select_flow(config).flow
    assert config.mm2_version == (4, 1)
    worker = flow.worker.texts()
    assert [
        worker[key] for key in ("group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic")
    ] == [
        "mirror-group",
        "mirror-configs",
        "mirror-offsets",
        "mirror-status",
    ]
    target = {key: one.text for key, one in config.clusters["standby"].properties.items()}
    assert target == {
        "bootstrap.servers": "s1:9093",
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "${strimzisecrets:mm2-user:user.crt}",
        "ssl.keystore.key": "${strimzisecrets:mm2-user:user.key}",
    }
    folder = tmp_path / "kafka" / "own"
    folder.mkdir(parents=True)
    (folder / "pw").write_text("hunter2")
    client = select_flow(load(tmp_path, V1, secrets=str(tmp_path))).source_client()
    assert client.security_protocol == "SASL_PLAINTEXT"
    assert client.librdkafka()["sasl.password"] == "hunter2"
    assert not flow.emit_heartbeats_enabled, "there is no heartbeat connector"


OAUTH = """\
      authentication:
        type: oauth
        tokenEndpointUri: https://idp/token
        clientId: mm2
        clientSecret: {secretName: idp, key: secret}
        scope: kafka
        audience: brokers
        readTimeoutSeconds: 3
        disableTlsHostnameVerification: true
        saslExtensions: {tenant: blue}
        tlsTrustedCertificates:
          - {secretName: idp-ca, certificate: ca.crt}
          - {secretName: idp-ca, pattern: "*.pem"}
"""
SCRAM = V1BETA2[V1BETA2.index("      authentication:\n") : V1BETA2.index("    - alias: standby")]


def with_oauth(tmp_path: Path, text: str = OAUTH):
    folder = tmp_path / "secrets"
    for name, key, value in (
        ("primary-ca", "a.crt", CERTIFICATE),
        ("idp", "secret", "hunter2"),
        ("idp-ca", "ca.crt", CERTIFICATE),
        ("idp-ca", "b.pem", CERTIFICATE),
    ):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / key).write_text(value)
    return load(tmp_path, V1BETA2.replace(SCRAM, text), secrets=str(folder))


def test_every_field_of_oauth_reaches_the_token_provider(tmp_path):
    config = with_oauth(tmp_path)
    sasl = select_flow(config).source_client().sasl
    assert sasl is not None
    assert sasl.token is not None
    source = sasl.token.source
    assert isinstance(source, ClientCredentials)
    assert (source.url.reveal(), source.client_id, source.client_secret.reveal()) == (
        "https://idp/token",
        "mm2",
        "hunter2",
    )
    assert (source.scope, source.audience, source.read_seconds) == ("kafka", "brokers", 3)
    assert source.tls is not None
    assert source.tls.ca_pem is not None
    assert (source.tls.ca_pem.count("BEGIN CERTIFICATE"), source.tls.verify_hostname) == (2, False)
    assert sasl.token.extensions == (("tenant", "blue"),)
    assert [note.code for note in config.notes] == ["connector-stopped"]
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("httpRetries: 7", "not-used", "httpRetries of an oauth authentication makes no difference to this tool"),
        ("grantType: custom", "not-used", "asked for with client_credentials"),
        ("audiance: x", "unknown-key", "an oauth authentication's audiance is no field"),
    ],
)
def test_what_of_oauth_makes_no_difference_is_noted_with_its_line(tmp_path, line, code, words):
    config = with_oauth(tmp_path, f"{OAUTH}        {line}\n")
    (note,) = [note for note in config.notes if note.code != "connector-stopped"]
    assert note.code == code
    assert words in note.message
    assert note.origin.line is not None


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("refreshToken: {secretName: idp, key: secret}", "oauth.refresh.token"),
        ("accessToken: {secretName: idp, key: secret}", "oauth.access.token"),
        ("clientAssertion: {secretName: idp, key: secret}", "oauth.client.assertion"),
        ("username: me", "oauth.password.grant.username"),
    ],
)
def test_ways_to_a_token_that_are_not_known_are_findings(tmp_path, line, option):
    found = value_findings(with_oauth(tmp_path, f"{OAUTH}        {line}\n"))
    (finding,) = [one for one in found if one.code == "config-invalid"]
    assert f"the option {option} cannot be used here" in finding.message
    assert "client id and secret" in finding.remedy


def test_as_kubectl_lists_it_and_among_other_resources(tmp_path):
    indented = V1.replace("\n", "\n  ")
    assert select_flow(load(tmp_path, f"apiVersion: v1\nkind: List\nitems:\n- {indented}")).name == "primary->standby"
    assert select_flow(load(tmp_path, f"kind: Kafka\napiVersion: x/v1\n---\n{V1}")).name == "primary->standby"
    with pytest.raises(ConfigError, match="several KafkaMirrorMaker2 resources: mirror, mirror"):
        load(tmp_path, f"{V1}\n---\n{V1}")


@pytest.mark.parametrize(
    ("old", "new", "code", "words", "remedy"),
    [
        ("topicsPattern:", "topicPattern:", "unknown-key", "topicPattern", "write topicsPattern"),
        ("tasksMax:", "taskMax:", "unknown-key", "taskMax", "write tasksMax"),
        ("producer.batch.size: 65536", "ssl.truststore.location: /x", "dropped", "Strimzi ignores", "authentication"),
        (
            "replication.factor: -1\n          offset",
            "replication.factors: -1\n          offset",
            "unknown-key",
            "",
            "write replication.factor",
        ),
        (
            "bootstrapServers: p1:9093,p2:9093",
            "bootstrapServers: p1:9\n      config: {consumer.fetch.min.bytes: 1}",
            "dropped",
            "reaches no connector",
            "sourceConnector.config",
        ),
    ],
)
def test_what_the_operator_ignores_is_noted(tmp_path, old, new, code, words, remedy):  # noqa: PLR0917 - one row a case
    found = [note for note in load(tmp_path, V1BETA2.replace(old, new)).notes if note.code != "connector-stopped"]
    assert code in [note.code for note in found]
    note = next(note for note in found if note.code == code)
    assert words in note.message
    assert remedy in note.remedy
    assert note.origin.line is not None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("sourceCluster: primary", "sourceCluster: prim", "sourceCluster 'prim' is not among the clusters"),
        ("alias: standby", "alias: primary", "two clusters have the alias 'primary': p1:9093,p2:9093 and s1:9092"),
        ("type: scram-sha-512", "type: kerberos", "authentication type 'kerberos'"),
        ("secretName: primary-ca", "name: primary-ca", "without secretName"),
        ("  mirrors:", "  mirros:", "spec.mirrors is missing"),
        ("replication.factor: -1\n", "replication.factor: [1]\n", "a list or mapping stands where a text belongs"),
        ("  clusters:\n", "  clusters: x\n  ignored:\n", "clusters is no list"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, old, new, words):
    assert old in V1BETA2
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, V1BETA2.replace(old, new))
    assert words in caught.value.message
