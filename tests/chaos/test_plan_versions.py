"""Plans and executions beside other versions of Kafka and MirrorMaker 2, each judged by its own tool.

Not in the system tier: two versions more are four brokers and two MirrorMaker 2 more to start, and on a new
machine a download of 100 MB each.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from failover.lab import LabOptions, MirrorOptions, end_lab, up
from failover.lab.side import Protocol
from tests.system.pair import Pair
from tests.system.typed import AT_ONCE, by_name, offsets, plan, told_by_kafka

# Kafka 3.9 has the consumer protocol switched off
VERSIONS: dict[str, tuple[Protocol, ...]] = {"3.9.1": ("classic",), "4.3.1": ("classic", "consumer")}
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(params=VERSIONS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("version")
    mirror = MirrorOptions(topics=r"t\..*", checkpoint_seconds=1, refresh_seconds=1, flush_seconds=1)
    options = LabOptions(aliases=("a", "b"), kafka_version=request.param, quick=True, mm2=True, mirror=mirror)
    try:
        running = Pair(up(folder / "lab", options), folder)
        try:
            yield running
        finally:
            running.close()
    finally:
        end_lab(folder / "lab")


def test_a_failover_planned_and_executed(pair: Pair, tmp_path) -> None:
    protocols = VERSIONS[pair.lab.state.options.kafka_version]
    topic = pair.create_topic("a", "t.orders", 2)
    pair.produce("a", topic, 200)
    remote = pair.wait_mirrored(topic, seconds=120)
    places = {f"stands-{protocol}": {(topic, 0): 100, (topic, 1): 37} for protocol in protocols}
    for protocol in protocols:
        pair.a.place(f"stands-{protocol}", places[f"stands-{protocol}"], protocol=protocol)
    pair.commit("a", "busy", {(topic, 0): 50})
    checkpoints = {
        group: {(remote, p): pair.wait_checkpoint(group, topic, p).downstream for p in (0, 1)} for group in places
    }
    with pair.b.member("busy", [remote], protocol=protocols[-1], client_id="app-1"):
        made = plan(pair, state=tmp_path, code=4)
        groups = by_name(made)
        assert (groups["busy"]["reasons"], groups["busy"]["type"]) == (["group-active"], protocols[-1])
        assert groups["busy"]["members"][0]["client_id"] == "app-1"
        for group, stands in places.items():
            assert offsets(groups[group]) == {(remote, p): at for (_, p), at in stands.items()}
            assert {p["precision"] for p in groups[group]["partitions"]} == {"exact"}

    pair.lab.kill("a")
    made = plan(pair, *places, state=tmp_path, more=["--timeout", "3s"])
    assert made["source"]["state"] == "down"
    assert {group: offsets(by_name(made)[group]) for group in places} == checkpoints
    ran = pair.run_cli("execute", *AT_ONCE, state=tmp_path)
    assert ran.code == 0, ran.err
    assert told_by_kafka(pair, "b", places) == checkpoints
    back = pair.run_cli("rollback", ran.json()["id"], "--yes", state=tmp_path)
    assert back.code == 0, back.err
    assert not pair.b.groups() & set(places)
