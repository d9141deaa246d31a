"""The settings of ``replicate``: this tool's own, and those of MirrorMaker 2's clients that mean something here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, cast

import msgspec

from failover.config.duration import parse_duration, parse_iso_duration
from failover.config.flow import Config, FlowConfig
from failover.config.mm2 import client_properties, with_prefix
from failover.config.mm2_keys import SOURCE
from failover.config.settings import Setting, Settings
from failover.errors import ConfigError
from failover.kafka.tokens import SESSION_SECONDS
from failover.replication.batches import Limits
from failover.replication.flows import Restart
from failover.replication.reader import ReadSettings
from failover.replication.writer import WriteSettings

_MARK = "replicator.provenance.headers"
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class ReplicateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Says how one flow is replicated.

    ``buffer_bytes``: read and not yet acknowledged, all partitions together (``failover.replicator.buffer.memory``).
    ``rate_bytes``: read from the source a second, 0: no bound (``failover.replicator.rate.limit.bytes``).
    ``restart``: whether a partition that stands still is tried again, after ``restart_min`` to ``restart_max`` seconds.
    ``exactly_once`` required: a shard that cannot be fenced stands still.
    ``session``: seconds until a worker of a group that is not heard of loses its shards
    (``failover.replicator.session.timeout``).
    ``start``: where a partition begins of which nothing was ever copied; a number: at the first record that is no older
    than so many seconds then (Kafka: ``auto.offset.reset``, KIP-1106).
    ``lag_group``: positions are committed on the source, too (``failover.replicator.lag.group``).
    """

    buffer_bytes: int = 256 << 20
    rate_bytes: int = 0
    restart: Literal["never", "backoff"] = "backoff"
    restart_min: float = 1.0
    restart_max: float = 60.0
    exactly_once: Literal["required", "preferred"] = "preferred"
    lag_group: bool = False
    session: float = SESSION_SECONDS
    refresh_seconds: float = 600.0
    offset_lag_max: int = 100
    start: Literal["earliest", "latest"] | float = "earliest"
    read: ReadSettings = ReadSettings()
    write: WriteSettings = WriteSettings()


def read_options(config: Config, flow: FlowConfig) -> ReplicateOptions:
    """Reads a flow's options; raises ConfigError naming key, file and line."""
    own = config.failover
    consumer = Settings(client_properties(flow.connectors[SOURCE], "source", "consumer"))
    connector = flow.connectors[SOURCE]
    # Kafka Connect: a connector's own settings of the worker's producer win over those of the worker.
    overridden = with_prefix(connector, "producer.override.")
    producer = Settings(client_properties(connector, "target", "producer") | overridden)
    restart = read_restart(config)
    isolation = flow.isolation_level
    if isolation not in ("read_committed", "read_uncommitted"):
        raise _wrong(consumer["isolation.level"], "write read_committed or read_uncommitted")
    buffer_bytes = _size(own, "replicator.buffer.memory", 256 << 20)
    if not buffer_bytes:
        raise _wrong(own["replicator.buffer.memory"], "write more than 0: without any nothing can be read")
    partition_bytes = _integer(consumer, "max.partition.fetch.bytes", 1 << 20)
    request_bytes = _integer(producer, "max.request.size", 4 << 20)
    return ReplicateOptions(
        buffer_bytes=buffer_bytes,
        rate_bytes=_size(own, "replicator.rate.limit.bytes", 0),
        restart=restart.kind,
        restart_min=restart.least,
        restart_max=restart.most,
        exactly_once=cast(
            Literal["required", "preferred"], _choice(own, "replicator.exactly.once", ("preferred", "required"))
        ),
        lag_group=own.boolean("replicator.lag.group") if "replicator.lag.group" in own else False,
        session=_session(own),
        refresh_seconds=_refresh(flow),
        offset_lag_max=flow.offset_lag_max,
        start=_start(consumer),
        read=ReadSettings(
            fetch_max_bytes=_integer(consumer, "fetch.max.bytes", 8 << 20),
            max_partition_fetch_bytes=partition_bytes,
            fetch_max_wait_ms=_integer(consumer, "fetch.max.wait.ms", 500),
            fetch_min_bytes=_integer(consumer, "fetch.min.bytes", 1),
            read_committed=isolation == "read_committed",
            lane_bytes=max(4 << 20, 4 * partition_bytes),
            limits=Limits(batch_bytes=min(512 << 10, request_bytes)),
            mark=own.boolean(_MARK) if _MARK in own else False,
        ),
        write=WriteSettings(request_bytes=request_bytes),
    )


def _start(consumer: Settings) -> Literal["earliest", "latest"] | float:
    if "auto.offset.reset" not in consumer:
        return "earliest"
    reset = consumer.text("auto.offset.reset").lower()
    if reset == "earliest":
        return "earliest"
    if reset == "latest":
        return "latest"
    kind, _, length = reset.partition(":")
    age = parse_iso_duration(length) if kind == "by_duration" else None
    if age is None:
        raise _wrong(consumer["auto.offset.reset"], "write earliest, latest or by_duration:PT24H")
    return age


def read_restart(config: Config) -> Restart:
    """Reads how what stands still is tried again; raises ConfigError."""
    own = config.failover
    return Restart(
        cast(Literal["never", "backoff"], _choice(own, "replicator.restart", ("backoff", "never"))),
        _seconds(own, "replicator.restart.min", 1.0),
        _seconds(own, "replicator.restart.max", 60.0),
    )


def _refresh(flow: FlowConfig) -> float:
    """Gives the seconds between two looks at the topics, infinity where they are switched off (MM2: Scheduler)."""
    seconds = flow.refresh_topics_interval_seconds
    if not flow.connectors[SOURCE].boolean("refresh.topics.enabled") or seconds < 0:
        return float("inf")
    return float(seconds)


def _integer(settings: Settings, key: str, default: int) -> int:
    if key not in settings:
        return default
    value = settings.integer(key)
    if value < 0:
        raise _wrong(settings[key], "write a number that is not negative")
    return value


def _size(settings: Mapping[str, Setting], key: str, default: int) -> int:
    setting = settings.get(key)
    if setting is None:
        return default
    match = re.fullmatch(r"([0-9]+)\s*([kmg]?)(?:i?b)?", setting.trimmed.lower())
    if match is None:
        raise _wrong(setting, "write bytes, or a number with k, m or g behind it")
    return int(match[1]) * _UNITS[match[2]]


def _seconds(settings: Mapping[str, Setting], key: str, default: float) -> float:
    setting = settings.get(key)
    if setting is None:
        return default
    seconds = parse_duration(setting.trimmed.replace(" ", ""))
    if seconds is None:
        raise _wrong(setting, "write a duration such as 30s or 5m")
    return seconds


def _session(own: Mapping[str, Setting]) -> float:
    seconds = _seconds(own, "replicator.session.timeout", SESSION_SECONDS)
    if seconds < 1:
        raise _wrong(own["replicator.session.timeout"], "write 6s or more, unless the target's brokers allow less")
    return seconds


def _choice(settings: Mapping[str, Setting], key: str, choices: tuple[str, ...]) -> str:
    """Gives the setting's value, the first choice where there is none."""
    setting = settings.get(key)
    if setting is None:
        return choices[0]
    if setting.trimmed.lower() not in choices:
        raise _wrong(setting, f"write {' or '.join(choices)}")
    return setting.trimmed.lower()


def _wrong(setting: Setting, hint: str) -> ConfigError:
    return ConfigError(f"{setting.described()}: {setting.shown!r} cannot be used", hint=hint)
