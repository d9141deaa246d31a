"""Puts the exact checkpointer of a flow together: inside ``replicate``, and by itself beside MirrorMaker 2."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import msgspec

from failover.config.clients import ClientSettings
from failover.config.duration import parse_duration
from failover.config.flow import Config, FlowConfig, SelectedFlow
from failover.config.mm2_keys import CHECKPOINT
from failover.errors import ConfigError, Refused
from failover.inventory.flow import Flow, flow_of
from failover.kafka.tokens import Tokens
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.groups import describe_groups
from failover.kafka.wire.topics import NewTopic
from failover.mm2.internal_topics import checkpoint_group
from failover.model.groups import GroupType
from failover.model.names import Fault
from failover.replication.exact_topic import CheckpointLog, checkpoints_topic, exact_topic
from failover.replication.group_sync import GroupSync
from failover.replication.internal_topic import ensure_topic
from failover.replication.mm2_checkpoints import Mm2Checkpoints
from failover.replication.repeating import repeat
from failover.replication.shards import LEADER, TOKENS
from failover.replication.sync_columns import FollowedSyncs
from failover.replication.tracker import Tracker, TrackerOptions

_log = logging.getLogger(__name__)

MAX_RECORDS = 50_000
"""Records of a partition compared at most in one cycle (``failover.exact.max.records``)."""

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

_LEAST_SECONDS = 0.1


class CheckpointOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Says what is done beside tracking. Topics and intervals (seconds) are None for what is switched off."""

    tracker: TrackerOptions
    exact: NewTopic | None
    checkpoints: NewTopic
    emit_seconds: float | None
    sync_seconds: float | None


def checkpoint_options(config: Config, flow_config: FlowConfig, flow: Flow) -> CheckpointOptions:
    """Reads a flow's options; raises ConfigError naming key, file and line.

    ``failover.checkpoint.enabled`` (true) switches all of it off, ``.interval.seconds`` (5) is the tracker's. The
    others are MM2's: a negative interval switches off as it does there.
    """
    own, connector = config.failover, flow_config.connectors[CHECKPOINT]
    interval = 5.0
    if (setting := own.get("checkpoint.interval.seconds")) is not None:
        found = parse_duration(setting.trimmed)
        if found is None or found <= 0:
            raise ConfigError(f"{setting.described()}: {setting.shown!r} cannot be used", hint="write seconds, as in 5")
        interval = found
    enabled = own.boolean("checkpoint.enabled") if "checkpoint.enabled" in own else True
    most = own.integer("exact.max.records") if "exact.max.records" in own else MAX_RECORDS
    return CheckpointOptions(
        tracker=TrackerOptions(interval, most, new_groups=connector.boolean("refresh.groups.enabled")),
        exact=exact_topic(flow.internal, connector) if enabled else None,
        checkpoints=checkpoints_topic(flow.internal, connector),
        emit_seconds=_every(flow_config.emit_checkpoints_enabled, flow_config.emit_checkpoints_interval_seconds),
        sync_seconds=_every(flow_config.sync_group_offsets_enabled, flow_config.sync_group_offsets_interval_seconds),
    )


def tracker_of(flow: Flow, source: WireCluster, target: WireCluster, options: CheckpointOptions) -> Tracker:
    """Makes a flow's tracker; ``options`` must have a topic for it."""
    assert options.exact is not None
    on_source = flow.internal.offset_syncs_on == flow.source
    return Tracker(
        flow,
        source,
        target,
        log=CheckpointLog(target, options.exact),
        syncs=FollowedSyncs(source if on_source else target, flow.internal.offset_syncs),
        options=options.tracker,
    )


class Checkpointing(NamedTuple):
    """Is the work that goes on, each piece to be run until it is cancelled, and who does it.

    ``tracker``, ``checkpoints``: None where they are switched off. ``leads``: whether this process is the one of
    several that works.
    """

    work: Sequence[Work]
    tracker: Tracker | None
    checkpoints: Mm2Checkpoints | None
    leads: Callable[[], bool]


def beside_copying(
    flow: Flow,
    source: WireCluster,
    target: WireCluster,
    options: CheckpointOptions,
    leads: Callable[[], bool] = lambda: True,
) -> Checkpointing:
    """Gives the work of MirrorMaker 2's MirrorCheckpointConnector for ``replicate``, to be run beside the copying.

    It is done while this process ``leads``. A dedicated MirrorMaker 2 of the flow is known to be stopped, so older
    checkpoints hinder nobody.
    """
    if options.exact is None:
        return Checkpointing((), None, None, leads)
    checkpoints: Mm2Checkpoints | None = None
    tracker = tracker_of(flow, source, target, options)
    name = f"{flow.source}->{flow.target}"
    work: list[Work] = [partial(tracker.run, leads)]
    if options.emit_seconds is not None:
        checkpoints = Mm2Checkpoints(tracker, target, options.checkpoints, stopped=True)
        work.append(partial(repeat, checkpoints.write, seconds=options.emit_seconds, what=f"checkpoints of {name}"))
    if options.sync_seconds is not None:
        sync = GroupSync(tracker, target)
        work.append(partial(repeat, sync.sync, seconds=options.sync_seconds, what=f"group offset sync of {name}"))
    return Checkpointing(work, tracker, checkpoints, leads)


async def checkpoint(
    config: Config,
    flow_config: FlowConfig,
    *,
    source_silence: float,
    target_silence: float,
    write_mm2: bool = False,
    opened: Callable[[Checkpointing], None] = lambda _: None,
) -> None:
    """Tracks one flow until cancelled, whenever this process leads; ``opened`` is given what does it.

    ``source_silence``, ``target_silence``: seconds without an answer after which a broker counts as lost.
    ``write_mm2``: also writes MirrorMaker 2's checkpoints while nobody else does. Raises ``ConfigError``,
    ``ClusterError`` where a cluster cannot be reached at the start, ``Refused`` where the tracker is switched off.
    """
    flow = flow_of(config, SelectedFlow(flow_config, flow_config.source.alias, flow_config.target.alias))
    options = checkpoint_options(config, flow_config, flow)
    if options.exact is None:
        raise Refused("failover.checkpoint.enabled is false", hint="remove the setting, or leave this command")
    name = f"{flow.source}->{flow.target}"
    async with contextlib.AsyncExitStack() as stack:
        settings = flow_config.client("target", "admin")
        target = await stack.enter_async_context(WireCluster(settings, alias=flow.target, silence=target_silence))
        source = await stack.enter_async_context(
            WireCluster(flow_config.client("source", "admin"), alias=flow.source, silence=source_silence)
        )
        lead = await _election(flow, settings, target, options, stack)
        tracker = tracker_of(flow, source, target, options)
        work: list[Work] = [partial(tracker.run, lead)]
        checkpoints: Mm2Checkpoints | None = None
        if write_mm2:
            checkpoints = Mm2Checkpoints(tracker, target, options.checkpoints)
            seconds = options.emit_seconds or options.tracker.interval
            work.append(partial(repeat, checkpoints.write, seconds=seconds, what=f"checkpoints of {name}"))
        opened(Checkpointing(work, tracker, checkpoints, lead))
        async with asyncio.TaskGroup() as tasks:
            for each in work:
                tasks.create_task(each())


async def _election(
    flow: Flow,
    settings: ClientSettings,
    target: WireCluster,
    options: CheckpointOptions,
    stack: contextlib.AsyncExitStack,
) -> Callable[[], bool]:
    """Joins the election; gives what says whether this process leads. Without the rights for it, it always does."""
    shards = shards_topic(flow, options)
    group = checkpoint_group(flow.source, flow.target)
    fault, _ = await ensure_topic(target, shards)
    if fault is None:
        info = (await describe_groups(target, [group], {group: GroupType.CLASSIC}))[group]
        fault = info.fault
        if fault is None and info.operations is not None and "READ" not in info.operations:
            fault = Fault(30, "GROUP_AUTHORIZATION_FAILED", f"no READ on group {group}")
    if fault is not None:
        _log.warning(
            "nobody can be elected by topic %s and group %s on %s: %s; going on alone, so no second one may run. Grant"
            " READ on both, and CREATE on the topic if it is to be made",
            shards.name,
            group,
            flow.target,
            fault,
        )
        return lambda: True
    tokens = Tokens(settings, topic=shards.name, group=group)
    tokens.start()
    stack.push_async_callback(asyncio.to_thread, tokens.close)
    return Leading(tokens, f"{flow.source}->{flow.target}")


def shards_topic(flow: Flow, options: CheckpointOptions) -> NewTopic:
    """Gives the topic whose partitions are tokens: 0 leads, the others are the shards of ``replicate``."""
    factor = options.checkpoints.replication_factor
    return NewTopic(flow.internal.failover_shards, TOKENS, factor, {"cleanup.policy": "delete"})


class Leading:
    """Says whether this process leads, and logs when that changes."""

    def __init__(self, tokens: Tokens, name: str) -> None:
        self._tokens = tokens
        self._name = name
        self._leads: bool | None = None
        self._trouble = ""

    def __call__(self) -> bool:
        leads = self._tokens.holds(LEADER)
        if leads is not self._leads and (leads or self._leads):
            _log.info("exact checkpoints of %s: %s", self._name, "this one leads" if leads else "another one leads now")
        if not leads and self._tokens.trouble != self._trouble:
            self._trouble = self._tokens.trouble
            if self._trouble:
                _log.warning("exact checkpoints of %s: nobody can be elected: %s", self._name, self._trouble)
        self._leads = leads
        return leads


def _every(enabled: bool, seconds: float) -> float | None:
    return max(float(seconds), _LEAST_SECONDS) if enabled and seconds >= 0 else None
