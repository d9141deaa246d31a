"""Two clusters as a test sees them: what it may do to either side, and what it waits for."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from failover.lab import Lab, MirrorOptions
from failover.lab.follower import Follower
from failover.lab.internal_records import Checkpoint, checkpoint_of
from failover.lab.lab import Listener
from failover.lab.side import Offsets, Produced, Side
from failover.model import Record, TopicPartition

# topics MirrorMaker 2, this tool and the brokers make by themselves
_OWN_TOPICS = re.compile(r"__.*|mm2-.*|(.+\.)?heartbeats|.+\.checkpoints\.internal")
_names = itertools.count(1)


class Ran(NamedTuple):
    """Is what one run of the command line gave back."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Pair:
    """Is source ``a`` and target ``b`` (the lab's aliases); see ``Side`` for what ``pair.a`` and ``pair.b`` offer."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        self.source, self.target = lab.state.options.aliases
        self.sides = {alias: Side(alias, lab.client_settings(alias)) for alias in (self.source, self.target)}
        self.expected: dict[str, set[str]] = {alias: set() for alias in self.sides}
        self._patterns: list[re.Pattern[str]] = [_OWN_TOPICS]
        self._checkpoints: dict[str, Follower] = {}
        self._flows: set[str] = {self.source}

    # -- the two sides -------------------------------------------------------------------------

    @property
    def a(self) -> Side:
        return self.sides[self.source]

    @property
    def b(self) -> Side:
        return self.sides[self.target]

    def bootstrap(self, alias: str, listener: Listener = "plaintext") -> str:
        return self.lab.bootstrap(alias, listener)

    def admin(self, alias: str) -> Any:
        return self.sides[alias].admin

    def name(self, stem: str) -> str:
        """Returns a topic or group name no other test has."""
        return f"{stem}-{next(_names)}"

    def create_topic(
        self, alias: str, name: str, partitions: int = 1, *, config: Mapping[str, str] | None = None
    ) -> str:
        self.expected[alias].add(name)
        return self.sides[alias].create_topic(name, partitions, config=config)

    def expect_topic(self, pattern: str) -> None:
        """Allows topics whose whole name matches, on either side, for the teardown's assertion."""
        self._patterns.append(re.compile(pattern))

    def produce(self, alias: str, topic: str, count: int, **options: Any) -> list[Produced]:
        return self.sides[alias].produce(topic, count, **options)

    def commit(self, alias: str, group: str, offsets: Offsets, *, metadata: str = "") -> None:
        self.sides[alias].commit(group, offsets, metadata=metadata)

    def committed(self, alias: str, group: str) -> dict[TopicPartition, int]:
        return self.sides[alias].committed(group)

    def ends(self, alias: str, topic: str) -> dict[int, tuple[int, int]]:
        return self.sides[alias].ends(topic)

    def read(self, alias: str, topic: str) -> dict[int, list[Record]]:
        return self.sides[alias].read(topic)

    # -- the mirror ----------------------------------------------------------------------------

    def wait_mirrored(self, topic: str, *, flow: str | None = None, identity: bool = False, seconds: float = 90) -> str:
        """Waits until the target holds what the source holds now; returns the topic's name there."""
        remote = topic if identity else f"{flow or self.source}.{topic}"
        wanted = {partition: len(records) for partition, records in self.a.read(topic).items()}

        def done() -> bool:
            ends = self.b.ends(remote)
            return all(partition in ends and ends[partition][1] >= count for partition, count in wanted.items())

        self.b.until(done, what=f"{remote} holds the {sum(wanted.values())} records of {topic}", seconds=seconds)
        return remote

    def checkpoints(self, *, flow: str | None = None) -> dict[tuple[str, str, int], Checkpoint]:
        """Returns the newest checkpoint of each (group, target topic, partition)."""
        topic = f"{flow or self.source}.checkpoints.internal"
        follower = self._checkpoints.setdefault(topic, Follower(self.b, topic))
        found = {}
        for record in follower.catch_up().get(0, ()):
            if record.value is not None:
                checkpoint = checkpoint_of(record)
                found[checkpoint.group, checkpoint.topic, checkpoint.partition] = checkpoint
        return found

    def wait_checkpoint(
        self,
        group: str,
        topic: str,
        partition: int = 0,
        *,
        upstream: int | None = None,
        flow: str | None = None,
        seconds: float = 90,
    ) -> Checkpoint:
        """Waits for a checkpoint of a source topic's partition, made for the commit ``upstream`` or a later one."""
        key = (group, f"{flow or self.source}.{topic}", partition)

        def there() -> Checkpoint | None:
            found = self.checkpoints(flow=flow).get(key)
            return found if found is not None and (upstream is None or found.upstream >= upstream) else None

        what = f"a checkpoint of group {group} on {key[1]}-{partition} at {upstream}"
        found: Checkpoint = self.b.until(there, what=what, seconds=seconds, every=0.1)
        return found

    def config_path(
        self,
        *,
        aliases: tuple[str, str] | None = None,
        user: str | None = None,
        listener: Listener = "plaintext",
        options: MirrorOptions | None = None,
        added: Mapping[str, str] | None = None,
    ) -> Path:
        """Writes an mm2.properties for these two clusters and returns its path; ``added`` settings win."""
        path = self.folder / f"mm2-{next(_names)}.properties"
        return self.lab.write_config(path, options, aliases=aliases, user=user, listener=listener, added=added)

    @contextlib.contextmanager
    def mirror(
        self, options: MirrorOptions, *, aliases: tuple[str, str], added: Mapping[str, str] | None = None
    ) -> Iterator[Path]:
        """Runs a further real MirrorMaker 2 under other aliases on the same two clusters; gives its configuration."""
        name = f"mm2-{aliases[0]}-{aliases[1]}"
        config = self.config_path(aliases=aliases, options=options, added=added)
        self._flows.update(aliases)
        self.lab.start_mirror(config, name=name)
        try:
            yield config
        finally:
            if self.lab.running(name) is not None:
                self.lab.kill(name)

    # -- the command line ----------------------------------------------------------------------

    def run_cli(
        self,
        *arguments: str,
        config: Path | None = None,
        state: Path | None = None,
        stdin: str | None = None,
        seconds: float = 90,
        **environ: str,
    ) -> Ran:
        """Runs ``python -m failover`` with this pair's configuration and, unless given, a state folder of its own."""
        folder = state or self.folder / f"state-{next(_names)}"
        environment = os.environ | {"FAILOVER_CONFIG": str(config or self.lab.config), "NO_COLOR": "1"} | environ
        command = [sys.executable, "-m", "failover", "--state-dir", str(folder), *arguments]
        # Files, not pipes: what a child wrote is whole whatever becomes of descriptors and threads here, and it can
        # still be told when the child does not end.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=out,
                stderr=err,
                env=environment,
            )
            try:
                child.communicate(None if stdin is None else stdin.encode(), timeout=seconds)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                said = "".join(
                    f"\n--- {name} ---\n{_text(file)[-8000:]}" for name, file in (("out", out), ("err", err))
                )
                raise AssertionError(f"not within {seconds:.0f} s: failover {shlex.join(arguments)}{said}") from None
            except BaseException:
                child.kill()
                child.wait()
                raise
            return Ran(child.returncode, _text(out), _text(err))

    # -- the end -------------------------------------------------------------------------------

    def unexpected_topics(self) -> dict[str, set[str]]:
        """Returns, per side, topics that no test registered and neither MirrorMaker 2 nor this tool makes."""
        known = self.expected[self.source] | self.expected[self.target]
        mirrored = {f"{flow}.{topic}" for flow in self._flows for topic in known}
        found = {}
        for alias, side in self.sides.items():
            extra = side.topics() - self.expected[alias] - mirrored
            extra = {topic for topic in extra if not any(pattern.fullmatch(topic) for pattern in self._patterns)}
            if extra:
                found[alias] = extra
        return found

    def close(self) -> None:
        for follower in self._checkpoints.values():
            follower.close()
        for side in self.sides.values():
            side.close()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")
