from __future__ import annotations

import asyncio
import struct

import pytest

from failover.config.clients import ClientSettings, SaslSettings
from failover.config.oauth import TokenFile, TokenSettings
from failover.config.secret import Secret
from failover.errors import BrokerError, ClusterUnreachable, CredentialsRefused
from failover.kafka.wire.connection import Connection, ConnectionLost
from failover.kafka.wire.dial import Address, Dialer
from failover.kafka.wire.primitives import Reader, Writer
from tests.unit.wire.fake_broker import SILENT, Asked, FakeBroker, saying

ECHO = 1


def echo(asked: Asked) -> bytes:
    return bytes(asked.body)


async def dial(broker: FakeBroker, *, silence: float = 5.0, sasl: SaslSettings | None = None) -> Connection:
    settings = ClientSettings((("127.0.0.1", broker.port),), sasl=sasl)
    dialer = Dialer(settings, alias="a", client_id="t")
    return await dialer.dial(Address("127.0.0.1", broker.port), peer="broker 1", silence=silence)


def numbered(number: int) -> list[bytes]:
    return [struct.pack(">i", number), b"x" * number]


@pytest.mark.parametrize("piece", [0, 1, 3, 1000])
@pytest.mark.parametrize("flexible", [False, True])
def test_pipelined_answers_reach_their_requests_however_they_are_cut(piece, flexible):
    async def scene() -> None:
        flexible_from = {ECHO: 0} if flexible else {}
        async with FakeBroker({ECHO: echo}, {ECHO: (0, 9)}, flexible=flexible_from, piece=piece) as broker:
            connection = await dial(broker)
            futures = [connection.submit(ECHO, 9, numbered(number), flexible=flexible) for number in range(40)]
            answers = await asyncio.gather(*futures)
            assert [bytes(answer) for answer in answers] == [b"".join(numbered(number)) for number in range(40)]
            assert connection.in_flight == 0
            connection.close()

    asyncio.run(scene())


def test_a_large_answer_arrives_whole():
    async def scene() -> None:
        large = bytes(range(256)) * 20_000
        async with FakeBroker({ECHO: lambda _: large}, {ECHO: (0, 9)}) as broker:
            connection = await dial(broker)
            answer = await connection.request(ECHO, 9, [], flexible=False)
            assert answer == large
            connection.close()

    asyncio.run(scene())


def test_tagged_fields_of_an_answer_header_are_skipped():
    async def scene() -> None:
        # tag 5 of two bytes in the header's section, in front of the body
        async with FakeBroker({ECHO: lambda _: b"\x01\x05\x02abBODY"}, {ECHO: (0, 9)}) as broker:
            connection = await dial(broker)
            answer = await connection.request(ECHO, 9, [b""], flexible=True)
            assert bytes(answer) == b"BODY"
            connection.close()

    asyncio.run(scene())


def test_a_lost_connection_fails_every_pending_request_with_its_reason():
    async def scene() -> None:
        async with FakeBroker({ECHO: lambda _: SILENT}, {ECHO: (0, 9)}) as broker:
            connection = await dial(broker)
            futures = [connection.submit(ECHO, 9, numbered(number), flexible=False) for number in range(5)]
            await asyncio.sleep(0.01)
            broker.cut()
            results = await asyncio.gather(*futures, return_exceptions=True)
            for error in results:
                assert isinstance(error, ConnectionLost)
                assert error.written
                assert not error.silent
                assert "cluster a: broker 1 " in error.message
            assert not connection.open
            with pytest.raises(ConnectionLost) as caught:
                await connection.ready()
            assert not caught.value.written

    asyncio.run(scene())


def test_an_answer_out_of_order_ends_the_connection():
    async def scene() -> None:
        async with saying(struct.pack(">ii", 4, 77)) as connection:
            with pytest.raises(ConnectionLost, match="answered request 77 while 1 was due"):
                await connection.request(ECHO, 9, [], flexible=False)

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x50", CredentialsRefused, "speaks TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n", ConnectionLost, "does not speak Kafka's protocol"),
        (b"\xff\xff\xff\xff", ConnectionLost, "does not speak Kafka's protocol"),
    ],
)
def test_another_protocol_is_recognized(said, error, words):
    async def scene() -> None:
        async with saying(said) as connection:
            with pytest.raises(error, match=words):
                await connection.request(ECHO, 9, [], flexible=False)

    asyncio.run(scene())


def test_silence_loses_the_connection_and_says_so():
    async def scene() -> None:
        async with FakeBroker({ECHO: lambda _: SILENT}, {ECHO: (0, 9)}) as broker:
            connection = await dial(broker, silence=0.05)
            with pytest.raises(ConnectionLost, match=r"was silent for 0.05 s") as caught:
                await connection.request(ECHO, 9, [], flexible=False)
            assert caught.value.silent
            assert isinstance(caught.value, ClusterUnreachable)

    asyncio.run(scene())


def test_patience_and_a_throttled_broker_are_no_silence():
    async def scene() -> None:
        loop = asyncio.get_running_loop()

        async with FakeBroker({ECHO: lambda _: SILENT}, {ECHO: (0, 9)}) as broker:
            connection = await dial(broker, silence=0.05)
            polling = connection.submit(ECHO, 9, [], flexible=False, patience=60)
            await asyncio.sleep(0.15)
            assert connection.open
            connection.pace.throttle(100, loop.time())
            quiet_until = connection.pace.quiet_until
            await connection.ready()
            assert loop.time() >= quiet_until
            connection.close()
            with pytest.raises(ConnectionLost, match="closed by this client"):
                await polling

    asyncio.run(scene())


def test_a_deadline_gives_up_one_request_and_leaves_the_others():
    async def scene() -> None:
        answers = iter([SILENT, b"second"])
        async with FakeBroker({ECHO: lambda _: next(answers)}, {ECHO: (0, 9)}) as broker:
            connection = await dial(broker)
            with pytest.raises(ConnectionLost, match=r"did not answer within 0\.02 s"):
                await connection.request(ECHO, 9, [], flexible=False, deadline=0.02)
            assert connection.open
            assert connection.in_flight == 1
            connection.close()

    asyncio.run(scene())


def test_unsent_bytes_are_bounded():
    async def scene() -> None:
        async with saying(b"", max_unsent=1 << 16) as connection:
            sent, piece = [], bytes(1 << 20)

            async def send_without_end() -> None:
                while True:
                    await connection.ready()
                    sent.append(connection.submit(ECHO, 0, [piece], flexible=False))

            with pytest.raises(TimeoutError):
                await asyncio.wait_for(send_without_end(), 0.3)
            assert 0 < len(sent) < 32
            connection.close()
            await asyncio.gather(*sent, return_exceptions=True)

    asyncio.run(scene())


def test_a_version_both_sides_speak_is_chosen():
    async def scene() -> None:
        async with FakeBroker({}, {ECHO: (2, 5), 3: (9, 9)}) as broker:
            connection = await dial(broker)
            assert connection.version(ECHO, 0, 9) == 5
            assert connection.version(ECHO, 0, 3) == 3
            for key, low, high in ((ECHO, 6, 9), (ECHO, 0, 1), (99, 0, 1)):
                with pytest.raises(BrokerError) as caught:
                    connection.version(key, low, high)
                assert caught.value.number == 35
            connection.close()

    asyncio.run(scene())


def test_a_broker_older_than_the_question_is_asked_in_version_0():
    def versions(asked: Asked) -> bytes:
        if asked.version > 0:
            return struct.pack(">hi", 35, 0)
        return struct.pack(">hihhh", 0, 1, ECHO, 0, 4)

    async def scene() -> None:
        async with FakeBroker({18: versions}, {}) as broker:
            connection = await dial(broker)
            assert connection.versions == {ECHO: (0, 4)}
            connection.close()

    asyncio.run(scene())


def test_nobody_listening_is_unreachable_and_nothing_was_written():
    async def scene() -> None:
        async with FakeBroker({}, {}) as broker:
            pass
        with pytest.raises(ConnectionLost, match="cannot be connected to") as caught:
            await dial(broker)
        assert not caught.value.written
        assert caught.value.alias == "a"

    asyncio.run(scene())


def test_a_broker_that_takes_the_connection_and_says_nothing_is_silent():
    async def scene() -> None:
        async with FakeBroker({18: lambda _: SILENT}, {}) as broker:
            with pytest.raises(ConnectionLost) as caught:
                await dial(broker, silence=0.05)
            assert caught.value.silent
            assert not caught.value.written

    asyncio.run(scene())


# -- SASL ---------------------------------------------------------------------------------------

IDENTITY = SaslSettings("PLAIN", "u", Secret("p"))
SASL = {17: (0, 1), 36: (0, 2)}


def handshake(*mechanisms: str, error: int = 0):
    def answer(asked: Asked) -> bytes:
        out = Writer(flexible=False)
        out.int16(error)
        out.strings(mechanisms)
        return bytes(out.data)

    return answer


def authenticated(*, lifetime: int = 0, error: int = 0, text: str | None = None):
    def answer(asked: Asked) -> bytes:
        assert bytes(Reader(asked.body, flexible=False).sized()) == b"\0u\0p"
        out = Writer(flexible=False)
        out.int16(error)
        out.string(text)
        out.sized(b"")
        out.int64(lifetime)
        return bytes(out.data)

    return answer


def test_credentials_are_shown_before_anything_else_and_again_before_their_session_ends():
    async def scene() -> None:
        script = {17: handshake("PLAIN"), 36: authenticated(lifetime=60_000), ECHO: echo}
        async with FakeBroker(script, {ECHO: (0, 9), **SASL}) as broker:
            connection = await dial(broker, sasl=IDENTITY)
            assert broker.order() == [18, 17, 36]
            now = asyncio.get_running_loop().time()
            assert now < connection.renew_at < now + 60
            connection.renew_at = now
            both = (connection.request(ECHO, 9, [b"x"], flexible=False) for _ in range(2))
            assert await asyncio.gather(*both) == [b"x", b"x"]
            assert broker.order() == [18, 17, 36, 17, 36, ECHO, ECHO]
            assert connection.renew_at > now
            connection.close()

    asyncio.run(scene())


def test_a_token_that_is_due_is_replaced_before_it_is_shown_again(tmp_path):
    """A cluster's session ends with the token, so that the renewal needs another one."""
    shown: list[bytes] = []

    def bearer(asked: Asked) -> bytes:
        shown.append(bytes(Reader(asked.body, flexible=False).sized()))
        out = Writer(flexible=False)
        out.int16(0)
        out.string(None)
        out.sized(b"")
        out.int64(30_000)
        return bytes(out.data)

    async def scene() -> None:
        script = {17: handshake("OAUTHBEARER"), 36: bearer, ECHO: echo}
        path = tmp_path / "token"
        path.write_text("first")
        settings = TokenSettings(TokenFile(path=str(path)))
        async with FakeBroker(script, {ECHO: (0, 9), **SASL}) as broker:
            connection = await dial(broker, sasl=SaslSettings("OAUTHBEARER", token=settings))
            path.write_text("second")
            connection.renew_at = 0
            await connection.request(ECHO, 9, [], flexible=False)
            provider = settings.provider()
            provider._renew_at = 0
            connection.renew_at = 0
            await connection.request(ECHO, 9, [], flexible=False)
            assert broker.order() == [18, 17, 36, 17, 36, ECHO, 17, 36, ECHO]
            assert [message.decode() for message in shown] == [
                f"n,,\x01auth=Bearer {text}\x01\x01" for text in ("first", "first", "second")
            ]
            path.unlink()
            provider._token = None
            connection.renew_at = 0
            with pytest.raises(CredentialsRefused, match="cannot be logged in to: the token file") as caught:
                await connection.request(ECHO, 9, [], flexible=False)
            assert caught.value.hint
            assert not connection.open
            with pytest.raises(CredentialsRefused, match="cluster a: broker 1 cannot be logged in to"):
                await dial(broker, sasl=SaslSettings("OAUTHBEARER", token=settings))

    asyncio.run(scene())


def test_credentials_refused_at_renewal_end_the_connection():
    async def scene() -> None:
        script = {17: handshake("PLAIN"), 36: authenticated(lifetime=60_000), ECHO: echo}
        async with FakeBroker(script, {ECHO: (0, 9), **SASL}) as broker:
            connection = await dial(broker, sasl=IDENTITY)
            broker.script[36] = authenticated(error=58, text="revoked")
            connection.renew_at = 0
            with pytest.raises(CredentialsRefused, match="revoked"):
                await connection.request(ECHO, 9, [], flexible=False)
            assert not connection.open

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ({17: handshake("PLAIN"), 36: authenticated(error=58, text="no such user")}, "no such user"),
        ({17: handshake("SCRAM-SHA-512", "GSSAPI", error=33)}, "offers SCRAM-SHA-512, GSSAPI, not PLAIN"),
        ({17: handshake(error=34)}, "ILLEGAL_SASL_STATE"),
    ],
)
def test_refused_credentials_are_named(script, words):
    async def scene() -> None:
        async with FakeBroker(script, SASL) as broker:
            with pytest.raises(CredentialsRefused, match=words) as caught:
                await dial(broker, sasl=IDENTITY)
            assert caught.value.hint

    asyncio.run(scene())


def test_silence_during_the_exchange_is_no_refusal():
    async def scene() -> None:
        script = {17: handshake("PLAIN"), 36: lambda _: SILENT}
        async with FakeBroker(script, SASL) as broker:
            with pytest.raises(ConnectionLost):
                await dial(broker, sasl=IDENTITY, silence=0.05)

    asyncio.run(scene())
