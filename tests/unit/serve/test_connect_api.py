"""Kafka Connect's REST over flows that are not there."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from failover.errors import BrokerError
from failover.model.names import TopicPartition
from failover.replication.switch import Target
from failover.serve.board import Board
from tests.unit.serve.scenes import SECRET, Choices, asked, board, entry, flow, partition

SOURCE, CHECKPOINT, HEARTBEAT = (f"A->B.Mirror{kind}Connector" for kind in ("Source", "Checkpoint", "Heartbeat"))
ONE = f"/connectors/{SOURCE}"


def call(made, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    async def ask(client):
        answer = await client.request(method, path, json=body)
        text = await answer.text()
        assert not text or answer.content_type == "application/json"
        return answer.status, (await answer.json() if text else None)

    found: tuple[int, Any] = asked(made, ask)
    return found


def test_reading(tmp_path):
    made = board(tmp_path, flow())

    async def ask(client):
        paths = ["/", "/connectors", ONE, f"{ONE}/status", f"{ONE}/tasks", f"{ONE}/tasks/0/status", f"{ONE}/topics"]
        return {path: await (await client.get(path)).json() for path in paths}

    found = asked(made, ask)
    assert found["/"]["kafka_cluster_id"] == "cluster-of-B"
    assert found["/connectors"] == [SOURCE, CHECKPOINT, HEARTBEAT]
    info = found[ONE]
    assert (info["name"], info["type"]) == (SOURCE, "source")
    assert info["tasks"] == [{"connector": SOURCE, "task": 0}]
    assert info["config"]["tasks.max"] == "4"
    assert info["config"]["name"] == SOURCE
    status = found[f"{ONE}/status"]
    assert status["connector"]["state"] == "RUNNING"
    assert status["tasks"] == [{"id": 0, **status["connector"]}]
    assert status["tasks"][0] == found[f"{ONE}/tasks/0/status"]
    (task,) = found[f"{ONE}/tasks"]
    assert task["id"] == {"connector": SOURCE, "task": 0}
    assert task["config"]["task.assigned.partitions"] == "orders-0,orders-1,pay.ments-0"
    assert found[f"{ONE}/topics"] == {SOURCE: {"topics": ["A.orders"]}}


@pytest.mark.parametrize(
    "path", ["/connectors", ONE, f"{ONE}/status", f"{ONE}/offsets", "/connector-plugins", "/health"]
)
def test_a_slash_at_the_end_changes_nothing(tmp_path, path):
    made = board(tmp_path, flow())
    assert call(made, "GET", f"{path}/") == call(made, "GET", path)
    assert call(made, "GET", f"{path}//")[0] == 404


def test_a_slash_at_the_end_of_a_verb(tmp_path):
    made = board(tmp_path, flow())
    assert call(made, "PUT", f"{ONE}/pause/") == (202, None)
    assert call(made, "POST", "/connectors/", {})[0] == 405


def test_expand(tmp_path):
    made = board(tmp_path, flow())
    _, both = call(made, "GET", "/connectors?expand=status&expand=info&expand=else")
    assert {name: set(each) for name, each in both.items()} == {
        name: {"status", "info"} for name in (SOURCE, CHECKPOINT, HEARTBEAT)
    }
    _, one = call(made, "GET", "/connectors?expand=status")
    assert one[HEARTBEAT]["status"]["connector"]["state"] == "RUNNING"


PART = {"cluster": "A", "partition": 0, "topic": "orders"}
GROUP = {"group": "billing", "topic": "A.orders", "partition": 0}
ENDS = {"sourceClusterAlias": "A", "targetClusterAlias": "B"}


def stopped(tmp_path):
    """Is a board whose connectors are stopped, and what is chosen there."""
    choices = Choices()
    made = Board([entry(tmp_path, flow(), choices)])
    for connector in made.connectors.values():
        connector.switch.turn(Target.STOPPED)
        connector.switch.obeyed(Target.STOPPED)
    return made, choices


def altering(partition: Any, offset: Any) -> dict[str, Any]:
    return {"offsets": [{"partition": partition, "offset": offset}]}


def test_offsets_are_altered_only_while_stopped(tmp_path):
    made = board(tmp_path, flow())
    for method, body in (("PATCH", altering(PART, {"offset": 4})), ("DELETE", None)):
        for target in (Target.RUNNING, Target.PAUSED):
            made.connectors[SOURCE].switch.turn(target)
            made.connectors[SOURCE].switch.obeyed(target)
            status, answer = call(made, method, f"{ONE}/offsets", body)
            assert status == 400
            assert answer["message"].startswith("Connectors must be in the STOPPED state before their offsets")
        assert call(made, method, "/connectors/none/offsets", body)[0] == 404
    assert call(made, "PATCH", f"{ONE}/offsets", {"offsets": []})[1]["message"].startswith("Partitions / offsets need")


def test_altered_offsets_are_the_next_ones_to_copy(tmp_path):
    made, choices = stopped(tmp_path)
    body = {
        "offsets": [
            {"partition": PART, "offset": {"offset": 3}},
            {"partition": PART | {"partition": 1}, "offset": None},
            {"partition": PART, "offset": {"offset": 4, "more": 1}},
        ]
    }
    done = {"message": "The offsets for this connector have been altered successfully"}
    assert call(made, "PATCH", f"{ONE}/offsets", body) == (200, done)
    assert choices.made == [{TopicPartition("orders", 0): 5, TopicPartition("orders", 1): 0}]
    done = {"message": "The offsets for this connector have been reset successfully"}
    assert call(made, "DELETE", f"{ONE}/offsets") == (200, done)
    assert choices.made[1:] == [None]


def test_what_cannot_be_chosen_is_said(tmp_path):
    made, choices = stopped(tmp_path)
    choices.answer = False
    assert call(made, "DELETE", f"{ONE}/offsets")[0] == 400
    choices.answer = BrokerError("it is full", number=1, name="FULL", hint="make room")
    status, answer = call(made, "PATCH", f"{ONE}/offsets", altering(PART, {"offset": 3}))
    assert (status, answer["message"]) == (500, "it is full; make room")


@pytest.mark.parametrize(
    ("connector", "partition", "offset", "message"),
    [
        (SOURCE, None, {"offset": 3}, "Source partitions may not be null"),
        (SOURCE, {}, {"offset": 3}, "Source partition {} is missing the 'cluster' key, which is required"),
        (SOURCE, PART | {"topic": 7}, {"offset": 3}, "invalid value 7 for the 'topic' key, which must be a string"),
        (SOURCE, PART | {"topic": None}, {"offset": 3}, "topic=null} has an invalid value null for the 'topic' key"),
        (SOURCE, PART | {"partition": -1}, {"offset": 3}, "-1 for the 'partition' key, which cannot be negative"),
        (SOURCE, PART | {"partition": 1 << 31}, {"offset": 3}, "for the 'partition' key, which must be an integer"),
        (SOURCE, PART | {"partition": True}, {"offset": 3}, "true for the 'partition' key, which must be an integer"),
        (SOURCE, PART, {}, "Source offset {} for source partition {cluster=A, partition=0, topic=orders} is missing"),
        (SOURCE, PART, {"offset": 1.5}, "invalid value 1.5 for the 'offset' key, which must be an integer"),
        (SOURCE, PART, {"offset": -1}, "invalid value -1 for the 'offset' key, which cannot be negative"),
        (SOURCE, PART, {"offset": 1 << 63}, "Offsets may only contain primitive types as values, but field offset"),
        (SOURCE, PART, 3, '"partition" and "offset" must be objects or null'),
        (CHECKPOINT, PART, {"offset": 0}, "is missing the 'group' key, which is required"),
        (CHECKPOINT, GROUP, {"offset": 1}, "invalid value 1 for the 'offset' key; the only accepted value is 0"),
        (HEARTBEAT, GROUP, {"offset": 0}, "is missing the 'sourceClusterAlias' key, which is required"),
    ],
)
def test_offsets_that_are_none(tmp_path, connector, partition, offset, message):
    made, choices = stopped(tmp_path)
    status, answer = call(made, "PATCH", f"/connectors/{connector}/offsets", altering(partition, offset))
    assert status == 500
    assert message in answer["message"]
    assert choices.made == []


def test_offsets_that_nobody_reads_are_kept_until_the_connector_writes_its_own(tmp_path):
    made, choices = stopped(tmp_path)
    elsewhere = {"cluster": "C", "partition": 0, "topic": "orders"}
    for connector, own, given in (
        (HEARTBEAT, ENDS, ENDS | {"targetClusterAlias": "C"}),
        (CHECKPOINT, {"partition": 0, "topic": "A.orders", "group": "billing"}, GROUP | {"group": "else"}),
        (SOURCE, PART, elsewhere),
    ):
        path = f"/connectors/{connector}/offsets"
        assert call(made, "PATCH", path, altering(given, {"offset": 0}))[0] == 200
        shown = [each["partition"] for each in call(made, "GET", path)[1]["offsets"]]
        assert (shown[0], shown[-1]) == (own, given)
        if connector != SOURCE:
            assert call(made, "PATCH", path, altering(own, None))[0] == 200
            assert [each["partition"] for each in call(made, "GET", path)[1]["offsets"]] == [given]
            assert call(made, "DELETE", path)[0] == 200
            assert call(made, "GET", path)[1]["offsets"] == []
            made.connectors[connector].switch.turn(Target.RUNNING)
            made.connectors[connector].switch.obeyed(Target.RUNNING)
            assert [each["partition"] for each in call(made, "GET", path)[1]["offsets"]] == [own]
    assert choices.made == []


def test_offsets_are_those_of_the_last_record_copied(tmp_path):
    made = board(tmp_path, flow(partition(upstream=42), partition(number=1, upstream=0), partition("x", upstream=-1)))
    assert call(made, "GET", f"{ONE}/offsets")[1] == {
        "offsets": [{"partition": {"cluster": "A", "partition": 0, "topic": "orders"}, "offset": {"offset": 41}}]
    }
    assert call(made, "GET", f"/connectors/{CHECKPOINT}/offsets")[1] == {
        "offsets": [{"partition": {"partition": 0, "topic": "A.orders", "group": "billing"}, "offset": {"offset": 0}}]
    }
    assert call(made, "GET", f"/connectors/{HEARTBEAT}/offsets")[1] == {
        "offsets": [{"partition": {"sourceClusterAlias": "A", "targetClusterAlias": "B"}, "offset": {"offset": 0}}]
    }


def test_no_secret_is_in_a_configuration(tmp_path):
    made = board(tmp_path, flow())

    async def ask(client):
        paths = ["/connectors?expand=info&expand=status", *(f"/connectors/{name}/config" for name in made.connectors)]
        paths += [f"/connectors/{name}/tasks" for name in made.connectors]
        return [await (await client.get(path)).text() for path in paths]

    for text in asked(made, ask):
        assert SECRET not in text
        assert "********" in text


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/connectors/none/status", 404, "Connector none not found"),
        ("PUT", "/connectors/none/pause", 404, "Connector none not found"),
        ("GET", f"{ONE}/tasks/1/status", 404, "No status found for task"),
        ("GET", f"{ONE}/tasks/x/status", 404, "No status found for task"),
        ("POST", f"{ONE}/tasks/1/restart", 404, "No status found for task"),
        ("PUT", f"{ONE}/topics/reset", 403, "Topic tracking reset is disabled."),
        ("POST", "/connectors", 405, "configuration"),
        ("DELETE", ONE, 405, "configuration"),
        ("PUT", f"{ONE}/config", 405, "configuration"),
        ("DELETE", "/", 405, "HTTP 405 Method Not Allowed"),
        ("GET", "/nothing", 404, "HTTP 404 Not Found"),
        ("GET", "/connector-plugins/none/config", 404, "Unknown plugin none"),
        ("GET", "/admin/loggers/urllib3", 404, "not found"),
    ],
)
def test_errors_are_worded_in_json(tmp_path, method, path, status, words):
    code, body = call(board(tmp_path, flow()), method, path)
    assert (code, body["error_code"]) == (status, status)
    assert words in body["message"]


def test_what_is_wanted_reaches_the_switch(tmp_path):
    made = board(tmp_path, flow())
    switch = made.connectors[SOURCE].switch
    for verb, code, target in [
        ("pause", 202, Target.PAUSED),
        ("stop", 204, Target.STOPPED),
        ("resume", 202, Target.RUNNING),
    ]:
        assert call(made, "PUT", f"{ONE}/{verb}") == (code, None)
        assert switch.target is target
    assert made.connectors[CHECKPOINT].switch.turns == 0


def test_a_state_shows_once_it_is_reached(tmp_path):
    made = board(tmp_path, flow())
    switch = made.connectors[SOURCE].switch
    switch.turn(Target.STOPPED)
    assert call(made, "GET", f"{ONE}/status")[1]["connector"]["state"] == "RUNNING"
    switch.obeyed(Target.STOPPED)
    status = call(made, "GET", f"{ONE}/status")[1]
    assert (status["connector"]["state"], status["tasks"]) == ("STOPPED", [])
    assert call(made, "GET", f"{ONE}/tasks")[1] == []


def test_restart(tmp_path):
    restarted: list[str] = []
    made = board(tmp_path, flow(), restarted)
    switch = made.connectors[SOURCE].switch
    assert call(made, "POST", f"{ONE}/restart") == (204, None)
    assert switch.turns == 1
    status, body = call(made, "POST", f"{ONE}/restart?includeTasks=true&onlyFailed=true")
    assert (status, body["name"], switch.turns) == (202, SOURCE, 1)
    assert call(made, "POST", f"{ONE}/tasks/0/restart") == (204, None)
    assert (switch.turns, restarted) == (2, [])
    made.flows["A->B"].failed(ValueError("lost"), again=False)
    assert call(made, "GET", f"{ONE}/status")[1]["connector"]["trace"] == "lost"
    assert call(made, "POST", f"{ONE}/restart?onlyFailed=true")[0] == 202
    assert restarted == ["A->B"]


def test_health(tmp_path):
    made = board(tmp_path)
    assert call(made, "GET", "/health") == (
        503,
        {"status": "starting", "message": "the clusters have not answered yet"},
    )
    assert call(board(tmp_path, flow()), "GET", "/health")[0] == 200
    made.flows["A->B"].failed(ValueError(SECRET), again=True)
    status, body = call(made, "GET", "/health")
    assert (status, body["status"]) == (500, "unhealthy")
    assert body["message"] == "A->B does not run; the log says why"
    assert SECRET not in str(body)
    assert call(made, "GET", f"{ONE}/status")[1]["connector"]["state"] == "RESTARTING"


def test_plugins(tmp_path):
    made = board(tmp_path, flow())
    status, found = call(made, "GET", "/connector-plugins")
    assert status == 200
    assert [each["class"].rpartition(".")[2] for each in found] == [
        "MirrorSourceConnector",
        "MirrorCheckpointConnector",
        "MirrorHeartbeatConnector",
    ]
    _, settings = call(made, "GET", "/connector-plugins/MirrorSource/config")
    assert {"name": "refresh.topics.enabled", "type": "BOOLEAN", "default_value": "true"}.items() <= {
        key: value for each in settings if each["name"] == "refresh.topics.enabled" for key, value in each.items()
    }.items()


def test_validation_names_what_is_wrong(tmp_path):
    path = "/connector-plugins/MirrorSourceConnector/config/validate"
    given = {
        "name": "x",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "offset.lag.max": "many",
        "refresh.topics.enabled": "true # yes",
        "offset-syncs.topic.location": "nowhere",
    }
    status, found = call(board(tmp_path, flow()), "PUT", path, given)
    wrong = {each["value"]["name"]: each["value"]["errors"] for each in found["configs"] if each["value"]["errors"]}
    assert status == 200
    assert set(wrong) == {
        "source.cluster.alias",
        "offset.lag.max",
        "refresh.topics.enabled",
        "offset-syncs.topic.location",
    }
    assert found["error_count"] == 4
    status, body = call(board(tmp_path, flow()), "PUT", path, {"connector.class": "MirrorHeartbeatConnector"})
    assert (status, body["error_code"]) == (400, 400)
    assert call(board(tmp_path, flow()), "PUT", path, ["no", "object"])[0] == 400


@pytest.mark.parametrize(
    ("kind", "given", "wrong"),
    [
        ("Source", {"emit.offset-syncs.enabled": "false"}, set()),
        ("Source", {"emit.offset-syncs.enabled": "false", "offset-syncs.topic.replication.factor": "1"}, {"syncs"}),
        ("Checkpoint", {"emit.checkpoints.enabled": "false"}, {"checkpoints"}),
        ("Checkpoint", {"emit.checkpoints.enabled": "false", "sync.group.offsets.enabled": "true"}, {"checkpoints"}),
        ("Checkpoint", {"emit.offset-syncs.enabled": "false"}, {"syncs"}),
        ("Heartbeat", {"emit.offset-syncs.enabled": "false"}, set()),
    ],
)
def test_validation_knows_what_does_not_go_together(tmp_path, kind, given, wrong):
    name = f"Mirror{kind}Connector"
    base = {"name": "x", "connector.class": name, "source.cluster.alias": "A"}
    _, found = call(board(tmp_path, flow()), "PUT", f"/connector-plugins/{name}/config/validate", base | given)
    keys = {
        "syncs": "emit.offset-syncs.enabled",
        "checkpoints": "emit.checkpoints.enabled",
    }
    named = {each["value"]["name"] for each in found["configs"] if each["value"]["errors"]}
    assert named == {keys[each] for each in wrong}


def test_levels_of_loggers(tmp_path):
    logger = logging.getLogger("failover.serve.server")
    before = logger.level
    try:
        path = "/admin/loggers/failover.serve.server"
        assert call(board(tmp_path), "PUT", path, {"level": "TRACE"}) == (200, ["failover.serve.server"])
        assert logger.level == logging.DEBUG
        assert call(board(tmp_path), "GET", path)[1]["level"] == "DEBUG"
        assert "failover.serve.server" in call(board(tmp_path), "GET", "/admin/loggers")[1]
        assert call(board(tmp_path), "PUT", path, {"level": "LOUD"})[0] == 404
        assert call(board(tmp_path), "PUT", path, {})[0] == 400
        assert call(board(tmp_path), "PUT", "/admin/loggers/failover.librdkafka", {"level": "DEBUG"})[0] == 404
    finally:
        logger.setLevel(before)


def test_a_defect_says_nothing_of_itself(tmp_path, caplog):
    made = board(tmp_path, flow())
    made.flows["A->B"].open = None
    made.flows["A->B"].heartbeat = lambda: 1 // 0

    status, body = call(made, "GET", f"/connectors/{HEARTBEAT}/offsets")
    assert (status, body) == (500, {"error_code": 500, "message": "unexpected error; the log has it"})
    assert "ZeroDivisionError" in caplog.text


def test_a_flow_that_copies_nothing_has_its_heartbeats_alone(tmp_path):
    from failover.serve.board import Board, FlowEntry

    alone = FlowEntry(entry(tmp_path).config, ("heartbeat",))
    made = Board([alone])
    assert list(made.connectors) == [HEARTBEAT]
    assert made.health == "healthy"
    assert made.connectors[HEARTBEAT].state.value == "UNASSIGNED"
    alone.heartbeat = lambda: 5
    assert made.connectors[HEARTBEAT].state.value == "RUNNING"
