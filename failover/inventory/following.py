"""Reads what lies around groups' positions on both clusters and compares it, many partitions at once.

Record contents stay in memory for the moment of comparison and reach no result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from failover.kafka.port import Cluster
from failover.model.names import Fault, TopicPartition
from failover.model.records import Window, WindowRequest
from failover.translate.digest import LogView
from failover.translate.follow import Followed, Side, follow

_AT_ONCE = 100
"""Partitions whose records are in memory at one time."""
_MOST_BACK = 20_000
"""Consumed records looked back over at most, where a position is only bounded."""


class Place(NamedTuple):
    """Is where a group stands: ``committed`` on the source, ``position`` on the target.

    ``reread``: records that may be read again at most, as far as is known.
    """

    group: str
    source: TopicPartition
    committed: int
    target: TopicPartition
    position: int
    reread: int


class Found(NamedTuple):
    """Is what the comparison of one place found; ``unread``: why nothing could be compared, "" where it was."""

    place: Place
    followed: Followed
    unread: str = ""


def read_first(target: Cluster, places: Sequence[Place]) -> None:
    """Reads the first record at every place that has one, as consumers that start there do. Raises ``ClusterError``."""
    logs = target.log_ranges({place.target for place in places})
    wanted = {(place.target, place.position) for place in places}
    target.windows(
        [
            WindowRequest("target", tp, position, position + 1)
            for tp, position in sorted(wanted)
            if not isinstance(log := logs[tp], Fault) and log.start <= position < log.end
        ]
    )


def compare(source: Cluster, target: Cluster, places: Sequence[Place], records: int) -> list[Found]:
    """Compares up to ``records`` records on each side of every place.

    What does not agree is looked at once more with what is known of aborted transactions and of cleaners. Raises
    ``ClusterError``.
    """
    found: list[Found] = []
    for first in range(0, len(places), _AT_ONCE):
        part = places[first : first + _AT_ONCE]
        looked = _look(source, target, part, records)
        doubtful = [each.place for each in looked if each.followed.fault]
        if doubtful:
            again = {each.place: each for each in _look_closer(source, target, doubtful, records)}
            looked = [again.get(each.place, each) for each in looked]
        found += looked
    return found


class _Stretches:
    """Is what is wanted of both logs around places, cut to where the logs are."""

    def __init__(self, source: Cluster, target: Cluster, places: Sequence[Place], records: int) -> None:
        self.source, self.target = source, target
        bounds = {
            "source": source.log_ranges({place.source for place in places}),
            "target": target.log_ranges({place.target for place in places}),
        }
        self.faults: dict[Place, str] = {}
        self.wanted: dict[Place, tuple[WindowRequest, WindowRequest]] = {}
        for place in places:
            back = records + min(place.reread, _MOST_BACK)
            sides = (
                ("source", place.source, place.committed, back),
                ("target", place.target, place.position, records),
            )
            requests = []
            for side, tp, offset, before in sides:
                log = bounds[side][tp]
                if isinstance(log, Fault):
                    self.faults[place] = f"{side} {tp}: {log}"
                    break
                stop = min(log.end, offset + records + (min(place.reread, records) if side == "source" else 0))
                requests.append(WindowRequest(side, tp, min(stop, max(log.start, offset - before)), stop))
            else:
                self.wanted[place] = (requests[0], requests[1])

    def read(self, side: str, *, committed: bool = False) -> dict[WindowRequest, Window]:
        """Reads one side's stretches; an empty one needs no question."""
        number = 0 if side == "source" else 1
        asked = list(dict.fromkeys(wanted[number] for wanted in self.wanted.values()))
        full = [request for request in asked if request.start < request.stop]
        cluster = self.source if side == "source" else self.target
        answers = dict(cluster.windows(full, committed=committed)) if full else {}
        for request in asked:
            answers.setdefault(request, Window((), request.stop, request.start, request.stop))
        return answers


def _look(source: Cluster, target: Cluster, places: Sequence[Place], records: int) -> list[Found]:
    stretches = _Stretches(source, target, places, records)
    of_target, of_source = stretches.read("target"), stretches.read("source")
    return [_found(stretches, place, of_source, of_target) for place in places]


def _look_closer(source: Cluster, target: Cluster, places: Sequence[Place], records: int) -> list[Found]:
    """Looks once more, with what is known of aborted transactions and cleaners."""
    stretches = _Stretches(source, target, places, records)
    of_target, of_source = stretches.read("target"), stretches.read("source")
    stable = stretches.read("source", committed=True)
    cleaned = {
        "source": _cleaned(source, {place.source.topic for place in places}),
        "target": _cleaned(target, {place.target.topic for place in places}),
    }
    found = []
    for place in places:
        holes = place.source.topic in cleaned["source"] or place.target.topic in cleaned["target"]
        optional: set[int] = set()
        if place in stretches.wanted:
            request = stretches.wanted[place][0]
            optional = {r.offset for r in of_source[request].records} - {r.offset for r in stable[request].records}
        found.append(_found(stretches, place, of_source, of_target, optional, holes=holes))
    return found


def _cleaned(cluster: Cluster, topics: Collection[str]) -> set[str]:
    """Names the topics of which a cleaner removes single records; one nobody can tell of is not among them."""
    settings = cluster.topic_settings(topics, ["cleanup.policy"])
    return {
        topic
        for topic, found in settings.items()
        if not isinstance(found, Fault) and "compact" in found.get("cleanup.policy", "")
    }


def _found(
    stretches: _Stretches,
    place: Place,
    of_source: dict[WindowRequest, Window],
    of_target: dict[WindowRequest, Window],
    optional: Collection[int] = (),
    *,
    holes: bool = False,
) -> Found:
    if place in stretches.faults:
        return Found(place, Followed(0), stretches.faults[place])
    windows = [answers[asked] for answers, asked in zip((of_source, of_target), stretches.wanted[place], strict=True)]
    for side, window in zip(("source", "target"), windows, strict=True):
        if window.fault is not None:
            return Found(place, Followed(0), f"{side} {window.fault}")
    views = [LogView(encode=True), LogView()]
    for view, window in zip(views, windows, strict=True):
        view.add(0, window.covered_to + 1, window.records)
    stamped = not any(window.log_append_time for window in windows)
    encoded = views[1].headers and bool(views[0].copied_encoded(views[1]))
    sides = [
        Side(view.offsets, view.tokens(range(len(view.offsets)), encoded=encoded and view is views[0], stamped=stamped))
        for view in views
    ]
    return Found(
        place,
        follow(
            *sides,
            committed=place.committed,
            position=place.position,
            optional=optional,
            holes=holes,
        ),
    )
