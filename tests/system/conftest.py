"""Real brokers for the tests of this folder.

``pair``: two clusters of one broker each that live as long as the session and are never hurt.
``mm2``: the real MirrorMaker 2 on them, for topics that begin with ``t.``.
``connect``: a real Kafka Connect worker on the target of them.
``breakable``: a module's own pair, to be killed, frozen and restarted.
``three``: a module's own pair with three brokers on the source side.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from failover.lab import LabOptions, MirrorOptions, ports
from failover.lab.connect import remove_connectors, start_connect, wait_connect
from tests.system.pair import Pair
from tests.system.running import running

MIRROR = MirrorOptions(topics=r"t\..*", checkpoint_seconds=1, refresh_seconds=1, flush_seconds=1)


@pytest.fixture(scope="session", autouse=True)
def ports_of_its_own(request: pytest.FixtureRequest) -> Iterator[None]:
    """Gives each worker of the run (pytest-xdist) other ports to choose from.

    A lab finds its ports free and listens on them seconds later; meanwhile a neighbour could find the same ones free.
    """
    worker = getattr(request.config, "workerinput", {"workerid": "gw0", "workercount": 1})
    number, of = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    share = len(ports.RANGE) // of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ports, "RANGE", ports.RANGE[number * share : (number + 1) * share])
        yield


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options = LabOptions(aliases=("a", "b"), sasl=True, authorizer=True, proxy=True, quick=True, mirror=MIRROR)
    with running(tmp_path_factory.mktemp("pair"), options) as started:
        yield started
        assert started.unexpected_topics() == {}, "auto-created by a question, or not registered with pair.create_topic"


@pytest.fixture(scope="session")
def mm2(pair: Pair) -> Pair:
    """Is ``pair`` with MirrorMaker 2 running from a to b; give topics names that begin with ``t.``."""
    pair.lab.start_mirror()
    pair.b.until(
        lambda: "a.checkpoints.internal" in pair.b.topics(), what="MirrorMaker 2 made its checkpoints topic", seconds=90
    )
    return pair


@pytest.fixture(scope="session")
def connect_worker(pair: Pair) -> Pair:
    start_connect(pair.lab, auth=True, tls=True)
    pair.expect_topic(r"connect-lab-.*")
    wait_connect(pair.lab)
    return pair


@pytest.fixture(scope="module")
def connect(connect_worker: Pair) -> Iterator[Pair]:
    """Is ``pair`` with a Kafka Connect worker on b: https, basic authentication, MirrorMaker 2's connectors to deploy.

    ``connect_settings(pair.lab)`` gives the settings by which commands find it. What a file deploys ends with it.
    """
    yield connect_worker
    remove_connectors(connect_worker.lab)


@pytest.fixture(scope="module")
def breakable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options = LabOptions(aliases=("a", "b"), sasl=True, proxy=True, quick=True, mirror=MIRROR)
    with running(tmp_path_factory.mktemp("breakable"), options) as started:
        yield started


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options = LabOptions(aliases=("a", "b"), brokers=(3, 1), quick=True, heap="384m", mirror=MIRROR)
    with running(tmp_path_factory.mktemp("three"), options) as started:
        yield started
