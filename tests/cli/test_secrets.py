"""Secrets reach no output and no file, whatever is typed and however it ends; without a cluster."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from failover.cli.entry import main

STORES = Path(__file__).parents[1] / "unit" / "config" / "stores"
STORE_PASSWORD, KEY_PASSWORD = "st0re päß", "k3y päß"
LOGIN = "org.apache.kafka.common.security"
CONFIG = f"""\
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:2
a->b.enabled = true

a.security.protocol = SASL_SSL
a.sasl.mechanism = OAUTHBEARER
a.sasl.oauthbearer.token.endpoint.url = http://user:hunter2@127.0.0.1:1/token
a.sasl.jaas.config = {LOGIN}.oauthbearer.OAuthBearerLoginModule required clientId="app" clientSecret="hunter2";
a.ssl.truststore.location = {STORES}/trust.jks
a.ssl.truststore.password = {STORE_PASSWORD}

b.security.protocol = SASL_SSL
b.sasl.mechanism = SCRAM-SHA-512
b.sasl.jaas.config = {LOGIN}.scram.ScramLoginModule required username="mm2" password="hunter2";
b.ssl.keystore.location = {STORES}/key.jks
b.ssl.keystore.password = {STORE_PASSWORD}
b.ssl.key.password = {KEY_PASSWORD}
failover.connect.password = hunter2
failover.cluster.b.ssl.truststore.location = {STORES}/trust.p12
failover.cluster.b.ssl.truststore.password = {STORE_PASSWORD}
"""
HIDDEN = ("hunter2", STORE_PASSWORD, KEY_PASSWORD, base64.b64encode(b"app:hunter2").decode(), "PRIVATE KEY-----")


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("b.sasl.mechanism=GSSAPI",),
        ("b.sasl.jaas.config=x.ScramLoginModule required password=hunter2; hunter2",),
        ("b.sasl.jaas.config=x.Other required password=hunter2;",),
        ("b.ssl.keystore.password=hunter2",),
        ("b.ssl.key.password=hunter2",),
        ("b.ssl.keystore.key=hunter2",),
        ("b.security.protocol=hunter", "b.ssl.engine.factory.class=com.acme.X"),
        ("hunter2",),
    ],
    ids=lambda changes: " ".join(changes).partition("=")[0] or "as it is",
)
def test_no_command_shows_a_secret(changes, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILOVER_CONFIG", raising=False)
    # as java.util.Properties reads it: ISO-8859-1
    (tmp_path / "mm2.properties").write_text(CONFIG, encoding="latin-1")

    def broken(alias: str, settings: object, **_: object) -> None:
        raise RuntimeError(f"{alias}: {settings!r}")

    monkeypatch.setattr("failover.kafka.admin.KafkaCluster", broken)
    given = [part for change in changes for part in ("--set", change)]
    said = ""
    for arguments in (
        ("config", "show"),
        ("config", "show", "--format", "json"),
        ("config", "check", "--format", "json"),
        ("plan", "--format", "json"),
        ("execute", "--all", "--yes", "--log-format", "json"),
    ):
        with pytest.raises(SystemExit):
            main(["--state-dir", str(tmp_path / "state"), *arguments, *given, "-vv"])
        captured = capsys.readouterr()
        said += captured.out + captured.err
    if not changes:
        assert "RuntimeError: " in said
        assert "Secret(********)" in said
    said += "".join(path.read_text("latin-1") for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert [secret for secret in HIDDEN if secret in said] == []
