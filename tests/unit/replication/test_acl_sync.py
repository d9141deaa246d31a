from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from failover.kafka.faults import fault
from failover.kafka.wire.acls import Acl, AclOperation, AclPermission
from failover.replication import acl_sync as module
from failover.replication.acl_sync import AclSync

READ = Acl("t", "User:x", "*", AclOperation.READ, AclPermission.ALLOW)
MIRRORED = READ._replace(name="a.t")


class Cluster:
    """Keeps ACLs; ``fault``: its answer to everything, ``refused``: ACL → its answer to that."""

    def __init__(self, alias, *acls):
        self.alias = alias
        self.acls = dict.fromkeys(acls)
        self.fault = None
        self.refused = {}
        self.asked = []

    async def describe(self, pattern):
        self.asked.append("describe")
        return self.fault or tuple(self.acls)

    async def create(self, acls):
        self.asked.append(f"create {len(acls)}")
        answers = {acl: self.fault or self.refused.get(acl) for acl in acls}
        self.acls |= {acl: None for acl, reason in answers.items() if reason is None}
        return answers


class Scene:
    def __init__(self, monkeypatch):
        self.a, self.b = Cluster("a", READ), Cluster("b")
        monkeypatch.setattr(module, "describe_acls", lambda cluster, pattern: cluster.describe(pattern))
        monkeypatch.setattr(module, "create_acls", lambda cluster, acls: cluster.create(acls))
        both: Any = self.a, self.b
        self.work = AclSync(*both, replicates=lambda topic: topic != "own", rename="a.{}".format)

    def rounds(self, number=1):
        for _ in range(number):
            asyncio.run(self.work.sync())


@pytest.fixture
def scene(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    return Scene(monkeypatch)


def lines(caplog):
    return [record.getMessage() for record in caplog.records]


def test_what_is_there_costs_no_request(scene, caplog):
    scene.rounds(3)
    assert list(scene.b.acls) == [MIRRORED]
    assert scene.b.asked == ["describe", "create 1", "describe", "describe"]
    assert lines(caplog) == ["1 topic ACL of a on b: ALLOW READ for User:x from * on a.t"]


def test_only_what_is_new_is_created_and_nothing_is_removed(scene):
    scene.b.acls = {MIRRORED: None, READ: None}
    scene.a.acls = {READ._replace(name="u"): None}
    scene.rounds(2)
    assert list(scene.b.acls) == [MIRRORED, READ, READ._replace(name="a.u")]
    assert scene.b.asked == ["describe", "create 1", "describe"]


def test_a_source_without_acls_of_mirrored_topics_costs_the_target_nothing(scene):
    scene.a.acls = {READ._replace(name="own"): None}
    scene.rounds()
    assert scene.b.asked == []


@pytest.mark.parametrize("side", ["a", "b"])
def test_no_authorizer_is_said_once_and_is_no_warning(scene, caplog, side):
    getattr(scene, side).fault = fault(54)
    scene.rounds(3)
    [record] = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.INFO, f"ACL sync off: no authorizer on {side}")
    assert not any(each.startswith("create") for each in scene.b.asked)


@pytest.mark.parametrize(
    ("side", "text"),
    [
        ("a", "topic ACLs cannot be read on a: CLUSTER_AUTHORIZATION_FAILED; grant DESCRIBE on the cluster a"),
        ("b", "topic ACLs cannot be created on b: CLUSTER_AUTHORIZATION_FAILED; grant ALTER (DESCRIBE is in it) on"),
    ],
)
def test_a_missing_right_is_said_once_by_its_name(scene, caplog, side, text):
    getattr(scene, side).fault = fault(31)
    scene.rounds(3)
    [line] = lines(caplog)
    assert line.startswith(text)
    assert line.endswith("or set sync.topic.acls.enabled=false")
    getattr(scene, side).fault = None
    scene.rounds(2)
    assert lines(caplog)[1:] == [
        "1 topic ACL of a on b: ALLOW READ for User:x from * on a.t",
        "topic ACLs of a are copied to b again",
    ]


def test_an_acl_that_is_refused_is_said_and_sent_once_and_costs_no_other(scene, caplog):
    bad = READ._replace(principal="nobody")
    scene.a.acls[bad] = None
    scene.b.refused[bad._replace(name="a.t")] = fault(42, "no such kind of principal")
    scene.rounds(3)
    assert list(scene.b.acls) == [MIRRORED]
    assert scene.b.asked == ["describe", "create 2", "describe", "describe"]
    assert lines(caplog)[1:] == [
        "cluster b refuses 1 topic ACL (INVALID_REQUEST: no such kind of principal): "
        "ALLOW READ for nobody from * on a.t"
    ]


@pytest.mark.parametrize("number", [-185, 31, 41])
def test_what_is_no_fault_of_an_acl_is_tried_again(scene, number):
    scene.b.refused[MIRRORED] = fault(number)
    scene.rounds(2)
    assert scene.b.asked == ["describe", "create 1"] * 2
    scene.b.refused.clear()
    scene.rounds()
    assert list(scene.b.acls) == [MIRRORED]


def test_of_many_some_are_named(scene, caplog):
    scene.a.acls = dict.fromkeys(READ._replace(name=f"t{number}") for number in range(5))
    scene.rounds()
    [line] = lines(caplog)
    assert line.startswith("5 topic ACLs of a on b: ")
    assert line.endswith("on a.t2; and 2 more")
