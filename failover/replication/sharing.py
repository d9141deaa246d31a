"""Shares a flow with other workers through a consumer group of the target: shards come and go as tokens do.

What a worker may write is decided by fences alone, so nothing here has to be on time. A token that comes late only
delays copying; one that is lost and not noticed finds its shard fenced by the next owner.

A worker that is shut out of a shard stops it and asks nobody for it: in a group that is how it learns, late, that it
was frozen or cut off, and the shard is another member's. If the group goes on giving it that shard for longer than a
session lasts, somebody outside the group has it. Then it is taken once more, a few times at most, so that a stray
worker is overtaken and says so; two who will not give way do not fence each other for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from failover.config.clients import ClientSettings
from failover.errors import BrokerError, ClusterError, GroupTaken, NotAuthorized, Refused
from failover.inventory.flow import Flow
from failover.kafka.tokens import Tokens
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.groups import describe_groups
from failover.kafka.wire.offsets import committed_offsets
from failover.kafka.wire.topics import NewTopic
from failover.kafka.wire.transactions import Transaction, describe_transactions
from failover.model.groups import GroupType
from failover.model.names import Fault
from failover.replication.engine import Engine
from failover.replication.internal_topic import ensure_topic
from failover.replication.repeating import Troubles
from failover.replication.shards import LEAD, LEADER, SHARDS, TOKENS, moves, transactional_id

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.25
_SESSIONS = 2
"""So many sessions after it was shut out of a shard that it still holds by the group a worker takes it once more."""
_MOST_TRIES, _CONTEST_SESSIONS = 3, 30
_GROUP_DENIED = 30
_ID_DENIED = 53
_DENIED = frozenset({29, 30, 31, _ID_DENIED})


Owners = Callable[[Iterable[str]], Awaitable[Mapping[str, Transaction | Fault]]]


class Group(Protocol):
    """Is this worker's membership; see ``failover.kafka.tokens.Tokens``."""

    session: float
    trouble: str
    revoked: Callable[[], None]

    def start(self) -> None:
        """Joins."""

    def fresh(self) -> bool:
        """Says whether the group was heard of lately."""

    def held(self) -> dict[int, int]:
        """Gives tokens, each with the number of the assignment it came by."""


class Sharing:
    """Keeps an engine's shards as the group has them.

    ``owners`` asks the target who has transactional ids, without using them. ``clock`` gives seconds.
    """

    def __init__(
        self, engine: Engine, group: Group, *, owners: Owners, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._owners = owners
        self._clock = clock
        self._asked = clock()
        self._engine = engine
        self._group = group
        self._name = engine.share.group
        self._had: dict[int, int] = {}
        self._out: dict[int, float] = {}
        self._tries: dict[int, deque[float]] = {}
        self._turn = asyncio.Lock()
        self._silent = False
        self._troubles = Troubles()
        engine.fenced_out = self._fenced_out

    async def run(self) -> None:
        """Joins the group and follows it until cancelled."""
        loop = asyncio.get_running_loop()

        def revoked() -> None:
            # In the member's own thread, which holds the tokens back from their next owner until this is done.
            if not self._engine.stopping:
                with contextlib.suppress(Exception):  # done or not, the next owner's fence makes it right
                    asyncio.run_coroutine_threadsafe(self.settle(take=False), loop).result(self._group.session / 2)

        self._group.revoked = revoked
        self._group.start()
        while True:
            try:
                await self.settle()
                await self.ask_owners()
            except (ClusterError, BrokerError) as error:
                self._troubles.tell("take", f"group {self._name}: shards cannot be taken: {error}; tried again")
            else:
                self._troubles.only(self._in_trouble())
            await asyncio.sleep(_LOOK_SECONDS)

    async def settle(self, *, take: bool = True) -> None:
        """Gives and takes what has changed hands. Raises ``ClusterError``, ``BrokerError``."""
        async with self._turn:
            gone, _ = moves(self._had, self._group.held())
            if gone:
                self._had = {token: by for token, by in self._had.items() if token not in gone}
                for number in gone:
                    self._out.pop(number, None)
                    self._tries.pop(number, None)
                await self._engine.give(gone - {LEADER}, seconds=self._group.session / 4)
            held = self._group.held()
            _, fresh = moves(self._had, held)
            if take and fresh:
                if fresh != {LEADER}:
                    await self._engine.take(fresh - {LEADER})
                self._had |= {token: held[token] for token in fresh}
            if LEADER in gone or (take and fresh):
                # A leader makes what its predecessor did not, others see what was made since, each by its own clock.
                self._engine.look_soon()
            if gone or (take and fresh):
                self._say()
            self._prove()
            if take:
                await self._take_again()

    async def ask_owners(self) -> None:
        """Looks once a session whether each shard is still ours: one without traffic would not find out by itself.

        Raises ``ClusterError``.
        """
        if self._clock() - self._asked < self._group.session:
            return
        self._asked = self._clock()
        mine = {each.transactional_id: each for each in self._engine.shards.values() if each.owned}
        for name, found in (await self._owners(mine) if mine else {}).items():
            shard = mine[name]
            if isinstance(found, Transaction) and (found.producer_id, found.epoch) != (shard.producer_id, shard.epoch):
                shard.doubt("the target names another owner")

    # -- inside ----------------------------------------------------------------------------------

    def _fenced_out(self, number: int) -> None:
        self._engine.spawn(self._leave(number))

    async def _leave(self, number: int) -> None:
        async with self._turn:
            await self._engine.give([number], seconds=self._group.session / 4)
            if number in self._had:
                self._out[number] = self._clock()
                _log.warning("shard %d: another worker has it now; it is not copied here any more", number)

    def _prove(self) -> None:
        """After a silence of the group nothing is sent before each shard has proven to be ours still."""
        fresh = self._group.fresh()
        if fresh and self._silent:
            self._engine.doubt("the group was not heard of for a while")
        self._silent = not fresh and bool(self._had)

    async def _take_again(self) -> None:
        now = self._clock()
        due = [number for number, since in self._out.items() if now - since > _SESSIONS * self._group.session]
        if not due or not self._group.fresh():
            return
        for number in due:
            tries = self._tries.setdefault(number, deque(maxlen=_MOST_TRIES))
            if len(tries) == _MOST_TRIES and now - tries[0] < _CONTEST_SESSIONS * self._group.session:
                self._engine.fail(
                    Refused(
                        f"group {self._name}: a worker that is none of its members keeps taking shard {number}",
                        hint="start every worker of the flow with the same --group-id, or let one work alone",
                    )
                )
                return
        await self._engine.take(due)
        for number in due:
            del self._out[number]
            self._tries[number].append(now)
            _log.warning("shard %d: whoever has it is no member of group %s; it is taken back", number, self._name)

    def _say(self) -> None:
        shards = len(self._had.keys() - {LEADER})
        leads = " and leads" if LEADER in self._had else ""
        _log.info("group %s: this worker has %d of %d shards%s", self._name, shards, SHARDS, leads)

    def _in_trouble(self) -> list[str]:
        trouble = self._group.trouble
        if not trouble or self._had:  # whoever holds tokens is a member, whatever was wrong for a moment
            return []
        self._troubles.tell(trouble, f"group {self._name}: {trouble}", over=f"group {self._name}: goes on")
        return [trouble]


def client_of(flow: Flow) -> str:
    """Gives the client id by which members of a flow's group know each other."""
    return f"failover-replicate-{flow.source}->{flow.target}"


async def member(
    flow: Flow, settings: ClientSettings, target: WireCluster, topic: NewTopic, *, group: str, session: float
) -> Tokens:
    """Makes a member of the group, once it is sure to be this flow's; it joins by ``start``.

    ``topic``: the one whose partitions are tokens, made where there is none. Raises ``GroupTaken`` where others use
    the group, ``Refused`` for a topic of another size, ``NotAuthorized``, ``BrokerError``, ``ClusterUnreachable``.
    """
    fault, _ = await ensure_topic(target, topic)
    if fault is not None:
        raise _error(target, f"topic {topic.name}", fault, "READ and DESCRIBE, and CREATE if it is to be made")
    state = (await target.metadata([topic.name])).topics[topic.name]
    if state.fault is None and len(state.partitions) < TOKENS:
        raise Refused(
            f"topic {topic.name} of {flow.target} has {len(state.partitions)} partitions, and {TOKENS} are needed",
            hint="it holds nothing: delete it, and it is made anew",
        )
    info = (await describe_groups(target, [group], {group: GroupType.CLASSIC}))[group]
    fault = info.fault
    if fault is None and info.operations is not None and "READ" not in info.operations:
        fault = Fault(_GROUP_DENIED, "GROUP_AUTHORIZATION_FAILED")
    if fault is not None:
        raise _error(target, f"group {group}", fault, "READ and DESCRIBE")
    ours = transactional_id(flow.source, flow.target, LEAD)
    known = (await describe_transactions(target, [ours]))[ours]
    if isinstance(known, Fault) and known.number == _ID_DENIED:
        ids = transactional_id(flow.source, flow.target)
        raise _error(target, f"every transactional id that begins with {ids}", known, "WRITE and DESCRIBE")
    client = client_of(flow)
    others = sorted({each.client_id for each in info.members if each.client_id != client})
    commits = (await committed_offsets(target, [group]))[group] if info.exists and not info.members else {}
    if others or (commits and not isinstance(commits, Fault)):
        who = f"is used by {', '.join(others[:3])}" if others else "has committed offsets"
        raise GroupTaken(
            f"group {group} of {flow.target} {who}: it is not one by which workers share {flow.source}->{flow.target}",
            hint="give --group-id a name of its own for each flow, or none: it is made of the flow's aliases then",
        )
    return Tokens(settings, topic=topic.name, group=group, session=session, client=client)


def _error(target: WireCluster, what: str, fault: Fault, rights: str) -> Exception:
    where = f"cluster {target.alias}: {what} cannot be used to share the work: {fault}"
    if fault.number in _DENIED:
        return NotAuthorized(where, alias=target.alias, hint=f"grant {rights} on {what}")
    return BrokerError(where, number=fault.number, name=fault.name)
