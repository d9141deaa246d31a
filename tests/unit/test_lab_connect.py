"""The lab's Connect worker: its settings, and how this tool is told of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from failover.lab import Endpoint, Lab, LabOptions, State
from failover.lab.certs import make_certificates
from failover.lab.connect import _keystore, connect_settings, worker_properties
from failover.lab.state import ConnectWorker


def lab(tmp_path: Path, worker: ConnectWorker | None) -> Lab:
    state = State("m", "now", "ready", LabOptions(), Path("java"), (), {"admin": "pass"}, connect=worker)
    return Lab(tmp_path, msgspec.json.decode(msgspec.json.encode(state, enc_hook=str), type=State, dec_hook=_path))


def _path(kind: type, value: object) -> object:
    return kind(value)


@pytest.mark.parametrize(
    ("worker", "names"),
    [
        (None, set()),
        (ConnectWorker("http://127.0.0.1:1"), {"url"}),
        (ConnectWorker("https://127.0.0.1:1", "admin", "ca.pem"), {"url", "user", "password", "ca"}),
    ],
)
def test_the_settings_of_this_tool_say_how_the_worker_is_reached(tmp_path, worker, names):
    settings = connect_settings(lab(tmp_path, worker))
    assert set(settings) == {f"failover.connect.{name}" for name in names}


def test_the_worker_logs_in_with_every_client_it_makes():
    endpoint = Endpoint("b", "127.0.0.1:9", "admin", "secret", ca=Path("ca.pem"))
    settings = worker_properties(endpoint, port=8083, tls=True, flush_seconds=0.5)
    for role in ("", "producer.", "consumer.", "admin."):
        assert settings[f"{role}security.protocol"] == "SASL_SSL"
        assert 'password="secret"' in settings[f"{role}sasl.jaas.config"]
    assert settings["listeners"] == "https://127.0.0.1:8083"
    assert settings["offset.flush.interval.ms"] == "500"
    assert "ByteArrayConverter" not in settings["value.converter"]


def test_its_certificate_is_the_lab_s_in_the_form_its_web_server_reads(tmp_path):
    from cryptography.hazmat.primitives.serialization import pkcs12

    certificates = make_certificates(tmp_path / "certs", client="admin")
    store = _keystore(certificates.server, "pass")
    key, certificate, chain = pkcs12.load_key_and_certificates(store.read_bytes(), b"pass")
    assert key is not None
    assert certificate is not None
    assert len(chain) == 1
    assert store.stat().st_mode & 0o777 == 0o600
