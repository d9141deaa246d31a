"""The shipped switchover killed at every moment of its journal and in the middle of steps, and failing at each step.

With both engines and both policies, under live transactional traffic; mirrors copy ACLs every second, a fence's too.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from failover.lab import LabOptions, MirrorOptions
from tests.system.pair import Pair
from tests.system.replicating import Flow
from tests.system.runbook_kills import Place, switched
from tests.system.runbook_undo import failing, positions
from tests.system.running import running
from tests.system.switching import Applications, rights

EVERY = r"started - after|(begun|noted|succeeded|confirmed|skipped) .*|finished - before"
IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options = LabOptions(aliases=("a", "b"), sasl=True, authorizer=True, quick=True)
    with running(tmp_path_factory.mktemp("runbook"), options) as started:
        yield started


@contextmanager
def mirrored(pair: Pair, engine: str, topic: str, *, identity: bool) -> Iterator[tuple[Path, tuple[str, str], str]]:
    """Runs a mirror of one topic; gives its configuration, the flow's aliases and the REST's address."""
    copying = {"sync.topic.acls.enabled": "true", "sync.topic.acls.interval.seconds": "1"}
    if engine == "replicator":
        settings = {"{source}->{target}." + key: value for key, value in copying.items()}
        settings["{source}.consumer.isolation.level"] = "read_committed"
        flow = Flow(pair, re.escape(topic), settings | (IDENTITY if identity else {}))
        with flow.worker("--rest", "127.0.0.1:0") as worker:
            (line,) = worker.says("REST on http://", seconds=90)
            yield flow.config, (flow.source, flow.target), line.rpartition(" ")[2]
        return
    aliases = pair.name("ma"), pair.name("mb")
    options = MirrorOptions(topics=re.escape(topic), checkpoint_seconds=1, refresh_seconds=1, identity=identity)
    added = {f"{aliases[0]}->{aliases[1]}.{key}": value for key, value in copying.items()}
    added[f"{aliases[0]}.consumer.isolation.level"] = "read_committed"
    with pair.mirror(options, aliases=aliases, added=added) as config:
        yield config, aliases, ""


@contextmanager
def stopped_by_hand(place: Place, mirror: str) -> Iterator[None]:
    """Ends MirrorMaker 2 as the operator does whom the playbook asks to, once the groups are empty."""
    over = threading.Event()

    def hand() -> None:
        while "succeeded consumers-gone before" not in place.met:
            if over.wait(0.1):
                return
        place.pair.lab.kill(mirror)

    thread = threading.Thread(target=hand, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("identity", [False, True], ids=["default", "identity"])
@pytest.mark.parametrize("engine", ["replicator", "mm2"])
def test_killed_at_every_moment_each_record_is_read_once(
    pair: Pair, tmp_path: Path, engine: str, *, identity: bool
) -> None:
    topic, group = pair.create_topic("a", pair.name("killed"), 3), pair.name("killed")
    with rights(pair, [topic], group), mirrored(pair, engine, topic, identity=identity) as (config, aliases, url):
        remote = topic if identity else f"{aliases[0]}.{topic}"
        with Applications(pair, tmp_path, topic, group, aliases=aliases, remote=remote) as applications:
            applications.start("consumers", aliases[0])
            applications.start("producers", aliases[0])
            pair.a.until(
                lambda: len(applications.written) >= 200 and applications.read.total() >= 100,
                what="traffic",
                seconds=120,
            )
            pair.wait_mirrored(topic, flow=aliases[0], identity=identity, seconds=120)
            how = ("--var", f"connect_url={url}") if url else ("--var", "replication=manual")
            place = Place(pair, config, tmp_path)
            with nullcontext() if url else stopped_by_hand(place, f"mm2-{aliases[0]}-{aliases[1]}"):
                record = switched(place, applications, group, *how, wanted=EVERY)
    done = [step["id"] for step in record["steps"] if step["status"] == "done"]
    met = set(place.met)
    assert {
        f"{event} {step} {when}" for event in ("begun", "succeeded") for step in done for when in ("before", "after")
    } <= met
    assert record["resumed"] == len(met)


@pytest.mark.timeout(1800)
def test_wherever_a_step_fails_all_is_put_back(pair: Pair, tmp_path: Path) -> None:
    with failing(pair, tmp_path) as scene:
        for after in positions():
            scene.undone(after)


@pytest.mark.timeout(900)
def test_killed_at_every_moment_also_of_the_way_back_all_is_put_back(pair: Pair, tmp_path: Path) -> None:
    with failing(pair, tmp_path) as scene:
        before = scene.standing()
        record = scene.run_killed("canary", wanted=r"(?!started - before|finished - after).*", code=4)
        assert record["outcome"] == "undone"
        met = {moment.split()[0] for moment in scene.place.met}
        assert met >= {"begun", "noted", "succeeded", "failed", "undobegun", "undone"}
        assert scene.standing() == before
