from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from failover.kafka.wire.acls import Acl, AclOperation, AclPattern, AclPermission, AclResource
from failover.replication.topic_acls import mirrored_acls

ALL, READ, WRITE = AclOperation.ALL, AclOperation.READ, AclOperation.WRITE
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY


def acl(operation, permission=ALLOW, name="t", **more):
    return Acl(name, "User:x", "*", operation, permission, **more)


def mirrored(*acls):
    return list(mirrored_acls(acls, replicates=lambda topic: topic != "own", rename="a.{}".format))


def test_writing_is_not_allowed_on_the_mirror():
    assert mirrored(acl(WRITE)) == []
    assert mirrored(acl(ALL)) == mirrored(acl(READ)) == mirrored(acl(ALL), acl(READ)) == [acl(READ, name="a.t")]


def test_what_is_denied_is_denied():
    assert mirrored(acl(WRITE, DENY), acl(ALL, DENY)) == [acl(WRITE, DENY, "a.t"), acl(ALL, DENY, "a.t")]


def test_every_other_operation_is_copied_as_it_is():
    for operation in set(AclOperation) - {ALL, WRITE}:
        assert mirrored(acl(operation)) == [acl(operation, name="a.t")]


def test_prefixes_groups_and_topics_that_are_not_mirrored_are_left_out():
    assert mirrored(acl(READ, pattern=AclPattern.PREFIXED)) == []
    assert mirrored(acl(READ, resource=AclResource.GROUP)) == []
    assert mirrored(acl(READ, name="own")) == []


def test_the_wildcard_is_a_name_as_any_other():
    assert mirrored(acl(READ, name="*")) == [acl(READ, name="a.*")]


NUMBER = st.integers(0, 5)
ACLS = st.lists(
    st.builds(
        Acl,
        st.sampled_from(["t", "u", "own"]),
        st.sampled_from(["User:x", "User:*"]),
        st.just("*"),
        st.integers(1, 9),
        st.integers(1, 3),
        NUMBER,
        NUMBER,
    )
)


@given(ACLS)
def test_nothing_is_granted_that_the_source_does_not_grant(acls):
    for made in mirrored(*acls):
        assert (made.permission, made.operation) not in {(ALLOW, WRITE), (ALLOW, ALL)}
        origin = made._replace(name=made.name.removeprefix("a."))
        grants = (
            {origin, origin._replace(operation=ALL)} if (made.permission, made.operation) == (ALLOW, READ) else {origin}
        )
        assert grants & set(acls)


@given(ACLS)
def test_each_denial_of_a_mirrored_topic_is_made(acls):
    denied = {one._replace(name=f"a.{one.name}") for one in acls if one.permission == DENY and one.name != "own"}
    made = {one for one in mirrored(*acls) if one.permission == DENY}
    assert made == {one for one in denied if (one.resource, one.pattern) == (AclResource.TOPIC, AclPattern.LITERAL)}
