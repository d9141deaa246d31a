"""ACLs read from and created on a broker that keeps them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.config.clients import ClientSettings
from failover.kafka.wire import acls as module
from failover.kafka.wire.acls import (
    Acl,
    AclOperation,
    AclPattern,
    AclPermission,
    create_acls,
    delete_acls,
    describe_acls,
)
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.primitives import Reader, Writer
from failover.model.names import Fault
from tests.unit.wire.fake_broker import Asked, FakeBroker
from tests.unit.wire.test_cluster import metadata

METADATA, DESCRIBE, CREATE, DELETE = 3, 29, 30, 31
FLEXIBLE = {METADATA: 9, DESCRIBE: 2, CREATE: 2, DELETE: 2}
READ, WRITE, ALLOW, DENY = AclOperation.READ, AclOperation.WRITE, AclPermission.ALLOW, AclPermission.DENY
ORDERS = Acl("orders", "User:Łucja", "*", READ, ALLOW)


class Authorizer:
    """Is a broker that keeps ACLs; ``error``: what it answers instead, ``refused``: principals it takes no ACL of."""

    def __init__(self, version: int = 3) -> None:
        self.acls: set[Acl] = set()
        self.error = 0
        self.refused: set[str] = set()
        self.sizes: list[int] = []
        self.answers_left_out = 0
        offered = {METADATA: (0, 12), **dict.fromkeys((DESCRIBE, CREATE, DELETE), (0, version))}
        script = {
            METADATA: lambda _: metadata({1: self.broker.port}),
            DESCRIBE: self._describe,
            CREATE: self._create,
            DELETE: self._delete,
        }
        self.broker: FakeBroker = FakeBroker(script, offered, flexible=FLEXIBLE)

    def run(self, work: Any, *, silence: float = 5) -> Any:
        async def inside() -> Any:
            async with self.broker:
                settings = ClientSettings((("127.0.0.1", self.broker.port),))
                async with WireCluster(settings, alias="b", silence=silence) as cluster:
                    return await work(cluster)

        return asyncio.run(inside())

    def _describe(self, asked: Any) -> bytes:
        reader, out = self._begin(asked)
        kind, name, pattern = reader.int8(), reader.nullable_string(), reader.int8()
        assert (name, reader.nullable_string(), reader.nullable_string()) == (None, None, None)
        assert (reader.int8(), reader.int8()) == (1, 1)
        reader.tags()
        assert reader.at == len(asked.body)
        out.int16(self.error)
        out.string("said so" if self.error else None)
        told = [] if self.error else [a for a in sorted(self.acls) if a.resource == kind and pattern in (1, a.pattern)]
        out.array(len(told))
        for acl in told:
            out.int8(acl.resource)
            out.string(acl.name)
            out.int8(acl.pattern)
            out.array(1)
            out.string(acl.principal)
            out.string(acl.host)
            out.int8(acl.operation)
            out.int8(acl.permission)
            out.tags()
            out.tags()
        out.tags()
        return bytes(out.data)

    def _create(self, asked: Any) -> bytes:
        reader, out = self._begin(asked)
        count = reader.array()
        self.sizes.append(count)
        out.array(count - self.answers_left_out)
        for _ in range(count):
            kind, name, pattern = reader.int8(), reader.string(), reader.int8()
            acl = Acl(name, reader.string(), reader.string(), reader.int8(), reader.int8(), kind, pattern)
            reader.tags()
            error = self.error or (42 if acl.principal in self.refused else 0)
            if not error:
                self.acls.add(acl)
            out.int16(error)
            out.string("said so" if error else None)
            out.tags()
        reader.tags()
        assert reader.at == len(asked.body)
        out.tags()
        return bytes(out.data)

    def _delete(self, asked: Any) -> bytes:
        reader, out = self._begin(asked)
        count = reader.array()
        out.array(count)
        for _ in range(count):
            kind, name, pattern = reader.int8(), reader.string(), reader.int8()
            acl = Acl(name, reader.string(), reader.string(), reader.int8(), reader.int8(), kind, pattern)
            reader.tags()
            matched = [acl] if acl in self.acls and not self.error else []
            error = 42 if acl.principal in self.refused else 0
            out.int16(self.error)
            out.string("said so" if self.error else None)
            out.array(len(matched))
            for one in matched:
                if not error:
                    self.acls.discard(one)
                out.int16(error)
                out.string("not that one" if error else None)
                out.int8(one.resource)
                out.string(one.name)
                out.int8(one.pattern)
                out.string(one.principal)
                out.string(one.host)
                out.int8(one.operation)
                out.int8(one.permission)
                out.tags()
            out.tags()
        reader.tags()
        assert reader.at == len(asked.body)
        out.tags()
        return bytes(out.data)

    def _begin(self, asked: Any) -> tuple[Reader, Writer]:
        flexible = asked.version >= FLEXIBLE[asked.key]
        out = Writer(flexible=flexible)
        out.int32(0)
        return Reader(asked.body, flexible=flexible), out


@pytest.mark.parametrize("version", [1, 2, 3])
def test_acls_are_created_and_read(version):
    broker = Authorizer(version)
    prefixed = Acl("or", "User:x", "10.0.0.1", WRITE, DENY, pattern=AclPattern.PREFIXED)
    group = Acl("g", "User:x", "*", READ, ALLOW, resource=module.AclResource.GROUP)

    async def work(cluster):
        created = await create_acls(cluster, [ORDERS, prefixed, group, ORDERS])
        literal = await describe_acls(cluster, pattern=AclPattern.LITERAL)
        return created, literal, await describe_acls(cluster)

    created, literal, every = broker.run(work)
    assert created == {ORDERS: None, prefixed: None, group: None}
    assert broker.sizes == [3]
    assert (literal, set(every)) == ((ORDERS,), {ORDERS, prefixed})


@pytest.mark.parametrize("version", [1, 2, 3])
def test_acls_are_deleted_one_by_one_by_what_they_are(version):
    broker = Authorizer(version)
    other, kept = ORDERS._replace(operation=WRITE), ORDERS._replace(principal="User:kept")
    broker.acls = {ORDERS, other, kept}
    absent = ORDERS._replace(name="absent")
    broker.refused = {"User:kept"}
    answers = broker.run(lambda cluster: delete_acls(cluster, [ORDERS, absent, kept]))
    assert answers == {ORDERS: None, absent: None, kept: Fault(42, "INVALID_REQUEST", "not that one")}
    assert broker.acls == {other, kept}
    broker.error = 31
    assert broker.run(lambda cluster: delete_acls(cluster, [other])) == {
        other: Fault(31, "CLUSTER_AUTHORIZATION_FAILED", "said so")
    }


def test_a_broker_without_an_authorizer_says_so():
    broker = Authorizer()
    broker.error = 54
    told = broker.run(describe_acls)
    assert told == Fault(54, "SECURITY_DISABLED", "said so")
    assert broker.run(lambda cluster: create_acls(cluster, [ORDERS])) == {ORDERS: told}


def test_one_acl_that_is_refused_costs_no_other():
    broker = Authorizer()
    broker.refused = {"Group:y"}
    bad = ORDERS._replace(principal="Group:y")
    created = broker.run(lambda cluster: create_acls(cluster, [bad, ORDERS]))
    assert created == {bad: Fault(42, "INVALID_REQUEST", "said so"), ORDERS: None}


def test_many_acls_go_in_several_requests():
    broker = Authorizer()
    many = [ORDERS._replace(name=f"t{number}") for number in range(450)]
    broker.run(lambda cluster: create_acls(cluster, many))
    assert broker.sizes == [200, 200, 50]
    assert broker.acls == set(many)


def test_an_answer_of_another_length_is_no_answer():
    broker = Authorizer()
    broker.answers_left_out = 1
    created = broker.run(lambda cluster: create_acls(cluster, [ORDERS]), silence=0.2)
    assert isinstance(created[ORDERS], Fault)


@pytest.mark.parametrize(
    ("acl", "text"),
    [
        (ORDERS, "ALLOW READ for User:Łucja from * on orders"),
        (ORDERS._replace(operation=99, permission=DENY), "DENY 99 for User:Łucja from * on orders"),
    ],
)
def test_how_an_acl_is_told(acl, text):
    assert str(acl) == text


BYTE = st.integers(0, 127)


@given(
    st.lists(st.builds(Acl, st.text(), st.text(), st.text(), BYTE, BYTE, BYTE, BYTE), unique=True, max_size=5),
    st.sampled_from([1, 2, 3]),
)
def test_every_acl_is_written_as_it_is_read(acls, version):
    broker = Authorizer(version)
    call = module._create_call(acls)
    asked = Asked(CREATE, version, memoryview(b"".join(call.encode(version))))
    assert call.decode(version, memoryview(broker._create(asked))) == dict.fromkeys(acls)
    assert broker.acls == set(acls)
