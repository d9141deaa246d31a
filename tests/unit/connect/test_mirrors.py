"""Which connectors are MirrorMaker 2's, which flow each serves, and what its state means."""

from __future__ import annotations

from typing import Any

import pytest

from failover.connect.mirrors import Mirror, at_rest, choose, connector_states, exit_code, mirrors
from failover.connect.values import Expanded, Info, Status, Task, Worker
from failover.errors import ConnectorNotFound, UsageError
from tests.unit.connect.fake_connect import CHECKPOINT, SOURCE


def entry(name: str, config: dict[str, str], state: str = "RUNNING", tasks: tuple[str, ...] = ("RUNNING",)) -> Expanded:
    found = tuple(Task(number, each, "w", "boom\n\tat x") for number, each in enumerate(tasks))
    return Expanded(Info(name, config), Status(name, Worker(state), found))


def flow_config(class_: str, source: str = "a", target: str = "b") -> dict[str, str]:
    return {"connector.class": class_, "source.cluster.alias": source, "target.cluster.alias": target}


def one(**fields: Any) -> Mirror:
    return Mirror(**({"name": "c", "kind": "source", "source": "a", "target": "b", "state": "RUNNING"} | fields))


def test_they_are_known_by_class_in_every_spelling_and_strimzi_s_by_name():
    found = mirrors({
        "mm2-source": entry("mm2-source", flow_config(SOURCE)),
        "short": entry("short", flow_config("MirrorCheckpointConnector")),
        "shorter": entry("shorter", flow_config("MirrorHeartbeat")),
        "eu->us.MirrorSourceConnector": entry(
            "eu->us.MirrorSourceConnector", {"connector.class": SOURCE, "source.cluster.alias": "eu"}
        ),
        "jdbc": entry("jdbc", {"connector.class": "io.example.JdbcSourceConnector"}),
        "new": Expanded(Info("new", flow_config(CHECKPOINT, "x", "y")), None),
    })  # fmt: skip
    assert [(each.name, each.kind, each.flow, each.operator) for each in found] == [
        ("mm2-source", "source", "a->b", False),
        ("short", "checkpoint", "a->b", False),
        ("shorter", "heartbeat", "a->b", False),
        ("eu->us.MirrorSourceConnector", "source", "eu->us", True),
        ("new", "checkpoint", "x->y", False),
    ]
    assert found[-1].state == "UNKNOWN"


@pytest.mark.parametrize(
    ("state", "tasks", "code"),
    [
        ("RUNNING", ("RUNNING",), 0),
        ("RUNNING", (), 4),
        ("PAUSED", ("PAUSED",), 4),
        ("STOPPED", (), 4),
        ("RUNNING", ("UNASSIGNED",), 4),
        ("RUNNING", ("RUNNING", "FAILED"), 3),
        ("FAILED", (), 3),
    ],
)
def test_the_exit_status_of_a_state(state, tasks, code):
    assert exit_code(mirrors({"c": entry("c", flow_config(SOURCE), state, tasks)})) == code


def test_a_checkpoint_connector_without_groups_has_no_task_and_is_well():
    assert exit_code([one(kind="checkpoint")]) == 0
    assert exit_code([one(kind="source")]) == 4


def test_the_problem_is_the_task_s_first_line():
    [found] = mirrors({"c": entry("c", flow_config(SOURCE), tasks=("RUNNING", "FAILED"))})
    assert (found.condition, found.problem) == ("FAILED", "boom")


def test_what_each_verb_waits_for():
    paused = one(state="PAUSED", tasks=(Task(0, "PAUSED"),))
    assert at_rest(paused, verb="pause")
    assert not at_rest(one(state="PAUSED", tasks=(Task(0, "RUNNING"),)), verb="pause")
    assert not at_rest(paused, verb="stop")
    assert at_rest(one(state="STOPPED"), verb="stop")
    assert not at_rest(one(state="STOPPED", tasks=(Task(0, "RUNNING"),)), verb="stop")
    assert at_rest(one(tasks=(Task(0, "RUNNING"),)), verb="resume")


def test_choosing_by_name_by_flow_or_the_only_flow():
    ab, ba = one(name="ab"), one(name="ba", source="b", target="a")
    assert choose([ab, ba], ["ba"], None, None, at="here") == [ba]
    assert choose([ab, ba], [], "a", "b", at="here") == [ab]
    assert choose([ab], [], None, None, at="here") == [ab]
    with pytest.raises(UsageError, match="several flows: a->b, b->a"):
        choose([ab, ba], [], None, None, at="here")
    with pytest.raises(ConnectorNotFound, match="called x") as raised:
        choose([ab], ["x"], None, None, at="here")
    assert raised.value.hint == "it has: ab"
    with pytest.raises(ConnectorNotFound, match=r"of c->\*"):
        choose([ab], [], "c", None, at="here")


def test_states_for_other_commands_come_in_one_request(fake):
    from failover.connect.access import ConnectAccess
    from failover.connect.client import ConnectClient

    fake.add_flow()
    fake.add_flow("b", "a")
    with ConnectClient(ConnectAccess((fake.url,))) as client:
        assert {each.flow for each in connector_states(client, "a", "b")} == {"a->b"}
    assert fake.requests == ["GET /connectors?expand=info&expand=status"]
