"""Our REST beside a real Connect worker's, on the same flow: the same calls get the same status and shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from failover.config.connect_json import flow_connectors
from failover.config.load import load_config
from failover.lab.state import ADMIN
from tests.system.pair import Pair
from tests.system.replicating import Flow, Worker
from tests.system.rest_side import Rest

SOURCE, HEARTBEAT = "MirrorSourceConnector", "MirrorHeartbeatConnector"
KINDS = {"source": SOURCE, "checkpoint": "MirrorCheckpointConnector", "heartbeat": HEARTBEAT}
STRINGS = "settings"


class Both(NamedTuple):
    """Is the flow's REST here, and a worker's that runs its connectors; ``name`` is that of a connector on both."""

    worker: Worker
    ours: Rest
    theirs: Rest
    flow: str

    def name(self, kind: str = SOURCE) -> str:
        return f"{self.flow}.{kind}"

    def each(self, method: str, path: str, body: object = None) -> tuple[tuple[int, Any], tuple[int, Any]]:
        """Asks both; gives status and JSON, ours first. ``{c}`` in the path is the source connector."""
        asked = path.replace("{c}", self.name())
        found = []
        for rest in (self.ours, self.theirs):
            status, text = rest.ask(method, asked, body)
            found.append((status, json.loads(text) if text else None))
        return found[0], found[1]

    def until(self, state: tuple[str, int], kind: str = SOURCE) -> None:
        def reached() -> bool:
            return all(rest.state(self.name(kind)) == state for rest in (self.ours, self.theirs))

        self.worker.until(reached, what=f"{kind} is {state} on both", seconds=60)


@pytest.fixture(scope="module")
def both(connect: Pair) -> Iterator[Both]:
    pair = connect
    topic = pair.create_topic("a", pair.name("both"), 2)
    pair.produce("a", topic, 100, keys=7)
    flow = Flow(pair, re.escape(topic), {"{target}.offset.storage.partitions": "3"})
    (config,) = load_config(str(flow.config)).enabled_flows
    state = pair.lab.state.connect
    assert state is not None
    theirs = Rest(state.url, basic=(ADMIN, pair.lab.state.passwords[ADMIN]), ca=state.ca)
    # a copy of its own: two writers on one topic would stop ours
    policy = {"replication.policy.separator": "-", "sync.topic.acls.enabled": "false", "tasks.max": "1"}
    for connector in flow_connectors(config, {kind: f"{flow.name}.{name}" for kind, name in KINDS.items()}):
        status, text = theirs.ask("PUT", f"/connectors/{connector.name}/config", {**connector.plain(), **policy})
        assert status == 201, text
    pair.expect_topic(rf"{re.escape(flow.source)}[-.].*")
    with flow.worker("--rest", "127.0.0.1:0") as worker:
        (line,) = worker.says("REST on http://")
        found = Both(worker, Rest(line.rpartition(" ")[2]), theirs, flow.name)
        for kind in (SOURCE, HEARTBEAT):
            found.until(("RUNNING", 1), kind)
        worker.copied(topic)
        pair.b.until(
            lambda: len(theirs.get(f"/connectors/{found.name()}/offsets")["offsets"]) == 2, what="offsets", seconds=60
        )
        yield found
        worker.stop()
    for kind in KINDS.values():
        theirs.ask("DELETE", f"/connectors/{found.name(kind)}")


def shape(value: Any, key: str = "") -> Any:
    """Gives what kind of value it is: keys of objects, kinds of elements; settings are any strings."""
    if isinstance(value, dict):
        if key == "config" or (key == "" and all(isinstance(one, str) for one in value.values()) and len(value) > 8):
            assert all(isinstance(one, str) for one in value.values())
            return STRINGS
        return {name: shape(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [json.loads(one) for one in sorted({json.dumps(shape(each)) for each in value})]
    return type(value).__name__


READING = (
    "/",
    "/health",
    "/connectors/{c}",
    "/connectors/{c}/config",
    "/connectors/{c}/status",
    "/connectors/{c}/tasks",
    "/connectors/{c}/tasks/0/status",
    "/connectors/{c}/offsets",
    "/connectors/{c}/topics",
    "/connectors/{c}/status/",
    "/connectors/{c}/",
)


@pytest.mark.parametrize("path", READING)
def test_reading(both: Both, path: str) -> None:
    (status, ours), (wanted, theirs) = both.each("GET", path)
    assert (status, shape(ours)) == (wanted, shape(theirs)), (ours, theirs)


def test_lists(both: Both) -> None:
    (status, ours), (wanted, theirs) = both.each("GET", "/connectors")
    assert status == wanted
    names = {both.name(kind) for kind in KINDS.values()}
    assert names <= set(ours) & set(theirs)
    (status, _), (wanted, _) = both.each("GET", "/connectors/")
    assert status == wanted == 200
    for query in ("expand=status", "expand=info", "expand=info&expand=status"):
        (status, ours), (wanted, theirs) = both.each("GET", f"/connectors?{query}")
        assert status == wanted
        for name in names - {both.name(KINDS["checkpoint"])}:  # which has no task where there are no groups
            assert shape(ours[name]) == shape(theirs[name]), query


def test_offsets_say_the_same(both: Both) -> None:
    (_, ours), (_, theirs) = both.each("GET", "/connectors/{c}/offsets")
    assert sorted(map(json.dumps, ours["offsets"])) == sorted(map(json.dumps, theirs["offsets"]))


REFUSED: tuple[tuple[str, str, object], ...] = (
    ("GET", "/connectors/none", None),
    ("GET", "/connectors/none/status", None),
    ("GET", "/connectors/none/config", None),
    ("GET", "/connectors/none/tasks", None),
    ("GET", "/connectors/none/offsets", None),
    ("GET", "/connectors/{c}/tasks/7/status", None),
    ("PUT", "/connectors/none/pause", None),
    ("PUT", "/connectors/none/stop", None),
    ("POST", "/connectors/none/restart", None),
    ("POST", "/connectors/{c}/tasks/7/restart", None),
    ("GET", "/nothing/here", None),
    ("DELETE", "/connector-plugins", None),
    ("GET", "/connector-plugins/none/config", None),
    ("PUT", "/admin/loggers/failover", {"level": "LOUD"}),
    ("PUT", "/admin/loggers/failover", {}),
    ("GET", "/admin/loggers/failover.none", None),
)


@pytest.mark.parametrize(("method", "path", "body"), REFUSED)
def test_refusals(both: Both, method: str, path: str, body: object) -> None:
    (status, ours), (wanted, theirs) = both.each(method, path, body)
    assert (status, shape(ours)) == (wanted, shape(theirs)), (ours, theirs)
    assert ours["error_code"] == theirs["error_code"]


def test_pausing_stopping_and_going_on(both: Both) -> None:
    for verb, status, state in (
        ("pause", 202, ("PAUSED", 1)),
        ("resume", 202, ("RUNNING", 1)),
        ("stop", 204, ("STOPPED", 0)),
        ("pause", 202, ("PAUSED", 0)),
        ("stop", 204, ("STOPPED", 0)),
        ("resume", 202, ("RUNNING", 1)),
    ):
        ours, theirs = both.each("PUT", f"/connectors/{{c}}/{verb}")
        assert ours == theirs == (status, None)
        both.until(state)
        for path in ("/connectors/{c}", "/connectors/{c}/status", "/connectors/{c}/tasks", "/connectors/{c}/offsets"):
            (code, found), (wanted, real) = both.each("GET", path)
            assert (code, shape(found)) == (wanted, shape(real)), (verb, path, found, real)


def test_restarting(both: Both) -> None:
    ours, theirs = both.each("POST", "/connectors/{c}/restart")
    assert ours == theirs == (204, None)
    both.until(("RUNNING", 1))
    (status, found), (wanted, real) = both.each("POST", "/connectors/{c}/restart?includeTasks=true&onlyFailed=true")
    assert (status, shape(found)) == (wanted, shape(real))
    ours, theirs = both.each("POST", "/connectors/{c}/tasks/0/restart")
    assert ours == theirs == (204, None)
    both.until(("RUNNING", 1))


def test_plugins(both: Both) -> None:
    (status, ours), (wanted, theirs) = both.each("GET", "/connector-plugins")
    real = [each for each in theirs if each["class"].startswith("org.apache.kafka.connect.mirror.")]
    assert (status, shape(ours)) == (wanted, shape(real))
    assert {each["class"]: each["type"] for each in ours} == {each["class"]: each["type"] for each in real}
    (status, ours), (wanted, theirs) = both.each("GET", f"/connector-plugins/{SOURCE}/config")
    assert status == wanted
    assert {frozenset(each) for each in ours} <= {frozenset(each) for each in theirs}
    known = {each["name"]: each for each in theirs}
    told = ("type", "required", "default_value")
    assert {each["name"]: [each[key] for key in told] for each in ours if each["name"] in known} == {
        each["name"]: [known[each["name"]][key] for key in told] for each in ours if each["name"] in known
    }
    assert {each["name"] for each in ours} - set(known) == set()


def test_validation(both: Both) -> None:
    path = f"/connector-plugins/{SOURCE}/config/validate"
    given = {
        "name": "x",
        "connector.class": f"org.apache.kafka.connect.mirror.{SOURCE}",
        "source.cluster.alias": "A",
        "offset.lag.max": "many",
        "refresh.topics.enabled": "perhaps",
    }
    (status, ours), (wanted, theirs) = both.each("PUT", path, given)
    assert (status, set(ours)) == (wanted, set(theirs))

    def wrong(found: Any) -> set[str]:
        return {each["value"]["name"] for each in found["configs"] if each["value"]["errors"]}

    assert wrong(ours) == wrong(theirs) & {each["value"]["name"] for each in ours["configs"]}
    assert {frozenset(each["value"]) for each in ours["configs"]} == {
        frozenset(each["value"]) for each in theirs["configs"]
    }
    (status, ours), (wanted, theirs) = both.each("PUT", path, {"connector.class": HEARTBEAT})
    assert (status, shape(ours)) == (wanted, shape(theirs))
    found = []
    for kind, more in (
        ("source", {"emit.offset-syncs.enabled": "false"}),
        ("source", {"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "target"}),
        ("checkpoint", {"emit.checkpoints.enabled": "false"}),
        ("checkpoint", {"emit.checkpoints.enabled": "false", "sync.group.offsets.enabled": "true"}),
        ("checkpoint", {"emit.offset-syncs.enabled": "false"}),
        ("checkpoint", {"emit.offset-syncs.enabled": "false", "emit.checkpoints.enabled": "false"}),
        ("checkpoint", {"emit.checkpoints.enabled": "false", "enabled": "false"}),
        ("checkpoint", {"emit.checkpoints.enabled": "FALSE"}),
        ("checkpoint", {"emit.offset-syncs.enabled": "FALSE"}),
    ):
        given = {"name": "x", "connector.class": KINDS[kind], "source.cluster.alias": "A", **more}
        path = f"/connector-plugins/{KINDS[kind]}/config/validate"
        (_, ours), (_, theirs) = both.each("PUT", path, given)
        found.append((more, wrong(ours), wrong(theirs)))
    assert [ours for _, ours, _ in found] == [theirs for _, _, theirs in found], found


def test_loggers(both: Both) -> None:
    (status, ours), (wanted, theirs) = both.each("GET", "/admin/loggers")
    assert status == wanted
    assert {json.dumps(sorted(each)) for each in ours.values()} == {
        json.dumps(sorted(each)) for each in theirs.values()
    }
    (status, ours), (wanted, theirs) = both.each("PUT", "/admin/loggers/failover.replicate", {"level": "DEBUG"})
    assert (status, ours) == (wanted, theirs)
    (status, ours), (wanted, theirs) = both.each("GET", "/admin/loggers/failover.replicate")
    assert (status, shape(ours), ours["level"]) == (wanted, shape(theirs), theirs["level"])
    ours_cluster, theirs_cluster = both.each(
        "PUT", "/admin/loggers/failover.replicate?scope=cluster", {"level": "INFO"}
    )
    assert ours_cluster == theirs_cluster == (204, None)


def bodies(flow: str) -> Iterator[object]:
    """Gives what one may send to alter offsets: right, wrong and strange, for all three connectors."""
    source, target = flow.split("->")
    part = {"cluster": source, "partition": 0, "topic": "t.x"}
    group = {"group": "g", "partition": 0, "topic": "t.x"}
    ends = {"sourceClusterAlias": source, "targetClusterAlias": target}
    yield from ({"offsets": []}, {}, {"offsets": None}, [], "x", {"offsets": {}}, {"other": 1}, {"offsets": [1]})
    yield from ({"offsets": [None]}, {"offsets": [{}]}, {"offsets": [], "more": 1})
    yield {"offsets": [{"partition": part, "offset": {"offset": 3}, "more": 1}]}
    yield {"offsets": [{"partition": part}, {"offset": {"offset": 3}}]}
    yield {"offsets": [{"partition": part, "offset": {"offset": at}} for at in (3, 4)]}
    offsets: tuple[object, ...] = (
        3,
        {},
        {"offset": None},
        {"offset": "3"},
        {"offset": 3.5},
        {"offset": -1},
        {"offset": 1 << 70},
    )
    places: tuple[object, ...] = (None, 3, {}, part | {"topic": None}, part | {"topic": 7}, part | {"partition": "0"})
    places += (part | {"partition": -1}, part | {"partition": 1.0}, part | {"partition": 1 << 40}, {"topic": "t.x"})
    for place, offset in (
        *((part, offset) for offset in offsets),
        *((place, {"offset": 3}) for place in places),
        *((part | more, {"offset": 3}) for more in ({"topic": ""}, {"cluster": "other"}, {"more": "x"})),
        ({"none": 1}, None),
        (part, {"offset": 5}),
        *((place, {"offset": at}) for place in (group, ends) for at in (0, 1, "0")),
        (group | {"group": None}, {"offset": 0}),
        (group | {"partition": "0"}, {"offset": 0}),
        (ends | {"sourceClusterAlias": 7}, {"offset": 0}),
        (ends, None),
    ):
        yield {"offsets": [{"partition": place, "offset": offset}]}


def listed(found: Any) -> list[str]:
    """Gives offsets in an order of their own."""
    return sorted(json.dumps(each, sort_keys=True) for each in found["offsets"])


def test_altering_offsets(both: Both) -> None:
    one: object = {"offsets": [{"partition": {"cluster": "A", "partition": 0, "topic": "t"}, "offset": None}]}
    for connector in ("none", both.name()):
        for method, body in (("PATCH", one), ("PATCH", {"offsets": []}), ("DELETE", None)):
            ours, theirs = both.each(method, f"/connectors/{connector}/offsets", body)
            assert ours == theirs, (method, body)
    for kind in KINDS.values():
        both.each("PUT", f"/connectors/{both.name(kind)}/stop")
    for kind in KINDS.values():
        both.until(("STOPPED", 0), kind)

    def offsets(path: str) -> list[str]:
        (status, ours), (wanted, theirs) = both.each("GET", path)
        assert (status, listed(ours)) == (wanted, listed(theirs))
        return listed(ours)

    copied = offsets(f"/connectors/{both.name()}/offsets")

    for kind in KINDS.values():
        path = f"/connectors/{both.name(kind)}/offsets"
        for given in bodies(both.flow):
            (status, ours), (wanted, theirs) = both.each("PATCH", path, given)
            assert status == wanted, (kind, given, ours, theirs)
            if "org.apache.kafka" not in theirs["message"] and "java." not in theirs["message"]:
                assert ours == theirs, (kind, given)
        if kind != KINDS["checkpoint"]:  # of which a worker without groups has none of its own
            offsets(path)
        for _ in range(2):
            ours, theirs = both.each("DELETE", path)
            assert ours == theirs
            offsets(path)
    for kind in KINDS.values():
        both.each("PUT", f"/connectors/{both.name(kind)}/resume")
    for kind in (SOURCE, HEARTBEAT):
        both.until(("RUNNING", 1), kind)
    # all of it is copied again, there as here
    for rest in (both.ours, both.theirs):

        def reached(rest: Rest = rest) -> bool:
            return listed(rest.get(f"/connectors/{both.name()}/offsets")) == copied

        both.worker.until(reached, what="all is copied again", seconds=90)
