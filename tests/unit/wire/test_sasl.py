from __future__ import annotations

import pytest

from failover.config.clients import SaslSettings
from failover.config.oauth import TokenSettings, UnsecuredToken
from failover.config.secret import Secret
from failover.errors import ConfigError
from failover.kafka.wire.sasl import Authenticator, ServerNotProven

# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def authenticator(mechanism: str = "SCRAM-SHA-256", username: str = "user") -> Authenticator:
    return Authenticator(SaslSettings(mechanism, username, Secret("pencil")))


def test_scram_sha_256_as_in_rfc_7677():
    conversation = authenticator().conversation(nonce=NONCE)
    assert next(conversation) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert conversation.send(SERVER_FIRST) == CLIENT_FINAL
    with pytest.raises(StopIteration):
        conversation.send(SERVER_FINAL)


def test_the_exchange_as_in_rfc_5802():
    conversation = authenticator()._scram("sha1", "fyko+d2lbbFgONRv9qkxdawL")
    assert next(conversation) == b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"
    answer = conversation.send(b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096")
    assert answer == b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
    with pytest.raises(StopIteration):
        conversation.send(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=")


@pytest.mark.parametrize(
    "final", [b"v=AAAA", b"", b"e=invalid-proof", b"\xff\xfe", b"v=nobase64!", SERVER_FINAL.replace(b"6", b"7", 1)]
)
def test_a_server_that_does_not_know_the_password_is_not_trusted(final):
    conversation = authenticator().conversation(nonce=NONCE)
    next(conversation)
    conversation.send(SERVER_FIRST)
    with pytest.raises(ServerNotProven):
        conversation.send(final)


@pytest.mark.parametrize(
    "first",
    [
        SERVER_FIRST.replace(b"r=rOp", b"r=xOp"),
        SERVER_FIRST.replace(b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b""),
        SERVER_FIRST.replace(b"i=4096", b"i=0"),
        SERVER_FIRST.replace(b"i=4096", b"i=1000000001"),
        SERVER_FIRST.replace(b"i=4096", b"i=-1"),
        SERVER_FIRST.replace(b"s=W22ZaJ0SNY7soEsUEjb6gQ==", b"s="),
        b"",
    ],
)
def test_a_malformed_challenge_is_refused(first):
    conversation = authenticator().conversation(nonce=NONCE)
    next(conversation)
    with pytest.raises(ServerNotProven):
        conversation.send(first)


def test_user_names_are_escaped_and_nonces_differ():
    one, two = (next(authenticator(username="a=b,c").conversation()) for _ in range(2))
    assert one.startswith(b"n,,n=a=3Db=2Cc,r=")
    assert one != two


def test_plain_is_one_message():
    conversation = authenticator("PLAIN").conversation()
    assert next(conversation) == b"\0user\0pencil"
    with pytest.raises(StopIteration):
        conversation.send(b"")


def test_a_token_is_one_message_with_its_extensions():
    source = UnsecuredToken(claims=(("sub", "me"),), principal="me")
    bearer = Authenticator(SaslSettings("OAUTHBEARER", token=TokenSettings(source, (("logicalCluster", "lkc"),))))
    assert bearer.provider is not None
    token = bearer.provider.token()
    conversation = bearer.conversation(token=token)
    expected = f"n,,\x01auth=Bearer {token.value.reveal()}\x01logicalCluster=lkc\x01\x01"
    assert next(conversation) == expected.encode()
    with pytest.raises(StopIteration):
        conversation.send(b"")


def test_a_challenge_to_a_token_is_a_refusal():
    source = UnsecuredToken(claims=(("sub", "me"),), principal="me")
    bearer = Authenticator(SaslSettings("OAUTHBEARER", token=TokenSettings(source)))
    assert bearer.provider is not None
    conversation = bearer.conversation(token=bearer.provider.token())
    next(conversation)
    assert conversation.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(ServerNotProven, match="invalid_token"):
        conversation.send(b"")


def test_other_mechanisms_are_a_configuration_error():
    with pytest.raises(ConfigError, match="GSSAPI"):
        authenticator("GSSAPI")
