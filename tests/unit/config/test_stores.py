"""Trust and key stores, on stores that Java's keytool made (stores/make.sh)."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from failover.config.clients import TlsSettings
from failover.config.secret import Secret
from failover.config.stores import Store, check_identity
from failover.config.stores_jks import DamagedStore, WrongPassword, read_jks, unprotected
from failover.config.tls import ssl_context
from failover.errors import ConfigError

STORES = Path(__file__).parent / "stores"
PASSWORD, KEY_PASSWORD = "st0re päß", "k3y päß"


def store(path: Path | str, password: str | None = PASSWORD) -> Store:
    return Store(
        str(STORES / path),
        where="A.ssl.keystore.location (f:7)",
        password=Secret(password) if password is not None else None,
        password_where="A.ssl.keystore.password (f:8)",
        password_setting="failover.cluster.A.ssl.keystore.password",
        key_setting="failover.cluster.A.ssl.key.password",
    )


def names(pem: str) -> list[str]:
    return [each.subject.rfc4514_string() for each in x509.load_pem_x509_certificates(pem.encode())]


def refused(act) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        act()
    assert caught.value.hint
    assert "päß" not in caught.value.message + caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("name", "password", "key_password"),
    [
        ("key.jks", PASSWORD, KEY_PASSWORD),
        ("key.p12", PASSWORD, None),
        ("key.p12", PASSWORD, PASSWORD),
        ("legacy.p12", "changeit", None),  # RC2, as Java wrote it until 2021
    ],
)
def test_the_key_and_its_chain(name, password, key_password):
    chain, key = store(name, password).identity(Secret(key_password) if key_password else None)
    assert names(chain) == ["CN=client", "CN=authority"]
    check_identity(chain, key, where="x")
    assert isinstance(load_pem_private_key(key.reveal().encode(), None), ec.EllipticCurvePrivateKey)
    ssl_context(TlsSettings(certificate_chain_pem=chain, key_pem=key))


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("trust.jks", PASSWORD),
        ("trust.jks", None),  # Java then leaves out the integrity check, and so the password
        ("trust.p12", PASSWORD),
        ("open.p12", None),
        ("authority.pem", None),
    ],
)
def test_trusted_certificates(name, password):
    found = store(name, password).certificates()
    assert set(names(found)) == {"CN=authority"}
    ssl.create_default_context(cadata=found)


@pytest.mark.parametrize("name", ["key.jks", "key.p12", "trust.jks", "trust.p12"])
def test_a_wrong_password_is_named_with_the_setting_that_holds_it(name):
    trusted = name.startswith("trust")
    wrong = store(name, "hunter2")
    error = refused(wrong.certificates if trusted else lambda: wrong.identity(None))
    assert "A.ssl.keystore.location (f:7): the password does not open" in error.message
    assert f"{STORES}/{name}" in error.message
    assert error.hint.startswith("check A.ssl.keystore.password (f:8) with: keytool -list")
    assert "hunter2" not in error.message + error.hint


@pytest.mark.parametrize("name", ["key.p12", "trust.p12", "key.jks"])
def test_a_password_that_is_not_set_is_asked_for(name):
    bare = store(name, None)
    error = refused(bare.certificates if name.startswith("trust") else lambda: bare.identity(None))
    assert "password" in error.message
    assert error.hint == "set failover.cluster.A.ssl.keystore.password=…"


@pytest.mark.parametrize("key_password", [None, "wrong"])
def test_the_password_of_the_key_itself(key_password):
    error = refused(lambda: store("key.jks").identity(Secret(key_password) if key_password else None))
    assert "the password of the key 'own'" in error.message
    assert "failover.cluster.A.ssl.key.password" in error.hint


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: store("nowhere.jks").identity(None), "nowhere.jks cannot be read: No such file"),
        (lambda: store("trust.jks").identity(None), "holds no private key"),
        (lambda: store("trust.p12").identity(None), "holds no private key"),
        (lambda: store("two-keys.jks").identity(None), "holds 2 private keys: "),
        (lambda: store("key.jks").certificates(), "holds no trusted certificate"),
        (lambda: store("trust.jceks").certificates(), "is a JCEKS store"),
        (lambda: store("make.sh").identity(None), "is no PEM file, PKCS#12 store or JKS store"),
    ],
)
def test_stores_that_cannot_be_used_say_why(act, words):
    assert words in refused(act).message


@pytest.mark.parametrize("name", ["trust.jks", "key.jks", "key.p12"])
def test_a_store_that_was_cut_off_or_changed(tmp_path, name):
    data = (STORES / name).read_bytes()
    for number, broken in enumerate((data[:100], data[:-1], data[:60] + b"\0" + data[61:])):
        (tmp_path / f"{number}").write_bytes(broken)
        where = store(tmp_path / f"{number}")
        error = refused(where.certificates if name == "trust.jks" else lambda where=where: where.identity(None))
        assert "is damaged" in error.message or "was changed" in error.message


def test_an_expired_certificate_is_refused_before_a_broker_sees_it():
    chain, key = store("expired.jks").identity(None)
    error = refused(lambda: check_identity(chain, key, where="A.ssl.keystore.location: old.jks"))
    assert error.message == (
        "A.ssl.keystore.location: old.jks: the client certificate CN=old expired on 2020-01-31 00:00 UTC"
    )
    check_identity(chain, key, where="x", now=datetime(2020, 1, 2, tzinfo=UTC))


def test_a_key_that_is_not_the_certificates_own():
    chain, _ = store("key.jks").identity(Secret(KEY_PASSWORD))
    _, other = store("expired.jks").identity(None)
    assert (
        "does not belong to the certificate CN=client"
        in refused(lambda: check_identity(chain, other, where="x")).message
    )


def test_the_digest_covers_every_byte():
    data = (STORES / "trust.jks").read_bytes()
    assert [entry.alias for entry in read_jks(data, PASSWORD)] == ["two", "one"]
    for at in (12, len(data) // 2, len(data) - 1):
        with pytest.raises(WrongPassword):
            read_jks(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], PASSWORD)


@pytest.mark.parametrize("at", range(4, 120, 7))
def test_a_cut_store_is_damaged_wherever_it_is_cut(at):
    with pytest.raises(DamagedStore):
        read_jks((STORES / "key.jks").read_bytes()[:at] + bytes(20), None)


def test_keys_protected_in_another_way_are_not_guessed():
    key = read_jks((STORES / "key.jks").read_bytes(), None)[0].protected_key or b""
    changed = key.replace(bytes.fromhex("2a02110101"), bytes.fromhex("2a02110102"))
    assert changed != key
    with pytest.raises(DamagedStore, match="unknown way"):
        unprotected(changed, KEY_PASSWORD)
    with pytest.raises(DamagedStore):
        unprotected(key[:30], KEY_PASSWORD)
