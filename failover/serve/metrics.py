"""The metrics page of ``replicate``: MirrorMaker 2's names as Strimzi's rules export them, what guides query, our own.

Label values that JMX would quote (Kafka: Sanitizer.jmxSanitize) are quoted under the exported names, since existing
dashboards ask for them so.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from failover import __version__
from failover.mm2.internal_topics import lag_group
from failover.replication.snapshot import FlowNow, PartitionNow
from failover.replication.tally import Spread
from failover.serve.board import SOURCE, Board, Connector, State
from failover.serve.checkpoint_metrics import add_checkpoints, flow_labels
from failover.serve.exposition import Page, Sample, labels
from failover.serve.rates import Rates

_PLAIN = re.compile(r"[\w\-%. \t]*")
_MIRROR = "kafka_connect_mirror_mirrorsourceconnector"
_CHECKPOINTS = "kafka_connect_mirror_mirrorcheckpointconnector"
_STATES = {
    State.RUNNING: "running",
    State.PAUSED: "paused",
    State.STOPPED: "stopped",
    State.FAILED: "failed",
    State.UNASSIGNED: "unassigned",
    State.RESTARTING: "restarting",
}
_COUNTED = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")


class _Texts(NamedTuple):
    """Is the label texts of one partition, under the different names."""

    mirror: str
    fetch: str
    lag: str
    own: str


class Metrics:
    """Renders the page for a board; ``clock`` gives seconds since 1970."""

    def __init__(self, board: Board, clock: Callable[[], float] = time.time) -> None:
        self._board = board
        self._clock = clock
        self._texts: dict[tuple[str, str, PartitionKey], _Texts] = {}
        self._rates: dict[str, Rates[PartitionKey]] = {}

    def render(self) -> str:
        """Gives the page without what concerns the process as a whole."""
        now = self._clock()
        page = Page()
        page.add("failover_build_info", "gauge", "This tool.", [(labels({"version": __version__}), 1)])
        looks = {name: entry.look(now) for name, entry in self._board.flows.items()}
        for name, entry in self._board.flows.items():
            seen = looks[name]
            up = 1 if (seen is not None or entry.heartbeat is not None) and not entry.failure else 0
            where = labels({"source": entry.config.source.alias, "target": entry.config.target.alias})
            page.add(
                "failover_flow_up", "gauge", "1 while a flow is at work, 0 where it failed or waits.", [(where, up)]
            )
            if seen is not None:
                self._flow(page, name, entry.began, seen)
            beat = entry.heartbeat() if entry.heartbeat is not None else seen.heartbeat if seen is not None else None
            _heartbeat(page, where, beat)
        _connectors(page, self._board.connectors.values())
        for each in self._board.connectors.values():
            seen = looks[each.flow.name]
            if seen is not None:
                _task(page, each, seen)
        return page.render()

    def _flow(self, page: Page, name: str, began: float, seen: FlowNow) -> None:
        rates = self._rates.setdefault(name, Rates(began))
        growth = rates.take(seen.at, {_key(each): (each.copied, each.copied_bytes) for each in seen.partitions})
        texts = [self._text(seen, each) for each in seen.partitions]
        mirror = [text.mirror for text in texts]
        for suffix, said, values in (
            ("record_count", "Records acknowledged by the target.", [each.copied for each in seen.partitions]),
            (
                "record_rate",
                "Records a second, over the last minute.",
                [growth[_key(each)][0] for each in seen.partitions],
            ),
            (
                "byte_count",
                "Bytes of batches acknowledged by the target.",
                [each.copied_bytes for each in seen.partitions],
            ),
            ("byte_rate", "Bytes a second, over the last minute.", [growth[_key(each)][1] for each in seen.partitions]),
        ):
            page.add(f"{_MIRROR}_{suffix}", "gauge", said, zip(mirror, values, strict=True))
        _spreads(
            page,
            f"{_MIRROR}_record_age_ms",
            "Age of a batch's newest record when it was read",
            mirror,
            [each.age for each in seen.partitions],
        )
        _spreads(
            page,
            f"{_MIRROR}_replication_latency_ms",
            "Age of a batch's newest record when the target had it",
            mirror,
            [each.latency for each in seen.partitions],
        )
        lags = [each.lag for each in seen.partitions]
        said = "Records of the source that are not copied yet."
        for metric, place in (
            ("kafka_consumer_fetch_manager_records_lag", [text.fetch for text in texts]),
            ("kafka_consumer_lag", [text.lag for text in texts]),
            ("failover_lag_records", [text.own for text in texts]),
        ):
            page.add(metric, "gauge", said, zip(place, lags, strict=True))
        page.add(
            "failover_lag_seconds",
            "gauge",
            "How old the oldest record may be that is not copied yet.",
            [(text.own, each.seconds) for text, each in zip(texts, seen.partitions, strict=True)],
        )
        _own(page, seen)
        if seen.checkpoints is not None:
            add_checkpoints(page, seen.source, seen.target, seen.checkpoints, seen.at)
            _spreads(
                page,
                f"{_CHECKPOINTS}_checkpoint_latency_ms",
                "Time from the reading of a commit to its checkpoint's being there",
                [flow_labels(seen.source, seen.target)],
                [seen.checkpoints.latency],
            )

    def _text(self, seen: FlowNow, part: PartitionNow) -> _Texts:
        key = (seen.source, seen.target, _key(part))
        texts = self._texts.get(key)
        if texts is None:
            ends = {"source": seen.source, "target": seen.target}
            source = {"topic": part.source.topic, "partition": part.source.partition}
            client = jmx(f"{seen.source}->{seen.target}|MirrorSourceConnector-0|replication-consumer")
            texts = self._texts[key] = _Texts(
                labels({**ends, "topic": part.target.topic, "partition": part.target.partition}),
                labels({"clientid": client, **source}),
                labels({"group": lag_group(seen.target), **source}),
                labels({**ends, **source}),
            )
        return texts


PartitionKey = tuple[str, int]


def _key(part: PartitionNow) -> PartitionKey:
    return part.source


def jmx(value: str) -> str:
    """Gives a value as JMX shows it: in quotation marks where it holds characters that are special there."""
    if _PLAIN.fullmatch(value):
        return value
    escaped = "".join(f"\\{char}" if char in '\\"*?' else "\\n" if char == "\n" else char for char in value)
    return f'"{escaped}"'


def _spreads(page: Page, name: str, said: str, where: Sequence[str], spreads: Sequence[Spread]) -> None:
    for suffix, which, values in (
        ("", "the last one", [each.last for each in spreads]),
        ("_min", "least in the last minute", [each.least for each in spreads]),
        ("_max", "most in the last minute", [each.most for each in spreads]),
        ("_avg", "mean of the last minute", [each.mean for each in spreads]),
    ):
        page.add(name + suffix, "gauge", f"{said}, milliseconds: {which}.", zip(where, values, strict=True))


def _heartbeat(page: Page, where: str, beat: int | None) -> None:
    if beat is not None:
        said = "The last heartbeat written"
        page.add(
            "kafka_heartbeat_timestamp_seconds", "gauge", f"{said}, in MILLISECONDS despite the name.", [(where, beat)]
        )
        page.add(
            "failover_heartbeat_timestamp_seconds", "gauge", f"{said}, seconds since 1970.", [(where, beat / 1000)]
        )


def _own(page: Page, seen: FlowNow) -> None:
    ends = {"source": seen.source, "target": seen.target}
    where = labels(ends)
    closed = "stopped" if seen.halted else "starting"
    states = {"copying": 0, "starting": 0, "standing_still": 0, "stopped": 0}
    for part in seen.partitions:
        states["copying" if part.open and not part.reason else "standing_still" if part.reason else closed] += 1

    def add(name: str, kind: str, said: str, *samples: Sample) -> None:
        page.add(f"failover_{name}", "counter" if kind == "counter" else "gauge", said, samples)

    def each(label: str, values: Iterable[tuple[object, float]]) -> list[Sample]:
        return [(labels({**ends, label: key}), value) for key, value in values]

    share = seen.share
    add("worker_shards", "gauge", "Shards of the flow that this process copies, of 64.", (where, len(share.shards)))
    said = "1 where this process does what only one of several workers does."
    add("worker_leader", "gauge", said, (where, int(share.leader)))
    named = labels({**ends, "worker": share.worker, "group": share.group})
    add("worker_info", "gauge", "Always 1; names the worker, and the group by which it shares the flow.", (named, 1))
    add("rpo_records", "gauge", "Records that would be lost with the source.", (where, seen.rpo_records))
    add("rpo_seconds", "gauge", "How far back what would be lost with the source reaches.", (where, seen.rpo_seconds))
    add("partitions", "gauge", "Partitions to be copied.", *each("state", states.items()))
    add("records_read_total", "counter", "Records read from the source.", (where, seen.polled))
    add("records_total", "counter", "Records acknowledged by the target.", (where, seen.records))
    add("bytes_read_total", "counter", "Bytes of batches read from the source.", (where, seen.polled_bytes))
    add("bytes_total", "counter", "Bytes of batches acknowledged by the target.", (where, seen.bytes))
    add(
        "batches_total",
        "counter",
        "Batches acknowledged by the target, by what was done to the source's bytes.",
        *each("path", ((path, seen.batches.get(path, 0)) for path in ("passed", "coalesced", "recoded"))),
    )
    add(
        "offsets_dropped_total",
        "counter",
        "Offsets of the source without a record for the target: transaction markers, aborted records, holes.",
        (where, seen.left_out),
    )
    add(
        "faults_total",
        "counter",
        "Times something stood in a partition's or a broker's way.",
        *((labels({**ends, "side": side, "code": code}), count) for (side, code), count in seen.faults.items()),
    )
    said = "When a cluster answered last, seconds since 1970."
    add("last_answer_timestamp_seconds", "gauge", said, *each("side", seen.heard.items()))
    add("buffer_used_bytes", "gauge", "Bytes read and not yet acknowledged.", (where, seen.buffer_used))
    written, refused, _ = seen.commits
    outcomes = (("written", written), ("refused", refused))
    add("position_writes_total", "counter", "Rounds of positions put on record.", *each("outcome", outcomes))
    if seen.copied_heartbeat is not None:
        said = "The newest heartbeat of the source that is copied, seconds since 1970."
        add("heartbeat_copied_timestamp_seconds", "gauge", said, (where, seen.copied_heartbeat / 1000))


def _connectors(page: Page, connectors: Iterable[Connector]) -> None:
    """Adds what a Connect worker tells of itself."""
    connectors = list(connectors)
    tasks = sum(each.tasks for each in connectors)
    worker = "kafka_connect_worker"
    for name, count in (("connector", len(connectors)), ("task", tasks)):
        page.add(f"{worker}_{name}_count", "gauge", f"Number of {name}s.", [("", count)])
    failed = sum(1 for each in connectors if each.state is State.FAILED)
    for name, count in (("attempts", len(connectors)), ("success", len(connectors) - failed), ("failure", failed)):
        page.add(f"{worker}_connector_startup_{name}_total", "counter", f"Connectors started: {name}.", [("", count)])
    for each in connectors:
        where = labels({"connector": jmx(each.name)})
        state = _STATES[each.state]
        said = "Tasks of a connector"
        page.add(f"{worker}_connector_total_task_count", "gauge", f"{said}.", [(where, each.tasks)])
        for name in _COUNTED:
            count = each.tasks if name == state else 0
            page.add(f"{worker}_connector_{name}_task_count", "gauge", f"{said}: {name}.", [(where, count)])
        task = labels({"connector": jmx(each.name), "task": 0, "status": state})
        page.add("kafka_connect_connector_status", "gauge", "1 for the state a connector is in.", [(task, 1)])


def _task(page: Page, connector: Connector, seen: FlowNow) -> None:
    """Adds what a task tells: whether it runs, and of a source connector's more."""
    exported = labels({"connector": jmx(connector.name), "task": 0})
    for name, state in (("running", State.RUNNING), ("pause", State.PAUSED)):
        said = f"1 while the task is {state.value.lower()}, else 0."
        share = float(connector.state is state)
        page.add(f"kafka_connect_connector_task_{name}_ratio", "gauge", said, [(exported, share)])
    if connector.kind == SOURCE:
        _source_task(page, exported, labels({"connector": connector.name, "task": 0}), seen)


def _source_task(page: Page, exported: str, plain: str, seen: FlowNow) -> None:
    ends = f"{seen.source}->{seen.target}"
    written, refused, took = seen.commits
    rounds = written + refused
    task = "kafka_connect_connector_task"
    for name, said, count in (
        ("poll", "Records read from the source.", seen.polled),
        ("write", "Records acknowledged by the target.", seen.records),
    ):
        page.add(f"kafka_connect_source_task_source_record_{name}_total", "counter", said, [(exported, count)])
        page.add(f"kafka_connect_source_record_{name}_total", "counter", said, [(plain, count)])
    said = "Records a batch for the target, mean of the last minute."
    page.add(f"{task}_batch_size_avg", "gauge", said, [(exported, seen.sizes.mean)])
    page.add("kafka_connect_batch_size_avg", "gauge", said, [(plain, seen.sizes.mean)])
    said = "Records a batch for the target, most in the last minute."
    page.add(f"{task}_batch_size_max", "gauge", said, [(exported, seen.sizes.most)])
    for name, value in (("avg", took.mean), ("max", took.most)):
        said = f"Time to put positions on record, milliseconds, {name} of the last minute."
        page.add(f"{task}_offset_commit_{name}_time_ms", "gauge", said, [(exported, value)])
    for name, value in (("success", written), ("failure", refused)):
        said = f"Share of position writes that were a {name}, 0 to 1."
        share = value / rounds if rounds else float(name == "success")
        page.add(f"{task}_offset_commit_{name}_percentage", "gauge", said, [(exported, share)])
    said = "Records read and not yet acknowledged."
    page.add("kafka_connect_source_task_source_record_active_count", "gauge", said, [(exported, seen.pending)])
    retries = sum(count for (side, _), count in seen.faults.items() if side == "target")
    said = "Times the target stood in the way of a partition or a broker, each tried again."
    page.add("kafka_connect_task_error_total_retries", "gauge", said, [(exported, retries)])
    consumer = labels({"clientid": jmx(f"{ends}|MirrorSourceConnector-0|replication-consumer")})
    producer = labels({"clientid": jmx(f"connector-producer-{ends}.MirrorSourceConnector-0")})
    fetched = "kafka_consumer_fetch_manager"
    page.add(f"{fetched}_records_consumed_total", "counter", "Records read from the source.", [(consumer, seen.polled)])
    for name in (f"{fetched}_bytes_consumed_total", "kafka_consumer_incoming_byte_total"):
        page.add(name, "counter", "Bytes of batches read from the source.", [(consumer, seen.polled_bytes)])
    said = "Bytes of batches acknowledged by the target."
    page.add("kafka_producer_outgoing_byte_total", "counter", said, [(producer, seen.bytes)])
    free = max(seen.buffer_size - seen.buffer_used, 0)
    page.add("kafka_producer_buffer_available_bytes", "gauge", "Room for what is read.", [(producer, free)])
    page.add(
        "kafka_producer_buffer_total_bytes", "gauge", "Room for what is read, in all.", [(producer, seen.buffer_size)]
    )
