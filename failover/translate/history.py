"""Offset syncs of many partitions as they arrive: columns of numbers, no object per sync."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from failover.model.names import TopicPartition
from failover.translate.segments import Syncs


class SyncHistory:
    """Collects every sync of an offset-syncs topic in arrival order and freezes it once.

    A sync ``(up, down)`` says that the source record at ``up`` is the target record at ``down``;
    the topic is the source's name for it (MM2: OffsetSync). Two ``array('q')`` a partition hold
    16 bytes a sync. A pair with a negative number is left out: old releases wrote (-1, -1) for
    "no sync" (MM2 before 3.3).
    """

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        self._columns: dict[tuple[str, int], tuple[array[int], array[int]]] = {}

    def append(self, topic: str, partition: int, up: int, down: int) -> None:
        """Adds the sync that arrived last."""
        if up < 0 or down < 0:
            return
        columns = self._columns.get((topic, partition))
        if columns is None:
            columns = self._columns[topic, partition] = (array("q"), array("q"))
        columns[0].append(up)
        columns[1].append(down)

    def extend(self, topic: str, partition: int, pairs: Iterable[tuple[int, int]]) -> None:
        """Adds syncs of one partition in arrival order."""
        for up, down in pairs:
            self.append(topic, partition, up, down)

    def __len__(self) -> int:
        return sum(len(ups) for ups, _ in self._columns.values())

    def freeze(self) -> dict[TopicPartition, Syncs]:
        """Returns the syncs a translation may use, by source partition; the columns are handed over, not copied."""
        frozen = {TopicPartition(*key): Syncs.of(*columns) for key, columns in self._columns.items()}
        self._columns = {}
        return frozen
