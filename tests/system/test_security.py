"""Every kind of credentials on real brokers: `plan` and `execute`, and where secrets do not end up."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificates

from failover.lab import ADMIN
from failover.model import TopicPartition
from tests.system.pair import Pair, Ran
from tests.system.token_endpoint import TokenEndpoint

STORE_PASSWORD, KEY_PASSWORD = "st0re-hunter2", "k3y-hunter2"
KINDS = ("plain", "scram-256", "scram-512", "mtls-pem", "mtls-pkcs12", "mtls-jks", "oauth")


class Scene(NamedTuple):
    pair: Pair
    topic: str
    stores: Path
    endpoint: TokenEndpoint
    state: Path
    said: dict[str, str]

    def settings(self, kind: str) -> dict[str, str]:
        """Gives the settings by which both clusters are connected to with this kind of credentials."""
        return {key: value for alias in ("a", "b") for key, value in self._settings(kind, alias).items()}

    def _settings(self, kind: str, alias: str) -> dict[str, str]:
        pair, files = self.pair, self.pair.lab.certificates
        if kind == "oauth":
            return self.endpoint.settings(alias, pair.bootstrap(alias, "sasl"))
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(files.ca)}
        if kind.startswith("mtls"):
            suffix, name = {"mtls-pem": ("pem", "PEM"), "mtls-pkcs12": ("p12", "PKCS12"), "mtls-jks": ("jks", "JKS")}[
                kind
            ]
            own = {"bootstrap.servers": pair.bootstrap(alias, "tls"), "security.protocol": "SSL"}
            if suffix == "pem":
                own |= trust | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(files.client)}
            else:
                for store in ("keystore", "truststore"):
                    own |= {
                        f"ssl.{store}.type": name,
                        f"ssl.{store}.location": str(self.stores / f"{store}.{suffix}"),
                        f"ssl.{store}.password": STORE_PASSWORD,
                    }
                if suffix == "jks":
                    own["ssl.key.password"] = KEY_PASSWORD
        else:
            mechanism = {"plain": "PLAIN", "scram-256": "SCRAM-SHA-256", "scram-512": "SCRAM-SHA-512"}[kind]
            module = "plain.PlainLoginModule" if kind == "plain" else "scram.ScramLoginModule"
            login = f'username="{ADMIN}" password="{pair.lab.state.passwords[ADMIN]}"'
            own = trust | {
                "bootstrap.servers": pair.bootstrap(alias, "sasl"),
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required {login};",
            }
        return {f"{alias}.{key}": value for key, value in own.items()}

    def run(self, settings: Mapping[str, str], *arguments: str) -> Ran:
        """Runs a command as loud as it gets, in the one state folder, and keeps what it said for the last test."""
        ran = self.pair.run_cli(*arguments, "-vv", config=self.pair.config_path(added=settings), state=self.state)
        self.said[f"{len(self.said)} {' '.join(arguments)}"] = ran.out + ran.err
        return ran


@pytest.fixture(scope="module")
def scene(mm2: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    topic = mm2.create_topic("a", mm2.name("t.secured"), 2)
    mm2.produce("a", topic, 200)
    mm2.wait_mirrored(topic)
    stores = tmp_path_factory.mktemp("stores")
    make_stores(mm2, stores)
    with TokenEndpoint(mm2.lab, seconds=30) as endpoint:
        yield Scene(mm2, topic, stores, endpoint, tmp_path_factory.mktemp("state"), {})


def make_stores(pair: Pair, folder: Path) -> None:
    """Makes the stores a Java client would have, by Java's own keytool."""
    files = pair.lab.certificates
    key = serialization.load_pem_private_key(files.client.read_bytes(), None)
    own, *others = load_pem_x509_certificates(files.client.read_bytes())
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    lock = serialization.BestAvailableEncryption(STORE_PASSWORD.encode())
    made = pkcs12.serialize_key_and_certificates(b"own", key, own, others, lock)
    (folder / "keystore.p12").write_bytes(made)

    def keytool(*arguments: str) -> None:
        program = Path(pair.lab.state.java).with_name("keytool")
        subprocess.run([program, "-J-XX:TieredStopAtLevel=1", *arguments, "-noprompt"], check=True, capture_output=True)

    new = ("-storetype", "JKS", "-keystore", str(folder / "truststore.jks"), "-storepass", STORE_PASSWORD)
    keytool("-importcert", "-alias", "lab", "-file", str(files.ca), *new)
    new = ("-storetype", "PKCS12", "-keystore", str(folder / "truststore.p12"), "-storepass", STORE_PASSWORD)
    keytool("-importcert", "-alias", "lab", "-file", str(files.ca), *new)
    keytool(
        *("-importkeystore", "-srckeystore", str(folder / "keystore.p12"), "-srcstorepass", STORE_PASSWORD),
        *("-srcalias", "own", "-destkeystore", str(folder / "keystore.jks"), "-deststoretype", "JKS"),
        *("-deststorepass", STORE_PASSWORD, "-destkeypass", KEY_PASSWORD),
    )
    assert (folder / "keystore.jks").read_bytes().startswith(b"\xfe\xed\xfe\xed")


def test_plan_execute_and_status_with_every_kind_of_credentials(scene: Scene) -> None:
    pair = scene.pair
    narrow = {"a->b.topics": scene.topic}
    groups = {kind: pair.name(f"secured-{kind}") for kind in KINDS}
    for number, group in enumerate(groups.values()):
        pair.a.place(group, {(scene.topic, 0): 10 + number, (scene.topic, 1): 20 + number})
    for group in groups.values():
        pair.wait_checkpoint(group, scene.topic, 0)
    for number, (kind, group) in enumerate(groups.items()):
        settings = scene.settings(kind)
        planned = scene.run(settings, "plan", "--group", group, "--format", "json")
        assert planned.code == 0, f"{kind}: {planned.err}"
        assert planned.json()["source"]["state"] == "up", kind
        done = scene.run(settings, "execute", planned.json()["id"], "--yes", "--settle", "0", "--format", "json")
        assert done.code == 0, f"{kind}: {done.err}"
        remote = f"a.{scene.topic}"
        assert pair.committed("b", group) == {
            TopicPartition(remote, 0): 10 + number,
            TopicPartition(remote, 1): 20 + number,
        }, kind
        if kind in ("plain", "scram-256", "mtls-pem"):
            continue  # the same clients as those of their neighbours
        found = scene.run(settings | narrow, "status", "--format", "json")
        assert found.code == 0, f"{kind}: {found.err}"
        assert found.json()["source"]["state"] == "up", kind
        ready = {row["group"]: row["ready"] for row in found.json()["groups"]}
        assert ready[group], kind


class Wrong(NamedTuple):
    """Is one thing wrong with the target's settings, and what is to be said of it."""

    kind: str
    was: str
    becomes: str
    code: int
    error: str
    hint: str


@pytest.mark.parametrize(
    "wrong",
    [
        Wrong(
            "scram-512", 'password="', 'password="x', 8, "cluster b refuses the credentials", "security settings of b"
        ),
        Wrong("oauth", 'clientSecret="', 'clientSecret="x', 8, "cluster b cannot be logged in to", "clientSecret"),
        Wrong("oauth", "https://", "http://", 8, "cluster b cannot be logged in to: the token endpoint", "endpoint"),
        Wrong("oauth", "/ca.pem", "/no.pem", 2, "no.pem cannot be read", "check the path"),
        Wrong("mtls-jks", STORE_PASSWORD, "x", 2, "the password does not open", "check b.ssl.keystore.password ("),
        Wrong("mtls-jks", KEY_PASSWORD, "x", 2, "the password of the key 'own'", "failover.cluster.b.ssl.key.password"),
        Wrong("mtls-pkcs12", "keystore.p12", "none.p12", 2, "none.p12 cannot be read", "check the path"),
        Wrong("mtls-pem", "b.ssl.truststore.location", "b.x", 8, "certificate verify failed", "truststore.location"),
        Wrong("mtls-pem", "b.ssl.keystore.location", "b.x", 8, "cluster b", "keystore"),
    ],
    ids=lambda wrong: f"{wrong.kind}, {wrong.was}",
)
def test_credentials_that_do_not_fit_are_named_with_what_to_do(scene: Scene, wrong: Wrong) -> None:
    settings = {
        key.replace(wrong.was, wrong.becomes): value.replace(wrong.was, wrong.becomes) if key[:2] == "b." else value
        for key, value in scene.settings(wrong.kind).items()
    }
    ran = scene.run(settings, "plan", "--timeout", "5s")
    assert ran.code == wrong.code, ran.err
    [error] = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    [hint] = [line for line in ran.err.splitlines() if line.startswith("hint: ")]
    assert wrong.error in error
    assert wrong.hint in hint


def secrets(scene: Scene) -> dict[str, str]:
    """Gives every text that must be nowhere, and what it is."""
    pair, files = scene.pair, scene.pair.lab.certificates
    password = pair.lab.state.passwords[ADMIN]
    found = {
        password: "the password",
        STORE_PASSWORD: "a store's password",
        KEY_PASSWORD: "a key's password",
        base64.b64encode(f"{ADMIN}:{password}".encode()).decode(): "the header for the token endpoint",
    }
    body = re.search(r"PRIVATE KEY-----\n(.*?)\n-----END", files.client.read_text(), re.DOTALL)
    assert body is not None
    found |= dict.fromkeys(body.group(1).splitlines(), "the private key")
    # A token's last part is what makes it one; its first two are no secret but would give it away.
    found |= {part: "a token" for token in scene.endpoint.tokens for part in token.split(".")[1:]}
    return found


def test_secrets_reach_no_output_no_file_and_no_topic(scene: Scene) -> None:
    """Searches all that the tests before had written anywhere, and some more."""
    pair = scene.pair
    group = pair.name("secret")
    pair.a.place(group, {(scene.topic, 0): 5, (scene.topic, 1): 6})
    pair.wait_checkpoint(group, scene.topic, 0)
    chosen, soon = ("--group", group), ("--timeout", "1s")
    for kind in ("scram-512", "mtls-jks", "oauth"):
        settings = scene.settings(kind)
        assert scene.run(settings, "config", "show", "--format", "json").code == 0
        assert scene.run(settings, "plan", *chosen, "--set", "b.bootstrap.servers=localhost:1", *soon).code == 8
        assert scene.run(settings, "plan", *chosen, "--set", "b.ssl.truststore.location=/dev/null").code == 2
    tokens = scene.settings("oauth")
    done = scene.run(tokens, "execute", *chosen, "--yes", "--settle", "0", "--log-format", "json")
    assert done.code == 0, done.err
    assert scene.run(tokens, "status").code == 0
    assert scene.run(tokens, "plan", "--set", "b.sasl.mechanism=GSSAPI").code == 2
    assert scene.run(tokens, "plan", "--set", "b.sasl.jaas.config=x required clientSecret=it").code == 2
    scene.endpoint.down = True
    try:
        refused = scene.run(tokens, "plan", *chosen)
    finally:
        scene.endpoint.down = False
    assert (refused.code, "answers 503" in refused.err) == (8, True), refused.err
    runs = [record for records in pair.read("b", "mm2-failover-runs.a.internal").values() for record in records]
    scene.said["the runs topic"] = " ".join(repr((record.key, record.value, record.headers)) for record in runs)
    files = [path for path in scene.state.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".json", ".ndjson"}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    said = scene.said | {str(path): path.read_bytes().decode("latin-1") for path in files}
    leaks = [f"{what} in {name}" for secret, what in secrets(scene).items() for name in said if secret in said[name]]
    assert leaks == []
