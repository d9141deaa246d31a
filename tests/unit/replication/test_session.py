from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from failover.kafka.wire.fetch import FetchAnswer, FetchPartition
from failover.model.names import TopicPartition
from failover.replication.session import FetchSession

TPS = [TopicPartition("t", number) for number in range(3)]
NOT_FOUND, BAD_EPOCH = 70, 71
LAST_EPOCH = (1 << 31) - 1


def asking(tp: TopicPartition, offset: int = 0, topic_id: bytes = b"1" * 16) -> FetchPartition:
    return FetchPartition(*tp, offset, 100, topic_id)


def answer(error: int = 0, session: int = 7) -> FetchAnswer:
    return FetchAnswer(error, session, [])


class Broker:
    """Keeps one session as Kafka's FetchManager does: an epoch 0 begins one, each further request follows the last."""

    def __init__(self) -> None:
        self.picture: dict[tuple[bytes, int], FetchPartition] = {}
        self._id = self._epoch = 0

    def evict(self) -> None:
        self._id = 0

    def take(
        self, place: tuple[int, int], asked: list[FetchPartition], forgotten: list[FetchPartition], *, room: bool
    ) -> FetchAnswer:
        number, epoch = place
        if epoch == 0:
            self.picture = {(each.topic_id, each.partition): each for each in asked}
            self._id = self._id + 1 if room else 0
            self._epoch = 1
            return answer(session=self._id)
        if not self._id or number != self._id:
            return answer(NOT_FOUND)
        if epoch != self._epoch:
            return answer(BAD_EPOCH)
        self._epoch += 1
        for each in forgotten:
            self.picture.pop((each.topic_id, each.partition))
        self.picture.update({(each.topic_id, each.partition): each for each in asked})
        return answer(session=self._id)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("want"), st.sampled_from(TPS), st.integers(0, 3), st.sampled_from([b"1" * 16, b"2" * 16])),
        st.tuples(st.just("drop"), st.sampled_from(TPS)),
        st.just(("fetch", True)),
        st.just(("fetch", False)),
        st.just(("lost on the way",)),
        st.just(("answer lost",)),
        st.just(("evicted",)),
    ),
    max_size=40,
)


@given(steps)
def test_a_broker_knows_what_is_wanted_whatever_is_lost(done):
    session, broker = FetchSession(), Broker()
    for what, *rest in [*done, ("fetch", True), ("fetch", True)]:
        if what == "want":
            tp, offset, topic_id = rest
            session.want(asking(tp, offset, topic_id))
        elif what == "drop":
            session.drop(rest[0])
        elif what == "evicted":
            broker.evict()
        elif what == "lost on the way":
            session.next()
            session.lost()
        else:
            place, asked, forgotten = session.next()
            got = broker.take(place, asked, forgotten, room=what == "answer lost" or rest[0])
            if what == "answer lost":
                session.lost()
            elif session.answered(got):
                assert sorted(broker.picture.values()) == sorted(session.wanted.values())
    # nothing has happened between the last two: an error was answered to the first of them at most
    assert sorted(broker.picture.values()) == sorted(session.wanted.values())


def begun(*tps: TopicPartition) -> FetchSession:
    session = FetchSession()
    for tp in tps:
        session.want(asking(tp))
    assert session.next() == ((0, 0), [asking(tp) for tp in tps], [])
    assert session.answered(answer())
    return session


def test_only_differences_are_sent():
    session = begun(*TPS)
    assert session.next() == ((7, 1), [], [])
    session.answered(answer())
    session.want(asking(TPS[0], 5))
    session.want(asking(TPS[1], 0))  # as it was
    session.drop(TPS[2])
    assert session.next() == ((7, 2), [asking(TPS[0], 5)], [asking(TPS[2])])
    session.answered(answer())
    assert session.next() == ((7, 3), [], [])


def test_what_was_dropped_and_wanted_again_in_between_is_not_sent():
    session = begun(TPS[0])
    session.drop(TPS[0])
    session.want(asking(TPS[0]))
    assert session.next() == ((7, 1), [], [])


def test_another_topic_under_the_old_name_replaces_it():
    session = begun(TPS[0])
    session.want(asking(TPS[0], 0, b"2" * 16))
    assert session.next() == ((7, 1), [asking(TPS[0], 0, b"2" * 16)], [asking(TPS[0])])
    assert session.names[b"2" * 16] == "t"


def test_a_forgotten_session_begins_anew_and_another_error_closes_it():
    session = begun(*TPS)
    session.next()
    assert not session.answered(answer(NOT_FOUND, 0))
    assert session.next() == ((0, 0), [asking(tp) for tp in TPS], [])
    session.answered(answer(session=8))
    session.next()
    assert not session.answered(answer(BAD_EPOCH, 0))
    # its number is told, so that the broker lets it go (Kafka: KIP-227)
    assert session.next() == ((8, 0), [asking(tp) for tp in TPS], [])


def test_without_room_for_a_session_every_request_is_full():
    session = begun(*TPS)
    session.lost()
    session.next()
    assert session.answered(answer(session=0))
    assert session.next() == ((0, 0), [asking(tp) for tp in TPS], [])


def test_after_the_last_epoch_comes_the_first():
    session = begun(TPS[0])
    session._place = (7, LAST_EPOCH)
    assert session.next()[0] == (7, LAST_EPOCH)
    session.answered(answer())
    assert session.next()[0] == (7, 1)
