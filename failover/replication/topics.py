"""Keeps the target's topics as a flow needs them: finds what is to be copied, makes and enlarges what is missing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from failover.config.flow import Config, FlowConfig
from failover.config.mm2_keys import SOURCE
from failover.inventory.flow import Flow
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.metadata import TopicState
from failover.kafka.wire.rounds import FIRST_PAUSE, LONGEST_PAUSE
from failover.kafka.wire.topics import (
    CreatedTopic,
    NewTopic,
    create_partitions,
    describe_broker_configs,
    describe_topic_configs,
)
from failover.model.names import Fault, TopicPartition
from failover.replication.loops import Loops
from failover.replication.owners import Owners
from failover.replication.topic_configs import ConfigRule, config_rule, new_topic_configs
from failover.replication.topic_creation import create_with_what_is_taken
from failover.replication.topics_seen import (
    Changes,
    Choice,
    Notice,
    Pair,
    TopicFault,
    TopicsSeen,
    changes,
    choose,
    missing,
)

_log = logging.getLogger(__name__)

REPLICATION_FACTOR_KEY = "replication.factor"

_ABSENT, _INVALID_TOPIC, _EXISTS, _ENOUGH, _BAD_FACTOR = 3, 17, 36, 37, 38
_DENIED = frozenset({29, 31})
CODES = {
    _INVALID_TOPIC: "invalid-name",
    29: "not-authorized",
    31: "not-authorized",
    _BAD_FACTOR: "invalid-replication-factor",
    40: "invalid-config",
    44: "policy-violation",
}
_MIN_IN_SYNC = "min.insync.replicas"
_LASTING = frozenset({"topic-skipped", "topic-fault", "more-partitions"})
_WARNINGS = frozenset({"topic-fault", "config-left-out", "low-replication"})
# Kafka up to 3.4 lets producer ids expire with transactional ids (KIP-854).
_EXPIRATIONS = ("producer.id.expiration.ms", "transactional.id.expiration.ms")
_LEADER_SECONDS = 10.0


class TopicSettings(msgspec.Struct, frozen=True):
    """Says how target topics are made. ``replication_factor`` -1: the brokers' default."""

    configs: ConfigRule
    replication_factor: int = 2


def topic_settings(config: Config, flow: FlowConfig) -> TopicSettings:
    """Reads a flow's settings; raises ConfigError.

    A new topic gets the source's settings whatever ``sync.topic.configs.enabled`` says, which is about keeping them
    alike afterwards (MM2: MirrorSourceConnector.createNewTopics).
    """
    connector = flow.connectors[SOURCE]
    own = {f"failover.{key}": setting.text for key, setting in config.failover.items()}
    settings = {key: setting.text for key, setting in connector.items()} | own
    return TopicSettings(config_rule(settings, config.mm2_version), connector.integer(REPLICATION_FACTOR_KEY))


class Topics:
    """Looks at both clusters' topics, one look after the other.

    ``seen``: what the last look found. ``looked``: whether there was one. ``recorded``: source topics with a position
    on record. ``makes``: whether this process makes and enlarges target topics; where not, another one does.

    Invariants: nothing is ever deleted or made smaller; a topic that cannot be handled costs no other one its copy;
    what a cluster does not say for the moment leaves a pair as it was known before.
    """

    def __init__(
        self,
        source: WireCluster,
        target: WireCluster,
        flow: Flow,
        settings: TopicSettings,
        *,
        loops: Loops | None = None,
        owners: Owners | None = None,
        makes: Callable[[], bool] = lambda: True,
    ) -> None:
        self._makes = makes
        self.seen = TopicsSeen()
        self.recorded: Collection[str] = ()
        self.looked = asyncio.Event()
        self._source = source
        self._target = target
        self._flow = flow
        self._settings = settings
        self._loops = loops
        self._owners = owners or Owners()

    async def refresh(self) -> Changes:
        """Looks once, makes and enlarges target topics, waits a little for their leaders, and logs what is new.

        Gives what differs from the look before. Two requests whatever the number of topics, about six when some are
        new (each 200 of them), and one more for each setting that the target refuses. Raises ``ClusterUnreachable``
        and ``CredentialsRefused``; then ``seen`` stands as it was.
        """
        before, self.seen = self.seen, await self._look()
        self.looked.set()
        for notice in self.seen.news:
            _log.log(logging.WARNING if notice.code in _WARNINGS else logging.INFO, "%s", notice.text)
        return changes(before, self.seen)

    @property
    def awaited(self) -> bool:
        """Says whether the source has partitions to be copied that the target lacks, or does not show."""
        return sum(self.seen.wanted.values()) > len(self.seen.pairs)

    def targets(self) -> dict[str, str]:
        """Gives the target topic of each source topic that is copied, in whole or in part."""
        return {pair.source.topic: pair.target.topic for pair in self.seen.pairs.values()}

    async def producer_expiration_ms(self) -> int | None:
        """Gives the shortest time after which a target broker forgets an idle producer; None: they do not tell."""
        return await self._shortest(_EXPIRATIONS)

    async def transactional_expiration_ms(self) -> int | None:
        """Gives the shortest time after which the target forgets an unused transactional id; None: not told."""
        return await self._shortest(_EXPIRATIONS[-1:])

    async def _shortest(self, names: Sequence[str]) -> int | None:
        """Gives the smallest of the target brokers' settings, of each the first of these that it has."""
        told = (await describe_broker_configs(self._target, names)).values()
        each = [
            next((answer[name] for name in names if answer.get(name)), None)
            for answer in told
            if isinstance(answer, dict)
        ]
        return min((int(value) for value in each if value), default=None)

    # -- one look --------------------------------------------------------------------------------

    async def _look(self) -> TopicsSeen:
        makes = self._makes()
        look = _Look(self._flow, self.seen, self._loops, makes=makes)
        sources = await self._listed(look)
        targets = await self._target.metadata({look.choice.targets[topic] for topic in sources})
        states = dict(targets.topics)
        if makes:
            states |= await self._create(look, sources, states)
            states |= await self._grow(look, sources, states)
        for topic, source in sources.items():
            look.pair(source, states[look.choice.targets[topic]])
        return look.seen()

    async def _listed(self, look: _Look) -> dict[str, TopicState]:
        """Gives the source's topics to be mirrored, and faults of those that are known and cannot be seen now."""
        found = dict((await self._source.metadata(None)).topics)
        vanished = self.seen.wanted.keys() - found.keys()
        if vanished:
            # A listing leaves out what may not be described; asked by name that is told from what does not exist.
            named = (await self._source.metadata(vanished)).topics
            found |= {name: topic for name, topic in named.items() if not _is_absent(topic.fault)}
        look.choose(found)
        copied = {pair.source.topic for pair in self.seen.pairs.values()}
        targets = look.choice.targets
        for fault in await self._owners.settle(self._flow, targets, recorded=self.recorded, copied=copied):
            look.leave(fault)
        for name in look.choice.targets:
            reason = found[name].fault
            if reason is not None:
                look.refuse(name, "read", reason)
                look.keep(name)
        return {name: found[name] for name in look.choice.targets if found[name].fault is None}

    async def _create(
        self, look: _Look, sources: Mapping[str, TopicState], states: Mapping[str, TopicState]
    ) -> dict[str, TopicState]:
        targets = look.choice.targets
        absent = [topic for topic in sources if _is_absent(states[targets[topic]].fault)]
        if not absent:
            return {}
        described = await describe_topic_configs(self._source, absent)
        wanted: dict[str, NewTopic] = {}
        for topic in absent:
            entries = described[topic]
            if isinstance(entries, Fault):
                # Without its settings a compacted topic would lose its oldest records there.
                look.refuse(topic, "describe", entries)
            else:
                configs = new_topic_configs(entries, self._settings.configs)
                factor = self._settings.replication_factor
                wanted[topic] = NewTopic(targets[topic], len(sources[topic].partitions), factor, configs)
        creation = await create_with_what_is_taken(self._target, wanted.values())
        there: dict[str, int] = {}
        for topic, new in wanted.items():
            answer = creation.answers[new.name]
            if isinstance(answer, CreatedTopic):
                look.made(topic, new, answer, creation.left_out.get(new.name, {}))
            elif answer.number != _EXISTS:
                look.refuse(topic, "create", answer, factor=new.replication_factor, brokers=len(self._target.brokers))
                continue
            there[new.name] = new.partitions if isinstance(answer, CreatedTopic) else 1
        return await self._with_leaders(there)

    async def _grow(
        self, look: _Look, sources: Mapping[str, TopicState], states: Mapping[str, TopicState]
    ) -> dict[str, TopicState]:
        targets = look.choice.targets
        counts: dict[str, tuple[str, int, int]] = {}
        for topic, source in sources.items():
            state = states[targets[topic]]
            if state.fault is None and len(state.partitions) < len(source.partitions):
                counts[state.name] = topic, len(state.partitions), len(source.partitions)
        if not counts:
            return {}
        answers = await create_partitions(self._target, {name: count for name, (_, _, count) in counts.items()})
        there: dict[str, int] = {}
        for name, (topic, before, count) in counts.items():
            answer = answers[name]
            if isinstance(answer, int):
                look.grew(topic, before, count)
            elif answer.number != _ENOUGH:
                look.refuse(topic, "grow", answer)
                continue
            there[name] = count
        return await self._with_leaders(there)

    async def _with_leaders(self, counts: Mapping[str, int]) -> dict[str, TopicState]:
        """Waits until target topics have so many partitions, each with a leader, or for as long as is reasonable."""
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + min(self._target.silence, _LEADER_SECONDS), FIRST_PAUSE
        found: dict[str, TopicState] = {}
        waiting: Collection[str] = counts.keys()
        while waiting:
            found |= (await self._target.metadata(waiting)).topics
            waiting = [name for name in waiting if not _is_ready(found[name], counts[name])]
            if waiting and loop.time() + pause >= end:
                break
            if waiting:
                await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        return found


class _Look:
    """Gathers what one look finds."""

    def __init__(self, flow: Flow, last: TopicsSeen, loops: Loops | None, *, makes: bool) -> None:
        self._makes = makes
        self.choice = Choice({}, {}, [])
        self._flow = flow
        self._last = last
        self._loops = loops
        self._pairs: dict[TopicPartition, Pair] = {}
        self._wanted: dict[str, int] = {}
        self._faults: dict[str, TopicFault] = {}
        self._created: list[str] = []
        self._grown: dict[str, tuple[int, int]] = {}
        self._notices: list[Notice] = []

    def choose(self, topics: Iterable[str]) -> None:
        self.choice = choose(self._flow, topics, self._loops)
        self._faults.update((fault.topic, fault) for fault in self.choice.faults)
        for topic, why in self.choice.skipped.items():
            self._notice("topic-skipped", topic, f"Skipping topic {topic} ({why})")

    def leave(self, fault: TopicFault) -> None:
        """Notes that a topic is not to be copied at all."""
        self._faults[fault.topic] = fault
        del self.choice.targets[fault.topic]

    def refuse(self, topic: str, step: str, reason: Fault, *, factor: int = 0, brokers: int = 0) -> None:
        """Notes why a topic cannot be copied, in whole or in part; the first reason counts."""
        target = self.choice.targets[topic]
        subject, right, doing = {
            "read": (f"topic {topic} of {self._flow.source}", "DESCRIBE", "cannot be seen"),
            "describe": (f"topic {topic} of {self._flow.source}", "DESCRIBE_CONFIGS", "does not tell its settings"),
            "see": (f"topic {target} of {self._flow.target}", "DESCRIBE (WRITE includes it)", "cannot be seen"),
            "create": (f"topic {target} of {self._flow.target}", "CREATE", f"cannot be made for {topic}"),
            "grow": (f"topic {target} of {self._flow.target}", "ALTER", f"cannot get as many partitions as {topic}"),
        }[step]
        hint = ""
        if reason.number in _DENIED:
            hint = f"grant {right} on {subject}"
        elif reason.number == _BAD_FACTOR:
            hint = (
                f"{REPLICATION_FACTOR_KEY} is {factor} and {self._flow.target} has {_counted(brokers, 'broker')}: "
                f"set it to {brokers} at most, or to -1 for their default"
            )
        code = CODES.get(reason.number, "unavailable" if reason.retriable or reason.number < -1 else "broker-error")
        self._faults.setdefault(topic, TopicFault(topic, target, code, f"{subject} {doing}: {reason}", hint))

    def keep(self, topic: str) -> None:
        """Leaves a topic as the look before knew it."""
        if topic in self._last.wanted:
            self._wanted[topic] = self._last.wanted[topic]
            for tp in (TopicPartition(topic, number) for number in range(self._last.wanted[topic])):
                if tp in self._last.pairs:
                    self._pairs[tp] = self._last.pairs[tp]

    def made(self, topic: str, new: NewTopic, answer: CreatedTopic, left_out: Mapping[str, Fault]) -> None:
        self._created.append(new.name)
        text = f"Created topic {new.name} of {self._flow.target} for {topic}: {_counted(new.partitions)}"
        if answer.replication_factor > 0:
            text += f", replication factor {answer.replication_factor}"
        if new.configs.keys() - left_out.keys():
            kept = (f"{name}={value}" for name, value in sorted(new.configs.items()) if name not in left_out)
            text += f", {', '.join(kept)}"
        self._notice("topic-created", topic, text)
        for name, why in left_out.items():
            text = f"Topic {new.name} of {self._flow.target} is without {name}={new.configs[name]} of {topic}: {why}"
            self._notice("config-left-out", topic, text)
        least = answer.configs.get(_MIN_IN_SYNC) or ""
        if least.isdigit() and 0 < answer.replication_factor < int(least):
            text = (
                f"Topic {new.name} of {self._flow.target} has replication factor {answer.replication_factor} and "
                f"{_MIN_IN_SYNC}={least}: brokers up to 3.6 take no write with acks=all; raise {REPLICATION_FACTOR_KEY}"
            )
            self._notice("low-replication", topic, text)

    def grew(self, topic: str, before: int, count: int) -> None:
        target = self.choice.targets[topic]
        self._grown[target] = before, count
        text = f"Topic {target} of {self._flow.target} has {_counted(count)} now, as {topic} has; it had {before}"
        self._notice("partitions-added", topic, text)

    def pair(self, source: TopicState, target: TopicState) -> None:
        """Pairs a source topic's partitions with those its target has."""
        if target.fault is not None:
            if not _is_absent(target.fault):
                self.refuse(source.name, "see", target.fault)
                self.keep(source.name)
            elif self._makes and source.name not in self._faults:
                self.refuse(source.name, "see", Fault(_ABSENT, target.fault.name, "made and not there yet"))
            self._wanted[source.name] = len(source.partitions)
            return
        self._wanted[source.name] = len(source.partitions)
        for number in sorted(source.partitions.keys() & target.partitions.keys()):
            tp = TopicPartition(source.name, number)
            self._pairs[tp] = Pair(tp, TopicPartition(target.name, number), source.topic_id, target.topic_id)
        more = len(target.partitions) - len(source.partitions)
        if more > 0:
            text = (
                f"Topic {target.name} of {self._flow.target} has {_counted(more)} more than {source.name}; "
                "nothing is copied there"
            )
            self._notice("more-partitions", source.name, text)

    def seen(self) -> TopicsSeen:
        for fault in self._faults.values():
            self._notice("topic-fault", fault.topic, str(fault))
        known = {notice for notice in self._last.notices if notice.code in _LASTING}
        return TopicsSeen(
            pairs=self._pairs,
            wanted=self._wanted,
            missing=missing(self._last, self._pairs, self._wanted),
            skipped=self.choice.skipped,
            faults=tuple(self._faults.values()),
            created=tuple(self._created),
            grown=self._grown,
            notices=tuple(self._notices),
            news=tuple([notice for notice in self._notices if notice not in known]),
        )

    def _notice(self, code: str, topic: str, text: str) -> None:
        self._notices.append(Notice(code, topic, text))


def _counted(number: int, what: str = "partition") -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _is_absent(reason: Fault | None) -> bool:
    return reason is not None and reason.number == _ABSENT


def _is_ready(topic: TopicState, partitions: int) -> bool:
    known = topic.partitions.values()
    return topic.fault is None and len(known) >= partitions and all(each.leader >= 0 for each in known)


__all__ = ["Changes", "Pair", "TopicSettings", "Topics", "TopicsSeen", "topic_settings"]
