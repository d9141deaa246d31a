from __future__ import annotations

import copy
import pickle

import pytest

from failover.config.secret import Secret, is_secret_key, without_user_info


@pytest.mark.parametrize(
    "key",
    [
        "sasl.jaas.config",
        "A.admin.sasl.jaas.config",
        "ssl.keystore.key",
        "ssl.key.password",
        "ssl.keystore.password",
        "SSL.TRUSTSTORE.PASSWORD",
        "sasl.oauthbearer.client.credentials.client.secret",
        "basic.auth.user.info",
        "my.api.key",
        "x.private_key",
        "auth.token",
    ],
)
def test_secret_keys(key):
    assert is_secret_key(key)


@pytest.mark.parametrize(
    "key",
    [
        "key.converter",
        "ssl.keystore.location",
        "ssl.keystore.certificate.chain",
        "ssl.truststore.certificates",
        "sasl.mechanism",
        "sasl.oauthbearer.token.endpoint.url",
        "topics",
        "config.providers.strimzisecrets.class",
        "primary.config.providers.secrets.class",
    ],
)
def test_other_keys(key):
    assert not is_secret_key(key)


def test_a_secret_shows_itself_only_when_asked():
    secret = Secret("hunter2")
    assert secret.reveal() == "hunter2"
    assert "hunter2" not in f"{secret}{secret!r}{secret:>20}{[secret]}"
    assert (secret == Secret("hunter2"), secret == "hunter2", bool(Secret(""))) == (True, False, False)
    assert len({secret, Secret("hunter2"), Secret("x")}) == 2
    for leak in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            leak(secret)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:hunter2@idp:1/t", "https://********@idp:1/t"),
        ("http://a@h, http://b:c@h", "http://********@h, http://********@h"),
        ("https://idp/t?to=a@b", "https://idp/t?to=a@b"),
        ("a@b", "a@b"),
    ],
)
def test_users_and_passwords_in_addresses_are_masked(text, shown):
    assert without_user_info(text) == shown
