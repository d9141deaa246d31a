"""One configuration in three forms that mean the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from failover.config.convert import to_connectors, to_properties
from failover.config.flow import Config, FlowConfig
from failover.config.load import load_config
from failover.config.mm2 import Role, Side, client_properties, with_prefix
from failover.config.mm2_keys import CONNECTORS, SOURCE, connector_defaults, is_client_key
from failover.config.properties import parse_properties
from failover.config.settings import Origin, make_setting
from failover.config.to_strimzi import Resources
from failover.config.write import properties_text, with_providers, without_secrets
from failover.errors import ConfigError
from failover.report.encode import to_yaml
from tests.unit.config.build import PAIR, load
from tests.unit.config.test_connectors import CHECKPOINT, HEARTBEAT
from tests.unit.config.test_connectors import SOURCE as SOURCE_CONNECTOR
from tests.unit.config.test_connectors import load as load_connectors
from tests.unit.config.test_strimzi import V1, V1BETA2, with_oauth
from tests.unit.config.test_strimzi import load as load_strimzi

SIDES: tuple[Side, ...] = ("source", "target")
ROLES: tuple[Role, ...] = ("producer", "consumer", "admin")
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="hunter2";'


def meaning(config: Config) -> dict[str, Any]:
    """Gives what MM2's connectors would do: their own settings, and those of each of their clients."""
    return {flow.name: _of_flow(flow) for flow in config.enabled_flows}


def _of_flow(flow: FlowConfig) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in CONNECTORS:
        own = flow.connectors[kind]
        if kind != SOURCE and not own.boolean(f"emit.{kind}s.enabled"):
            continue  # it does nothing, whatever else it says
        found[kind] = {key: own.resolved(key).trimmed for key in connector_defaults(kind, (4, 1))}
        for side in SIDES:
            for role in ROLES:
                client = client_properties(own, side, role)
                found[f"{kind} {side} {role}"] = {
                    key: one.text for key, one in client.items() if not key.startswith("override.")
                }
    data = {key: one.text for key, one in with_prefix(flow.worker, "producer.").items() if not is_client_key(key)}
    over = with_prefix(flow.connectors[SOURCE], "producer.override.")
    found["producer of the records"] = data | {key: one.text for key, one in over.items()}
    return found


def by_connect(config: Config, folder: Path) -> Config:
    connectors, _, _ = to_connectors(config.enabled_flows)
    path = folder / "converted.json"
    path.write_text(json.dumps([{"name": one.name, "config": one.plain()} for one in connectors]))
    return load_config(path)


def by_properties(config: Config, folder: Path) -> Config:
    path = folder / "converted.properties"
    path.write_text(properties_text(to_properties(config, config.enabled_flows).entries))
    return load_config(path)


def by_strimzi(config: Config, folder: Path, version: Any = "v1beta2") -> Config:
    (made,) = Resources(config, version).make(config.enabled_flows)
    path = folder / "converted.yaml"
    path.write_text(to_yaml(made))
    return load_config(path)


CONNECTOR_KEYS = {
    "topics": st.sampled_from(["orders", "orders, pay.*", ".*", r"a\.b"]),
    "topics.exclude": st.sampled_from(["tmp.*", "x, y"]),
    "groups": st.sampled_from(["app-.*", "a, b"]),
    "offset-syncs.topic.location": st.sampled_from(["source", "target"]),
    "replication.policy.class": st.just(IDENTITY),
    "replication.policy.separator": st.sampled_from(["_", "-", "."]),
    "sync.group.offsets.enabled": st.sampled_from(["true", "false"]),
    "emit.checkpoints.enabled": st.sampled_from(["true", "false"]),
    "emit.heartbeats.enabled": st.sampled_from(["true", "false"]),
    "emit.checkpoints.interval.seconds": st.sampled_from(["5", "60"]),
    "tasks.max": st.sampled_from(["1", "8"]),
    "replication.factor": st.sampled_from(["-1", "3"]),
    "sync.topic.acls.enabled": st.just("false"),
}
CLUSTER_KEYS = {
    "security.protocol": st.sampled_from(["SSL", "SASL_SSL"]),
    "sasl.mechanism": st.just("SCRAM-SHA-512"),
    "sasl.jaas.config": st.just(JAAS),
    "ssl.endpoint.identification.algorithm": st.just(""),
    "consumer.isolation.level": st.sampled_from(["read_committed", "read_uncommitted"]),
    "consumer.fetch.min.bytes": st.just("1000"),
    "producer.batch.size": st.sampled_from(["1", "65536"]),
    "producer.security.protocol": st.just("PLAINTEXT"),
    "admin.retries": st.just("7"),
}
FLOW_KEYS = CONNECTOR_KEYS | {
    "consumer.max.poll.records": st.just("10"),
    "producer.override.linger.ms": st.just("50"),
    "source.consumer.client.rack": st.just("r1"),
    "exactly.once.support": st.just("required"),
    "my.own.filter": st.just("ü = é"),
}


def some(keys: dict[str, Any], prefix: str) -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries({}, optional={prefix + key: values for key, values in keys.items()})


FILES = st.builds(
    lambda *parts: {key: value for part in parts for key, value in part.items()},
    some(CONNECTOR_KEYS, ""),
    some(CLUSTER_KEYS, "A."),
    some(CLUSTER_KEYS, "B."),
    some(FLOW_KEYS, "A->B."),
    st.fixed_dictionaries({}, optional={"B->A.enabled": st.just("true"), "B->A.topics": st.just("back.*")}),
    st.fixed_dictionaries({}, optional={"ssl.truststore.type": st.just("PEM"), "security.protocol": st.just("SSL")}),
)


@given(FILES)
@settings(max_examples=25)
def test_there_and_back_again_means_the_same(tmp_path_factory, file):
    folder = tmp_path_factory.getbasetemp() / "convert"
    folder.mkdir(exist_ok=True)
    entries = [make_setting(key, text, Origin("set")) for key, text in file.items()]
    config = load(folder, PAIR + properties_text(entries))
    before = meaning(config)
    again = by_properties(config, folder)
    assert meaning(again) == before
    assert [flow.name for flow in again.flows] == [flow.name for flow in config.flows]
    assert meaning(by_connect(config, folder)) == before
    again = by_properties(by_connect(config, folder), folder)
    assert meaning(again) == before
    assert [flow.name for flow in again.flows] == list(before)


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=5))
def test_what_is_written_is_read_back(pairs):
    text = properties_text(make_setting(key, value, Origin("set")) for key, value in pairs.items())
    read = parse_properties(text.encode("ascii"), "f").effective()
    assert {key: entry.value for key, entry in read.items()} == {
        utf16(key): utf16(value) for key, value in pairs.items()
    }


def utf16(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def test_connectors_become_one_file(tmp_path):
    config = load_connectors(
        tmp_path, {**SOURCE_CONNECTOR, "tasks.max": "4"}, {**CHECKPOINT, "tasks.max": "1"}, HEARTBEAT
    )
    converted = to_properties(config, config.enabled_flows)
    assert converted.remarks == ("tasks.max = 1 of the checkpoint connector of us->eu is lost: in one file all have 4",)
    flow = by_properties(config, tmp_path).enabled_flows[0]
    assert (flow.topics, flow.groups, flow.emit_heartbeats_enabled) == (("orders", "pay.*"), ("customer.*",), True)


def test_what_one_file_cannot_say_is_refused_with_the_way_to_decide(tmp_path):
    parts = {**SOURCE_CONNECTOR, "replication.policy.class": IDENTITY}, CHECKPOINT
    config = load_connectors(tmp_path, *parts)
    with pytest.raises(ConfigError) as caught:
        to_properties(config, config.enabled_flows)
    assert "us->eu: replication.policy.class is" in caught.value.message
    assert caught.value.hint == "say which one counts: --set 'us->eu.replication.policy.class=…'"
    decided = load_connectors(tmp_path, *parts, sets=(f"us->eu.replication.policy.class={IDENTITY}",))
    assert by_properties(decided, tmp_path).enabled_flows[0].replication_policy_class == IDENTITY


def test_a_missing_connector_is_switched_off(tmp_path):
    flow = by_properties(load_connectors(tmp_path, SOURCE_CONNECTOR), tmp_path).enabled_flows[0]
    assert (flow.emit_checkpoints_enabled, flow.emit_heartbeats_enabled) == (False, False)


def without_namespaces(value: Any) -> Any:
    """A resource has one namespace, in which a secret stands whose reference names none."""
    return json.loads(json.dumps(value).replace("strimzisecrets:kafka/", "strimzisecrets:"))


@pytest.mark.parametrize("text", [V1, V1BETA2], ids=["v1", "v1beta2"])
@pytest.mark.parametrize("version", ["v1", "v1beta2"])
def test_strimzi_to_strimzi(tmp_path, text, version):
    config = load_strimzi(tmp_path, text)
    again = by_strimzi(config, tmp_path, version)
    before, after = (without_namespaces(meaning(one)["primary->standby"]) for one in (config, again))
    if version == "v1":
        before = {key: value for key, value in before.items() if not key.startswith("heartbeat")}
    assert after == before
    names = ("group.id", "offset.storage.topic", "config.storage.topic", "status.storage.topic")
    assert [again.enabled_flows[0].worker.text(name) for name in names] == [
        config.enabled_flows[0].worker.text(name) for name in names
    ]


def test_tokens_of_strimzi_go_there_and_back(tmp_path):
    config = with_oauth(tmp_path)
    before = meaning(config)["primary->standby"]["source source consumer"]
    assert "hunter2" not in json.dumps(before)
    for form in (by_strimzi, by_properties, by_connect):
        (tmp_path / form.__name__).mkdir()
        after = meaning(form(config, tmp_path / form.__name__))["primary->standby"]["source source consumer"]
        sasl = {key: text for key, text in before.items() if key.startswith("sasl.")}
        assert without_namespaces({key: after[key] for key in sasl}) == without_namespaces(sasl)
    (made,) = Resources(config, "v1beta2").make(config.enabled_flows)
    assert made["spec"]["clusters"][0]["authentication"] == {
        "type": "oauth",
        "tokenEndpointUri": "https://idp/token",
        "clientId": "mm2",
        "clientSecret": {"secretName": "idp", "key": "secret"},
        "scope": "kafka",
        "audience": "brokers",
        "readTimeoutSeconds": 3,
        "disableTlsHostnameVerification": True,
        "saslExtensions": {"tenant": "blue"},
        "tlsTrustedCertificates": [
            {"secretName": "idp-ca", "certificate": "ca.crt"},
            {"secretName": "idp-ca", "pattern": "*.pem"},
        ],
    }


def test_tokens_in_a_resource_without_oauth_are_custom_and_what_is_lost_is_said(tmp_path):
    config = with_oauth(tmp_path)
    resources = Resources(config, "v1")
    (made,) = resources.make(config.enabled_flows)
    authentication = made["spec"]["mirrors"][0]["source"]["authentication"]
    assert authentication["type"] == "custom"
    assert 'oauth.audience="brokers"' in authentication["config"]["sasl.jaas.config"]
    assert any("oauth.ssl.truststore.location" in remark for remark in resources.remarks)


def test_a_literal_secret_of_strimzis_login_becomes_a_secret_to_be_made(tmp_path):
    text = f"""{PAIR}
        A.security.protocol = SASL_PLAINTEXT
        A.sasl.mechanism = OAUTHBEARER
        A.sasl.login.callback.handler.class = io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler
        A.sasl.jaas.config = x.OAuthBearerLoginModule required oauth.client.id="a" oauth.client.secret="hunter2";
    """
    config = load(tmp_path, text)
    resources = Resources(config, "v1beta2")
    (made,) = resources.make(config.enabled_flows)
    assert made["spec"]["clusters"][0]["authentication"]["clientSecret"] == {
        "secretName": "A-oauth",
        "key": "clientSecret",
    }
    assert "hunter2" not in to_yaml(made) + " ".join(resources.remarks)


def test_strimzi_to_properties_declares_what_its_secrets_need(tmp_path):
    config = load_strimzi(tmp_path, V1BETA2)
    (tmp_path / "x").mkdir()
    again = by_properties(config, tmp_path / "x")
    before, after = meaning(config)["primary->standby"], meaning(again)["primary->standby"]
    # In one file the producer of the records and that of the offset syncs are set by one key.
    assert after["source target producer"].pop("batch.size") == "65536"
    for part in (part for part in before if part.startswith(("source", "producer"))):
        assert after[part] == before[part]
    assert to_properties(config, config.enabled_flows).remarks == (
        "consumer.fetch.min.bytes, tasks.max of the source connector of primary->standby: "
        "in one file all its connectors get it",
    )
    assert again.clusters["primary"].providers.declared["strimzisecrets"].class_name.endswith("SecretConfigProvider")
    assert again.mm2_version == (4, 0)


def test_properties_to_strimzi_names_secrets_and_writes_none(tmp_path):
    text = f"""{PAIR}
        A.security.protocol = SASL_SSL
        A.sasl.mechanism = SCRAM-SHA-512
        A.sasl.jaas.config = {JAAS}
        A.ssl.truststore.certificates = -----BEGIN CERTIFICATE----- x
        B.security.protocol = SSL
        B.ssl.keystore.key = hunter2
        B.ssl.keystore.certificate.chain = chain
        B.producer.batch.size = 65536
        topics = orders
    """
    config = load(tmp_path, text)
    resources = Resources(config, "v1")
    (made,) = resources.make(config.enabled_flows)
    assert "hunter2" not in to_yaml(made) + " ".join(resources.remarks)
    spec = made["spec"]
    assert spec["mirrors"][0]["source"]["authentication"] == {
        "type": "scram-sha-512",
        "username": "u",
        "passwordSecret": {"secretName": "A-login", "password": "password"},
    }
    assert spec["target"]["authentication"]["certificateAndKey"]["secretName"] == "B-user"
    assert spec["target"]["config"] == {"producer.batch.size": "65536"}
    assert spec["mirrors"][0]["topicsPattern"] == "orders"
    said = "\n".join(resources.remarks)
    assert "kubectl create secret generic A-login --from-file=password=FILE" in said
    assert "kubectl create secret generic B-user --from-file=user.crt=FILE --from-file=user.key=FILE" in said
    assert yaml.safe_load(to_yaml(made)) == made


def test_literal_secrets_become_references(tmp_path):
    config = load(tmp_path, f"{PAIR}A.sasl.jaas.config = {JAAS}\nB.ssl.key.password = ${{env:PW}}\n")
    entries, keys = without_secrets(to_properties(config, config.enabled_flows).entries, "/s.properties")
    text = properties_text(with_providers(entries))
    assert keys == ["A.sasl.jaas.config"]
    assert "hunter2" not in text
    assert "A.sasl.jaas.config = ${file:/s.properties:A.sasl.jaas.config}" in text
    assert "B.ssl.key.password = ${env:PW}" in text
    assert "config.providers = file" in text
