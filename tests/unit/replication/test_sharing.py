"""A worker follows its group: what it takes and gives, what it does when it is shut out, and what it says."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from failover.errors import ClusterUnreachable, Refused
from failover.kafka.wire.transactions import Transaction
from failover.model.names import Fault
from failover.replication import sharing as module
from failover.replication.shards import SHARDS, Slice
from failover.replication.share import Share
from failover.replication.sharing import Sharing


class Group:
    """Is a membership whose tokens a test sets."""

    session = 6.0

    def __init__(self) -> None:
        self.trouble = ""
        self.revoked: Any = None
        self.tokens: dict[int, int] = {}
        self.heard = True
        self.started = False

    def start(self) -> None:
        self.started = True

    def fresh(self) -> bool:
        return self.heard

    def holds(self, token: int) -> bool:
        return self.heard and token in self.tokens

    def held(self) -> dict[int, int]:
        return dict(self.tokens)


class Engine:
    """Notes what it is told."""

    def __init__(self, group: Group) -> None:
        self.share = Share(group="g")
        self.share.membership = group
        self.fenced_out: Any = None
        self.stopping = False
        self.shards: dict[int, Any] = {}
        self.told: list[Any] = []
        self.failure: BaseException | None = None
        self.error: BaseException | None = None

    async def take(self, numbers: Any) -> None:
        if self.error is not None:
            raise self.error
        self.told.append(("take", sorted(numbers)))
        self.share.shards |= set(numbers)

    async def give(self, numbers: Any, *, seconds: float) -> None:
        assert 0 < seconds < Group.session / 2
        self.told.append(("give", sorted(numbers)))
        self.share.shards -= set(numbers)

    def look_soon(self) -> None:
        self.told.append("look")

    def doubt(self, why: str) -> None:
        self.told.append(why)

    def fail(self, error: BaseException) -> None:
        self.failure = error

    def spawn(self, work: Any) -> Any:
        return asyncio.ensure_future(work)

    def news(self) -> list[Any]:
        told, self.told = self.told, []
        return told


class Scene(SimpleNamespace):
    group: Group
    engine: Engine
    sharing: Sharing
    now: float

    async def fence(self, number: int) -> None:
        self.engine.fenced_out(number)
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
def scene() -> Scene:
    group = Group()
    engine = Engine(group)
    found = Scene(group=group, engine=engine, now=100.0)
    found.known = {}

    async def owners(asked: Iterable[str]) -> dict[str, Any]:
        return {name: found.known[name] for name in asked}

    found.sharing = Sharing(engine, group, owners=owners, clock=lambda: found.now)  # type: ignore[arg-type]
    return found


def ran(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Makes a test of a coroutine."""

    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> None:
        asyncio.run(test(*args, **named))

    return run


@ran
async def test_it_takes_gives_and_leads_as_tokens_come_and_go(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    group, engine, sharing = scene.group, scene.engine, scene.sharing
    await sharing.settle()
    assert engine.news() == []
    group.tokens = {0: 1, 3: 1, 9: 1}
    await sharing.settle()
    assert engine.news() == [("take", [3, 9]), "look"]
    assert engine.share.leads()
    group.tokens = {3: 1, 11: 2}
    await sharing.settle(take=False)  # while tokens are asked back, nothing new is begun
    assert engine.news() == [("give", [9]), "look"]
    assert not engine.share.leads()
    await sharing.settle()
    assert engine.news() == [("take", [11]), "look"]
    group.tokens = {3: 1, 11: 2, 0: 3}  # to lead takes no shard
    await sharing.settle()
    assert engine.news() == ["look"]
    assert caplog.messages == [
        f"group g: this worker has {said}"
        for said in ("2 of 64 shards and leads", "1 of 64 shards", "2 of 64 shards", "2 of 64 shards and leads")
    ]


@ran
async def test_a_token_lost_and_given_again_between_two_looks_is_taken_anew(scene: Scene) -> None:
    scene.group.tokens = {3: 1, 4: 1}
    await scene.sharing.settle()
    scene.engine.news()
    scene.group.tokens = {3: 2, 4: 1}
    await scene.sharing.settle()
    assert scene.engine.news() == [("give", [3]), ("take", [3]), "look"]


@ran
async def test_what_cannot_be_taken_is_tried_again(scene: Scene) -> None:
    scene.group.tokens = {3: 1}
    scene.engine.error = ClusterUnreachable("no answer", alias="b")
    with pytest.raises(ClusterUnreachable):
        await scene.sharing.settle()
    scene.engine.error = None
    await scene.sharing.settle()
    assert scene.engine.news() == [("take", [3]), "look"]


@ran
async def test_after_a_silence_of_the_group_every_shard_is_proven(scene: Scene) -> None:
    scene.group.tokens = {3: 1}
    await scene.sharing.settle()
    scene.engine.news()
    scene.group.heard = False
    await scene.sharing.settle()
    assert not scene.engine.share.alive()
    assert scene.engine.news() == []
    scene.group.heard = True
    for _ in range(2):
        await scene.sharing.settle()
    assert scene.engine.share.alive()
    assert scene.engine.news() == ["the group was not heard of for a while"]


@ran
async def test_a_worker_that_was_frozen_finds_its_shards_fenced_and_waits_to_be_given_them(scene: Scene) -> None:
    scene.group.tokens = {3: 1, 4: 1}
    await scene.sharing.settle()
    scene.engine.news()
    await scene.fence(3)
    assert scene.engine.news() == [("give", [3])]
    scene.now += 1
    scene.group.tokens = {}  # it hears of its loss at its first poll
    await scene.sharing.settle()
    assert scene.engine.news() == [("give", [3, 4])]
    scene.now += 100
    await scene.sharing.settle()
    assert scene.engine.news() == []
    scene.group.tokens = {3: 2}
    await scene.sharing.settle()
    assert scene.engine.news() == [("take", [3]), "look"]


@ran
async def test_a_shard_taken_from_outside_is_taken_back_three_times_then_it_ends(scene: Scene) -> None:
    scene.group.tokens = {3: 1}
    await scene.sharing.settle()
    scene.engine.news()
    for _ in range(3):
        await scene.fence(3)
        assert scene.engine.news() == [("give", [3])]
        scene.now += 11  # the group may not have told us yet that we lost it
        await scene.sharing.settle()
        assert scene.engine.news() == []
        scene.now += 2
        await scene.sharing.settle()
        assert scene.engine.news() == [("take", [3])]
    await scene.fence(3)
    scene.now += 13
    await scene.sharing.settle()
    assert isinstance(scene.engine.failure, Refused)
    assert "none of its members keeps taking shard 3" in str(scene.engine.failure)


@ran
async def test_contests_long_ago_do_not_count(scene: Scene) -> None:
    scene.group.tokens = {3: 1}
    await scene.sharing.settle()
    for _ in range(8):
        await scene.fence(3)
        scene.now += 100
        await scene.sharing.settle()
    assert scene.engine.failure is None


@ran
async def test_once_a_session_the_target_is_asked_whose_each_shard_is(scene: Scene) -> None:
    doubted: list[int] = []

    def shard(number: int, epoch: int, owned: bool = True) -> SimpleNamespace:
        return SimpleNamespace(
            transactional_id=str(number),
            producer_id=7,
            epoch=epoch,
            owned=owned,
            doubt=lambda _: doubted.append(number),
        )

    scene.engine.shards = {1: shard(1, 4), 2: shard(2, 4), 3: shard(3, 4), 4: shard(4, -1, owned=False)}
    scene.known = {
        "1": Transaction("1", "CompleteAbort", 7, 4, 60_000, -1, ()),
        "2": Transaction("2", "CompleteAbort", 7, 5, 60_000, -1, ()),
        "3": Fault(105, "TRANSACTIONAL_ID_NOT_FOUND"),
    }
    await scene.sharing.ask_owners()
    assert doubted == []
    scene.now += 7
    for _ in range(2):
        await scene.sharing.ask_owners()
    assert doubted == [2]


def test_the_share_of_a_worker_alone_and_of_fixed_parts() -> None:
    alone, first, third = Share(), Share(part=Slice(1, 3)), Share(part=Slice(3, 3))
    assert (len(alone.shards), alone.first, alone.leads(), alone.shared, str(alone)) == (SHARDS, 1, True, False, "")
    assert (first.first, first.leads(), third.first, third.leads()) == (1, True, 3, False)
    assert (third.shared, third.alive(), str(third)) == (True, True, "shard 3/3")


def test_in_a_group_nothing_is_had_before_one_is_a_member() -> None:
    share = Share(group="g")
    assert (share.shards, share.first, share.leads(), share.alive()) == (set(), None, False, False)


@ran
async def test_it_joins_says_what_is_wrong_until_it_is_over_and_gives_back_what_is_asked_for(
    scene: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.001)
    scene.group.trouble = "GROUP_AUTHORIZATION_FAILED"
    running = asyncio.ensure_future(scene.sharing.run())

    async def until(done: Callable[[], bool]) -> None:
        while not done():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.001)

    await until(lambda: bool(caplog.messages))
    assert scene.group.started
    scene.engine.error = ClusterUnreachable("no answer", alias="b")
    scene.group.tokens = {3: 1}
    await until(lambda: len(caplog.messages) >= 2)
    scene.engine.error = None
    await until(lambda: ("take", [3]) in scene.engine.told)
    scene.engine.news()
    scene.group.tokens = {}
    # in the member's thread, which waits until the shard is given back
    await asyncio.to_thread(scene.group.revoked)
    assert scene.engine.news() == [("give", [3])]
    scene.engine.stopping = True
    await asyncio.to_thread(scene.group.revoked)
    assert scene.engine.news() == []
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert caplog.messages[:2] == [
        "group g: GROUP_AUTHORIZATION_FAILED",
        "group g: shards cannot be taken: no answer; tried again",
    ]
