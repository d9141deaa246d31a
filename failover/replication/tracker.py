"""Keeps on the target where every group's committed offsets lie there, exactly, while the source is up.

One cycle: the groups, their commits, the offset syncs that came, then both logs' ends, in this order (see
``translate.sync_rule.LogBounds``); positions that moved, or are not exact yet, are translated as a plan would; what
changed is written. A cycle in which nothing moved costs a handful of requests whatever the number of groups.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import msgspec

from failover.errors import FailoverError, NotAuthorized
from failover.inventory.comparing import record_comparison
from failover.inventory.flow import Flow
from failover.inventory.look import in_background
from failover.inventory.questions import Answers, Evidence, Question, answer
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.logs import LATEST, OffsetAt, list_offsets, log_ranges
from failover.kafka.wire.offsets import GroupOffsets, committed_offsets
from failover.kafka.wire.windows import read_windows
from failover.mm2.exact_checkpoint import Beat, Position, SourceEnd, beat_record, end_record
from failover.mm2.internal_topics import checkpoint_group
from failover.model.cluster import LogRange
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition
from failover.model.records import Window, WindowRequest
from failover.model.translation import Precision
from failover.replication.aside import Aside
from failover.replication.exact_topic import CheckpointLog, record_of
from failover.replication.repeating import Troubles
from failover.replication.source_groups import SourceGroups
from failover.replication.sync_columns import FollowedSyncs
from failover.replication.tracked import Agenda, Seen, Wanted, differs, settled

_log = logging.getLogger(__name__)

AT_ONCE = 5_000
"""Positions translated in one cycle at most; the others follow in the next."""

_TOPICS_SECONDS = 30.0
_SYNCS_SECONDS = 2.0
_LOOK_SECONDS = 1.0
_RIGHTS_SECONDS = 60.0
_NAMED = 1_000
_WINDOW_BYTES = 2 << 20


class TrackerOptions(msgspec.Struct, frozen=True):
    """Says how the tracker works. ``interval``: seconds between the starts of two cycles.

    ``max_records``: records of one partition compared at most before a bounded answer is given. ``new_groups`` False:
    only groups that were there at the first cycle are tracked.
    """

    interval: float = 5.0
    max_records: int = 50_000
    new_groups: bool = True


class Tracker:
    """Tracks one flow. ``positions``: what is on record; ``looked``: when each group's commits were read (epoch ms).

    ``exact_at``: as of when all of a group's positions were on record exactly (epoch ms). ``cycled``: when the last
    cycle ended (epoch ms), 0 before the first.

    Several may run: what they write agrees. ``open`` is to be called before the first cycle, and again after somebody
    else may have written. ``leads``: ``run`` is at it, so that what is known is fresh. ``terms``: so often has it begun
    to lead.
    """

    def __init__(
        self,
        flow: Flow,
        source: WireCluster,
        target: WireCluster,
        *,
        log: CheckpointLog,
        syncs: FollowedSyncs,
        options: TrackerOptions,
    ) -> None:
        self.flow = flow
        self.options = options
        self.positions: dict[str, dict[TopicPartition, Position]] = {}
        self.looked: dict[str, int] = {}
        self.exact_at: dict[str, int] = {}
        self.cycled = 0
        self.terms = 0
        self._lead: Callable[[], bool] = lambda: True
        self._at_work = False
        self._source, self._target, self._log, self._syncs = source, target, log, syncs
        self._own_group = checkpoint_group(flow.source, flow.target)
        self._agenda = Agenda(options.interval)
        self._commits: dict[str, GroupOffsets] = {}
        self._targets: dict[str, str | None] = {}
        self._ends: dict[TopicPartition, tuple[int, tuple[int, int] | None]] = {}
        self._partitions: dict[TopicPartition, TopicPartition] = {}
        self._topics_due = 0.0
        self._following: asyncio.Future[None] | None = None
        self._history = False
        self._records = True
        self._again = 0.0
        self._troubles = Troubles()
        self._groups = SourceGroups(source, takes=flow.groups.matches, new=options.new_groups)
        self._of_groups: Aside[str, GroupOffsets] = Aside(partial(committed_offsets, source))
        self._of_logs: Aside[TopicPartition, LogRange] = Aside(partial(log_ranges, source))
        self._of_ends: Aside[TopicPartition, OffsetAt] = Aside(
            lambda partitions: list_offsets(source, dict.fromkeys(partitions, LATEST))
        )

    @property
    def leads(self) -> bool:
        """Says whether what is known is kept fresh here, and nobody else does it."""
        return self._at_work and self._lead()

    def source_end(self, place: TopicPartition) -> int:
        """Gives a source partition's end as last read, by the target's name for it; -1 where it is not known."""
        return self._ends[place][0] if place in self._ends else -1

    @property
    def tracked(self) -> Collection[str]:
        """Names the groups that have positions on record, or are to get them."""
        return self._commits.keys() & {*self.positions, *self._agenda.groups()}

    @property
    def open_groups(self) -> frozenset[str]:
        """Names the groups that have positions which are not on record exactly."""
        return frozenset(self._agenda.groups())

    @property
    def open_positions(self) -> int:
        """Is how many positions are not on record exactly."""
        return self._agenda.open

    async def open(self) -> None:
        """Makes the topic if there is none, and reads what is on record."""
        await self._log.open()
        exact = await self._log.read()
        self.positions = exact.positions
        self._ends = {place: (end.end, end.sync) for place, end in exact.ends.items()}
        self._commits.clear()

    async def run(self, lead: Callable[[], bool] = lambda: True) -> None:
        """Works until cancelled whenever ``lead`` says so; what goes wrong is logged once, and tried again."""
        self._lead = lead
        try:
            await self._run()
        finally:
            await self.close()

    async def _run(self) -> None:
        opened = False
        while True:
            started = time.monotonic()
            if not self._lead():
                opened = self._at_work = False
                await asyncio.sleep(min(self.options.interval, _LOOK_SECONDS))
                continue
            try:
                self.terms += not opened
                if not opened or (not self._records and started >= self._again):
                    await self._try_open()
                    opened = True
                await self.cycle()
                self._at_work = True
            except FailoverError as error:
                hint = f"; {error.hint}" if error.hint else ""
                self._troubles.tell(
                    "cycle", f"exact checkpoints: {error.message}{hint}; tried again", over="exact checkpoints: go on"
                )
            except Exception:  # noqa: BLE001 - a defect here is no reason to end the copying
                _log.exception("exact checkpoints: unexpected error; tried again")
            else:
                self._troubles.only(self._partly())
            spent = time.monotonic() - started
            # However long a cycle takes, this is no more than half of the work of one core.
            await asyncio.sleep(max(self.options.interval - spent, min(spent, 60.0)))

    async def _try_open(self) -> None:
        """Opens; without the rights for the topic positions are known here alone, and it is tried again later."""
        try:
            await self.open()
            self._records = True
        except NotAuthorized as error:
            self._records = False
            self._again = time.monotonic() + _RIGHTS_SECONDS
            self._troubles.tell(
                "rights",
                f"exact checkpoints: {error.message}; {error.hint}; nothing is kept for a plan until then",
                over="exact checkpoints: are kept now",
            )

    async def close(self) -> None:
        """Gives up what is asked beside."""
        await self._groups.close()
        for aside in (self._of_groups, self._of_logs, self._of_ends):
            await aside.close()
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def cycle(self) -> None:
        """Looks once and writes what changed. Raises ``FailoverError`` where it could not be done at all."""
        groups = await self._groups.names()
        for gone in self._commits.keys() - self._groups.listed:
            self._forget(gone)
        at = _now_ms()
        answers = await self._of_groups(groups)
        unread = self._take_commits(answers, at)
        await self._follow()
        due = self._agenda.due(time.monotonic(), AT_ONCE)
        changed, exact = await self._translate(due) if due else ({}, frozenset())
        ends, ends_older = await self._source_ends()
        await self._record(changed, ends, (unread, ends_older), at)
        now = time.monotonic()
        for wanted in due:
            self._agenda.asked(wanted, now, exact=wanted in exact)
        self._note_exact(unread)

    def _note_exact(self, unread: Collection[str]) -> None:
        """Notes which groups are on record exactly now; positions of those without mirrored topics are none."""
        late = {*unread, *self._agenda.groups()}
        self.exact_at.update(
            (group, self.looked[group]) for group in self._commits if group in self.positions and group not in late
        )
        self.cycled = _now_ms()

    # -- what groups committed -------------------------------------------------------------------

    def _forget(self, group: str) -> None:
        self._commits.pop(group)
        self._agenda.drop(group)
        self.looked.pop(group, None)
        self.exact_at.pop(group, None)

    def _take_commits(self, answers: Mapping[str, GroupOffsets | Fault], at: int) -> list[str]:
        """Compares what was read with what is on record; names the groups that gave no answer."""
        unread = []
        open_groups = set(self._agenda.groups())
        for group, offsets in answers.items():
            if isinstance(offsets, Fault):
                unread.append(group)
                continue
            self.looked[group] = at
            if self._commits.get(group) == offsets and group not in open_groups:
                continue
            mine = {}
            for source, commit in offsets.items():
                topic = self._target_of(source.topic)
                if topic is not None and isinstance(commit, Commit):
                    mine[TopicPartition(topic, source.partition)] = (source, commit)
            if not mine:
                self._groups.idle(group)
            self._commits[group] = offsets
            self._agenda.look(group, mine, self.positions.get(group, {}), at)
        return unread

    def _target_of(self, topic: str) -> str | None:
        if topic not in self._targets:
            mirrored = self.flow.topics.should_replicate(topic)
            self._targets[topic] = self.flow.target_topic(topic) if mirrored else None
        return self._targets[topic]

    async def _follow(self) -> None:
        """Reads the new offset syncs; once all were read before, later ones may be late: an older state is as true."""
        if self._following is None:
            self._following = asyncio.ensure_future(self._syncs.follow())
        await asyncio.wait({self._following}, timeout=_SYNCS_SECONDS if self._history else None)
        if not self._following.done():
            return
        following, self._following = self._following, None
        try:
            following.result()
            self._history = True
        except FailoverError as error:
            if not self._history:
                raise
            self._troubles.tell("syncs", f"exact checkpoints: {error.message}; going on with what is known")

    # -- translating -----------------------------------------------------------------------------

    async def _translate(
        self, due: Sequence[Wanted]
    ) -> tuple[dict[tuple[str, TopicPartition], Position], frozenset[Wanted]]:
        """Translates positions; gives those whose answer is another than the one on record, and which are exact."""
        places = list(dict.fromkeys(wanted.place for wanted in due))
        sources = list(dict.fromkeys(wanted.source for wanted in due))
        topics = (await self._target.metadata({place.topic for place in places})).topics
        target_logs = _ranges(await log_ranges(self._target, places))
        source_logs = _ranges(await self._of_logs(sources))
        at = _now_ms()
        syncs = {source: known for source in sources if (known := self._syncs.of(source)) is not None}
        evidence = Evidence(syncs, source_logs, target_logs)
        questions = {each: Question(each.group, each.place, each.source, each.commit.offset, None) for each in due}
        found = await self._answer(list(questions.values()), evidence)
        changed: dict[tuple[str, TopicPartition], Position] = {}
        exact: set[Wanted] = set()
        for wanted, question in questions.items():
            log = target_logs.get(wanted.place)
            before = self.positions.get(wanted.group, {}).get(wanted.place)
            position = None
            if log is not None:
                end = source_logs.get(wanted.source)
                seen = Seen(log, topics[wanted.place.topic].topic_id_text or "", None if end is None else end.end, at)
                position = settled(wanted, found.get(question), seen, before)
            if position is not None and position.known.precision == Precision.EXACT:
                exact.add(wanted)
            if position is not None and differs(position, before):
                changed[wanted.group, wanted.place] = position
        return changed, frozenset(exact)

    async def _answer(self, questions: Sequence[Question], evidence: Evidence) -> Answers:
        """Asks the evidence in a thread: comparing many records takes longer than copying may wait."""
        loop = asyncio.get_running_loop()
        refine = record_comparison(
            _Windows(self._source, loop),
            _Windows(self._target, loop),
            evidence,
            lambda *_: None,
            max_records=self.options.max_records,
        )
        return await asyncio.wrap_future(in_background(partial(answer, questions, evidence, refine)))

    # -- what goes on record ---------------------------------------------------------------------

    async def _source_ends(self) -> tuple[dict[TopicPartition, SourceEnd], list[TopicPartition]]:
        """Gives the source partitions that grew or got a sync, by the target's names, and those without an answer."""
        if time.monotonic() >= self._topics_due:
            topics = (await self._source.metadata(None)).topics
            self._partitions = {
                TopicPartition(name, number): TopicPartition(target, number)
                for name, topic in topics.items()
                if (target := self._target_of(name)) is not None
                for number in topic.partitions
            }
            self._topics_due = time.monotonic() + _TOPICS_SECONDS
        found = await self._of_ends(self._partitions) if self._partitions else {}
        at = _now_ms()
        ends: dict[TopicPartition, SourceEnd] = {}
        older = []
        for source, end in found.items():
            place = self._partitions[source]
            if isinstance(end, Fault):
                older.append(place)
            elif self._ends.get(place) != (state := (end.offset, self._syncs.newest(source))):
                ends[place] = SourceEnd(end=state[0], at=at, sync=state[1])
        return ends, older

    async def _record(
        self,
        changed: Mapping[tuple[str, TopicPartition], Position],
        ends: Mapping[TopicPartition, SourceEnd],
        older: tuple[Collection[str], Collection[TopicPartition]],
        at: int,
    ) -> None:
        """Writes what changed, and last that all of it holds as of ``at``."""
        records = [record_of(position.checkpoint(*where), position.known) for where, position in changed.items()]
        records += [record_of(end_record(self._own_group, place, end), end) for place, end in ends.items()]
        # What is written now counts, so the groups that stay behind are found as if it were written already.
        recorded = {group: dict(self.positions.get(group, {})) for group, _ in changed}
        for (group, place), position in changed.items():
            recorded[group][place] = position
        unread, ends_older = older
        names = sorted({*unread, *self._agenda.behind({**self.positions, **recorded})})
        whole = len(names) <= _NAMED and len(ends_older) <= _NAMED
        beat = Beat(
            at=at,
            older=tuple(names) if whole else (),
            ends_older=tuple(sorted(ends_older)) if whole else (),
            whole=whole,
        )
        known = self.positions.keys() | recorded.keys()
        count = sum(len(recorded.get(group, self.positions.get(group, {}))) for group in known)
        records.append(record_of(beat_record(self._own_group, self._log.place.topic, len(known), count), beat))
        if self._records:
            await self._log.write(records)
        self.positions.update(recorded)
        self._ends.update((place, (end.end, end.sync)) for place, end in ends.items())

    def _partly(self) -> list[str]:
        """Tells which brokers give no answer; names what is wrong for as long as it is."""
        present = [] if self._records else ["rights"]
        if late := self._of_groups.late:
            present.append("groups")
            shown = ", ".join(sorted(late)[:3]) + (f" and {len(late) - 3} more" if len(late) > 3 else "")
            self._troubles.tell(
                "groups",
                f"exact checkpoints: {len(late)} groups of {self._source.alias} cannot be asked ({shown});"
                " the others go on",
                over="exact checkpoints: all groups answer again",
            )
        if self._of_ends.late:
            present.append("ends")
            self._troubles.tell(
                "ends",
                f"exact checkpoints: the ends of {len(self._of_ends.late)} partitions of {self._source.alias} cannot be"
                " read; the others go on",
                over="exact checkpoints: all partitions answer again",
            )
        return present


class _Windows:
    """Reads windows for a thread, in the loop that the connections belong to."""

    def __init__(self, cluster: WireCluster, loop: asyncio.AbstractEventLoop) -> None:
        self._cluster = cluster
        self._loop = loop

    def windows(self, requests: Sequence[WindowRequest]) -> dict[WindowRequest, Window]:
        work = read_windows(self._cluster, requests, max_bytes=_WINDOW_BYTES)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _ranges(found: Mapping[TopicPartition, LogRange | Fault]) -> dict[TopicPartition, LogRange]:
    return {tp: log for tp, log in found.items() if isinstance(log, LogRange)}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
