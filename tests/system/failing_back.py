"""Applications that go to the standby and come back by the shipped playbooks, and what became of every record."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from failover.lab.side import Side
from failover.state.tails import tail_records
from tests.system.pair import Pair
from tests.system.replicating import Reading
from tests.system.switching import Applications, rights


class Site(Applications):
    """Is an application and the mirrors of both directions, all started and stopped by one hook.

    ``mirrors``: runs the mirror of a flow (``A->B``) while it is entered. ``subscribed``: by alias, the topics that the
    consumers read there.
    """

    def __init__(
        self,
        pair: Pair,
        folder: Path,
        topic: str,
        group: str,
        *,
        aliases: tuple[str, str],
        subscribed: Mapping[str, Sequence[str]],
        mirrors: Callable[[str], AbstractContextManager[object]],
    ) -> None:
        super().__init__(pair, folder, topic, group, aliases=aliases)
        self.there, self.back = f"{aliases[0]}->{aliases[1]}", f"{aliases[1]}->{aliases[0]}"
        self._subscribed, self._mirrors = subscribed, mirrors
        self._threads += [
            threading.Thread(target=self._watch, args=("mirror", flow, self._mirror), daemon=True)
            for flow in (self.there, self.back)
        ]

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Runs it, with the rights the application's user needs on both sides; takes away every ACL at the end."""
        topics = {self.topic, *(name for topics in self._subscribed.values() for name in topics)}
        with rights(self.pair, sorted(topics), self.group, on=("a", "b")), self:
            yield

    def writes(self, alias: str, count: int) -> list[bytes]:
        """Has the producers write on a cluster and stop; gives what they wrote."""
        begun = len(self.written)
        self.start("producers", alias)
        self.wait(lambda: len(self.written) >= begun + count, f"{count} records written on {alias}")
        self.stop("producers", alias)
        return self.written[begun:]

    def lacks(self, side: Side, *topics: str) -> Counter[bytes]:
        """Gives what of all that was written is not in topics."""
        return Counter(set(self.written)) - found(side, *topics)

    def run(self, name: str, config: Path, *arguments: str, given: Mapping[str, str], state: Path) -> dict[str, Any]:
        """Runs a shipped playbook to its end; gives its steps' results by their ids."""
        hook = f"{sys.executable},{self.hook},{self.folder}"
        own: dict[str, str] = {"groups": self.group, "hook": hook, "come_back": "60s"} | dict(given)
        if name == "failback":
            own["mirror_hook"] = hook
        variables = [word for key, value in own.items() for word in ("--var", f"{key}={value}")]
        ran = self.pair.run_cli(
            *arguments,
            "run",
            name,
            "--yes",
            "--self-approve",
            *variables,
            "--format",
            "json",
            config=config,
            state=state,
            seconds=400,
        )
        assert ran.code == 0, ran.err
        return {step["id"]: step.get("result", {}) for step in json.loads(ran.out)["steps"]}

    def _mirror(self, flow: str) -> None:
        with self._mirrors(flow):
            while self._wanted("mirror", flow):
                time.sleep(0.02)


def found(side: Side, *topics: str) -> Counter[bytes]:
    """Counts the values in those of the topics that are there, without those of aborted transactions."""
    with Reading(side, [topic for topic in topics if topic in side.topics()], isolation="read_committed") as reading:
        return Counter(record.value or b"" for records in reading.to_the_end().values() for record in records)


def there_and_back(
    site: Site, state: Path, *, forward: Path, backward: Path, copies: tuple[str, str], way: str
) -> dict[str, Any]:
    """Fails over to b with a tail left on a, writes on b, and fails back; counts every record.

    ``copies``: what the topic is called on b, and what b's own is called on a. Gives the results of failback's steps.
    """
    pair, topic, (a, b) = site.pair, site.topic, site.aliases
    site.start("mirror", site.there)
    site.start("consumers", a)
    site.writes(a, 150)
    site.wait(lambda: not site.lacks(pair.b, copies[0]), "all is mirrored")
    site.wait(lambda: not Counter(site.written) - site.read, "all is consumed")
    site.stop("consumers", a)
    stood = {tp.partition: offset for tp, offset in pair.committed("a", site.group).items()}

    def checkpointed() -> bool:
        made = pair.checkpoints(flow=a)
        keys = {partition: (site.group, copies[0], partition) for partition in stood}
        return all(key in made and made[key].upstream == stood[partition] for partition, key in keys.items())

    site.wait(checkpointed, "checkpoints of the last commits")
    site.stop("mirror", site.there)
    tail = site.writes(a, 60)
    copied = {partition: end for partition, (_, end) in pair.ends("b", copies[0]).items()}

    ended = {"tail": "export"} if way != "prefix" else {}
    given = {"replication": "manual"} | ended
    moved = site.run("failover", forward, "--source-down", given=given, state=state)
    assert moved["plan"]["skipped"] == 0
    site.wait(lambda: len(site.written) >= 310, "traffic on the standby")
    site.wait(lambda: not Counter(site.written) - site.read - Counter(tail), "the standby's consumers keep up")
    site.wait(
        lambda: all(pair.committed("b", site.group).get((copies[0], p), 0) >= end for p, end in copied.items()),  # type: ignore[call-overload]
        "what was to be read again is read",
    )
    again = sum((site.read - Counter(set(site.read))).values())
    assert moved["plan"]["reread"] is None or again <= moved["plan"]["reread"]
    if ended:
        assert values_of(moved["tail"]["file"]) == Counter(tail)
        assert moved["fence-old-primary"]["topics"] == [topic]

    flow = ("--source", b, "--target", a)
    back = site.run("failback", backward, *flow, given={"replication": "hook", "way": way}, state=state)
    assert values_of(back["tail"]["file"]) == Counter(tail)
    assert Path(back["tail"]["file"]).stat().st_mode & 0o777 == 0o600
    assert back["tail"]["records"] == len(tail)
    assert (back["plan"]["reread"], back["plan"]["skipped"]) == (0, 0)
    assert back["unfence"]["topics"] == []
    assert back["consumers-back"]["back"] == 1
    begun = len(site.written)
    site.wait(lambda: len(site.written) >= begun + 50, "traffic on the old primary again")
    site.stop("producers", a)
    unseen = Counter() if way == "prefix" else Counter(tail)
    site.wait(lambda: not Counter(site.written) - site.read - unseen, "the group reads what there is")
    time.sleep(1.0)  # and no more than that
    site.stop("consumers", a)

    # every record is on the primary once, but for those of which it says that they are in the file
    held = found(pair.a, topic, copies[1])
    kept = Counter(site.written) - (Counter(tail) if way == "recreate" else Counter())
    assert Counter({value: count for value, count in held.items() if value in set(site.written)}) == kept
    # nothing was skipped and nothing read again by going back
    read = Counter({value: count for value, count in site.read.items() if value in set(site.written)})
    assert Counter(site.written) - read == unseen
    twice = read - Counter(set(read))
    assert sum(twice.values()) == again, (again, sorted(twice)[:20], len(tail), sorted(tail)[:3])
    assert site.read - read <= Counter(set(site.aborted))
    return back


def values_of(file: str) -> Counter[bytes]:
    """Counts the values of an exported tail."""
    return Counter(record.value or b"" for record in tail_records(Path(file)))
