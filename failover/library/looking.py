"""Looks at a flow's two clusters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from failover.library.flows import Configuration, MirrorFlow, one_flow
from failover.model.names import TopicPartition
from failover.model.snapshot import Snapshot
from failover.model.translated import TranslatedOffset

if TYPE_CHECKING:
    from failover.inventory.by_time import Times
    from failover.inventory.selection import Selection
    from failover.kafka.port import Cluster


def take_snapshot(
    flow: MirrorFlow | Configuration,
    *,
    groups: Collection[str] = (),
    source_down: bool = False,
    content: bool = True,
    source_timeout: float | None = None,
    target_timeout: float | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
    missing: str = "",
    rewind_by: float = 0.0,
    local_topics: str = "none",
    settled: Mapping[TopicPartition, int] | None = None,
) -> Snapshot:
    """Looks at both clusters of a flow and translates the offsets of its groups; writes nothing to either.

    ``groups``: literal names; none of them: every group that the flow's filters take. ``source_down``: do not contact
    the source. ``content``: compare records where offset syncs are not exact. Timeouts are the longest silences
    accepted, in seconds (10 and 30). ``progress`` is told what is done, how many, and of how many. ``missing``
    (``at=TIME`` or ``ago=D``) and ``rewind_by`` (seconds): offsets by time are found for plans with these options.
    ``settled``: target offsets before which all that was never mirrored is kept elsewhere, so that groups may pass it.
    ``local_topics`` ``earliest``: topics by their plain names are looked at, for plans with that option.

    A source that gives no answer is no error: its state is in the snapshot. Raises ``ClusterUnreachable`` for the
    target, ``CredentialsRefused``, ``NotAuthorized``, ``BrokerError``, ``GroupNotFound``, ``ConfigError``,
    ``UsageError`` for a time that is none.
    """
    from failover.inventory.by_time import Times
    from failover.inventory.selection import Selection

    return _look(
        one_flow(flow),
        Selection(groups=tuple(groups)),
        source_down=source_down,
        content=content,
        timeouts=(source_timeout, target_timeout),
        progress=progress,
        times=Times(missing, rewind_by),
        plain=local_topics != "none",
        settled=settled,
    )


def translate_offsets(
    flow: MirrorFlow | Configuration,
    group: str,
    *,
    source_down: bool = False,
    content: bool = True,
    source_timeout: float | None = None,
    target_timeout: float | None = None,
) -> dict[TopicPartition, TranslatedOffset]:
    """Translates one group's offsets: by target partition, {} for a group that nobody knows.

    Where ``offset`` is not None it is what Java's RemoteClusterUtils.translateOffsets answers; ``placed`` beside it is
    this tool's own answer with its precision and proof. Parameters and errors: see ``take_snapshot``.
    """
    from failover.inventory.selection import Selection
    from failover.inventory.translating import group_translation

    snapshot = _look(
        one_flow(flow),
        Selection(groups=(group,), create=True),
        source_down=source_down,
        content=content,
        timeouts=(source_timeout, target_timeout),
    )
    found = group_translation(snapshot, group)
    return {TopicPartition(each.topic, each.partition): each for each in found.partitions}


def _look(
    flow: MirrorFlow,
    selection: Selection,
    *,
    source_down: bool,
    content: bool,
    timeouts: tuple[float | None, float | None],
    progress: Callable[[str, int, int | None], None] | None = None,
    times: Times | None = None,
    plain: bool = False,
    settled: Mapping[TopicPartition, int] | None = None,
) -> Snapshot:
    from failover.inventory.by_time import Times
    from failover.inventory.comparison import comparison_of
    from failover.inventory.flow import flow_of
    from failover.inventory.snapshot import take_snapshot as look

    # what cannot work is raised before a silent cluster costs its time
    flow.selected.target_client()
    if not source_down:
        flow.selected.source_client()
    with ExitStack() as opened:

        def open_cluster(alias: str) -> Cluster:
            cluster = flow.open_cluster(alias, timeout=timeouts[0 if alias == flow.source else 1])
            opened.callback(cluster.close)
            return cluster

        return look(
            flow_of(flow.config, flow.selected),
            open_cluster,
            selection,
            now=lambda: datetime.now(UTC),
            source_down=source_down,
            progress=progress,
            comparison=comparison_of(flow.config) if content else None,
            times=times or Times(),
            plain=plain,
            settled=settled,
        )
