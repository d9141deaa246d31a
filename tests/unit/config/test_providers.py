from __future__ import annotations

import base64
import json

import pytest

from failover.config.load import load_config, select_flow
from failover.config.providers import Provider, Providers, references
from failover.config.settings import Origin, make_setting
from failover.errors import ConfigError
from tests.unit.config.build import PAIR, load

FILE = "org.apache.kafka.common.config.provider.FileConfigProvider"
ENV = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
DIRECTORY = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
SECRETS = "io.strimzi.kafka.KubernetesSecretConfigProvider"
SASL = """
A.security.protocol = SASL_PLAINTEXT
A.sasl.mechanism = PLAIN
"""


def resolved(text: str, class_name: str, *, secrets_dir: str = "", **parameters: str) -> str:
    named = {key.replace("_", "."): value for key, value in parameters.items()}
    providers = Providers({"p": Provider(class_name, named)}, secrets_dir=secrets_dir)
    return providers.resolve(make_setting("k", text, Origin("file", "A.k", "f", 3))).text


def refused(text: str, class_name: str, *, secrets_dir: str = "", **parameters: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        resolved(text, class_name, secrets_dir=secrets_dir, **parameters)
    assert "A.k (f:3)" in caught.value.message
    return caught.value


class TestFile:
    def test_a_key_of_a_properties_file_read_as_utf_8(self, tmp_path):
        (tmp_path / "c.properties").write_text("# x\npw = h\\u00e4é€\\\n  r\nu=me\n", encoding="utf-8")
        assert resolved(f"<${{p:{tmp_path}/c.properties:pw}}|${{p:{tmp_path}/c.properties:u}}>", FILE) == "<häé€r|me>"

    def test_a_missing_key_or_file_names_the_setting_and_no_secret(self, tmp_path):
        (tmp_path / "c").write_text("pw=hunter2")
        error = refused(f"${{p:{tmp_path}/c:password}}", FILE)
        assert f"{tmp_path}/c has no key password" in error.message
        assert "hunter2" not in error.message + error.hint
        assert "No such file" in refused(f"${{p:{tmp_path}/none:x}}", FILE).message

    def test_only_allowed_paths(self, tmp_path):
        (tmp_path / "c").write_text("k=v")
        assert resolved(f"${{p:{tmp_path}/c:k}}", FILE, allowed_paths=f"/nowhere,{tmp_path}") == "v"
        assert "allowed.paths" in refused(f"${{p:{tmp_path}/c:k}}", FILE, allowed_paths="/nowhere").message
        assert "allowed.paths" in refused(f"${{p:{tmp_path}/../x/c:k}}", FILE, allowed_paths=str(tmp_path)).message


class TestEnvironment:
    def test_a_variable(self, monkeypatch):
        monkeypatch.setenv("MM2_PW", "hunter2")
        assert resolved("${p:MM2_PW}", ENV) == resolved("${p::MM2_PW}", ENV) == "hunter2"

    def test_what_kafka_refuses(self, monkeypatch):
        monkeypatch.delenv("MM2_NONE", raising=False)
        assert "no variable MM2_NONE" in refused("${p:MM2_NONE}", ENV).message
        assert "takes no path" in refused("${p:/x:HOME}", ENV).message
        assert "allowlist.pattern" in refused("${p:HOME}", ENV, allowlist_pattern="MM2_.*").message


class TestDirectory:
    def test_a_file_is_the_value(self, tmp_path):
        (tmp_path / "pw").write_text("hunter2\n")
        assert resolved(f"${{p:{tmp_path}:pw}}", DIRECTORY) == "hunter2\n"
        assert "No such file" in refused(f"${{p:{tmp_path}:none}}", DIRECTORY).message
        assert "no file name" in refused(f"${{p:{tmp_path}:../pw}}", DIRECTORY).message


class TestKubernetesSecrets:
    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "mounted").mkdir()
        (tmp_path / "mounted" / "a.crt").write_text("ONE\n")
        (tmp_path / "mounted" / "b.crt").write_text("TWO\n")
        data = {"pw": base64.b64encode(b"hunter2").decode()}
        (tmp_path / "listed.yaml").write_text(json.dumps({"kind": "Secret", "data": data, "stringData": {"u": "me"}}))
        (tmp_path / "ns").mkdir()
        (tmp_path / "ns" / "listed").mkdir()
        (tmp_path / "ns" / "listed" / "pw").write_text("of ns")
        (tmp_path / "pod.yaml").write_text("kind: Pod")
        return str(tmp_path)

    def test_mounted_or_as_kubectl_prints_them(self, folder):
        assert resolved("${p:mounted:a.crt}", SECRETS, secrets_dir=folder) == "ONE\n"
        assert resolved("${p:other/listed:pw}", SECRETS, secrets_dir=folder) == "hunter2"
        assert resolved("${p:listed:u}", SECRETS, secrets_dir=folder) == "me"
        assert resolved("${p:ns/listed:pw}", SECRETS, secrets_dir=folder) == "of ns"

    def test_a_pattern_takes_all_that_fit(self, folder):
        assert resolved("${p:mounted:*.crt}", SECRETS, secrets_dir=folder) == "ONE\nTWO"

    def test_what_is_missing_comes_with_the_command_that_fetches_it(self, folder):
        error = refused("${p:ns/gone:pw}", SECRETS)
        assert "Kubernetes secret ns/gone, key pw" in error.message
        assert error.hint == "kubectl get secret gone -n ns -o yaml > DIR/gone.yaml; then --secrets-dir DIR"
        assert "is not in" in refused("${p:ns/gone:pw}", SECRETS, secrets_dir=folder).message
        assert "has no key x" in refused("${p:mounted:x}", SECRETS, secrets_dir=folder).message
        assert "no manifest of a Secret" in refused("${p:pod:x}", SECRETS, secrets_dir=folder).message


class TestInAConfiguration:
    def test_a_password_is_looked_up_when_a_client_is_made_and_shows_in_no_text(self, tmp_path):
        text = f"""{PAIR}{SASL}
            config.providers = file
            config.providers.file.class = {FILE}
            A.sasl.jaas.config = ${{file:{tmp_path}/c.properties:jaas}}
        """
        config = load(tmp_path, text)
        with pytest.raises(ConfigError, match=r"A\.sasl\.jaas\.config .*: the configuration provider 'file' gives no"):
            config.clusters["A"].client()
        (tmp_path / "c.properties").write_text('jaas=x.PlainLoginModule required username="me" password="hunter2";')
        client = config.clusters["A"].client()
        assert client.sasl is not None
        assert "hunter2" in client.sasl.password.reveal()  # type: ignore[union-attr]
        assert "hunter2" not in repr(config) + repr(client)
        assert config.notes == ()

    def test_providers_may_belong_to_one_cluster(self, tmp_path, monkeypatch):
        monkeypatch.setenv("A_SERVERS", "a:1,b:2")
        text = f"""
            clusters = A, B
            A.bootstrap.servers = ${{env:A_SERVERS}}
            A.config.providers = env
            A.config.providers.env.class = {ENV}
            B.bootstrap.servers = b:9092
            A->B.enabled = true
        """
        selected = select_flow(load(tmp_path, text))
        assert selected.source_client().bootstrap == (("a", 1), ("b", 2))
        assert selected.target_client().bootstrap == (("b", 9092),)

    def test_filters_are_resolved_too(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TOPICS", "orders, pay.*")
        text = f"{PAIR}config.providers=env\nconfig.providers.env.class={ENV}\ntopics=${{env:TOPICS}}"
        flow = select_flow(load(tmp_path, text)).flow
        assert flow.topics == ("orders", "pay.*")
        assert flow.connectors["source"].texts()["topics"] == "orders, pay.*"
        assert flow.connectors["source"]["topics"].text == "${env:TOPICS}"

    def test_what_no_provider_resolves_stays_literal(self, tmp_path):
        flow = select_flow(load(tmp_path, f"{PAIR}topics=${{x}}-${{env:HOME}}")).flow
        assert flow.topics == ("${x}-${env:HOME}",)

    def test_a_class_of_somebody_elses_is_named_with_the_way_round(self, tmp_path):
        text = f"""{PAIR}{SASL}
            config.providers = vault
            config.providers.vault.class = com.acme.VaultProvider
            A.sasl.jaas.config = ${{vault:kv/mm2:jaas}}
        """
        config = load(tmp_path, text)
        with pytest.raises(ConfigError) as caught:
            config.clusters["A"].client()
        assert "com.acme.VaultProvider cannot be asked here" in caught.value.message
        assert "--set failover.cluster.A.sasl.jaas.config=…" in caught.value.hint
        jaas = 'failover.cluster.A.sasl.jaas.config=x.PlainLoginModule required username="me" password="pw";'
        assert load(tmp_path, text, jaas).clusters["A"].client().sasl is not None

    def test_a_workers_own_provider_is_an_error_where_it_is_needed(self, tmp_path):
        connector = {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "source.cluster.alias": "A",
            "target.cluster.alias": "B",
            "source.cluster.bootstrap.servers": "${vault:x:y}",
            "target.cluster.bootstrap.servers": "b:1",
        }
        (tmp_path / "c.json").write_text(json.dumps(connector))
        config = load_config(tmp_path / "c.json")
        assert config.clusters["B"].client().bootstrap == (("b", 1),)
        with pytest.raises(ConfigError, match="provider 'vault', and it is not known what that is"):
            config.clusters["A"].client()


def test_references_as_kafka_finds_them():
    assert references("${a:b:c} ${d:e} ${f} $g ${h::i}") == ("a", "d", "h")
