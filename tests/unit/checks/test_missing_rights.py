"""Rights and users that applications have on the source and would miss on the target."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from typing import Any

import msgspec
import pytest

from failover.checks.missing_rights import missing_rights
from failover.model.names import Fault
from failover.model.plan import Plan, Severity
from failover.model.rights import AclBinding, ScramUser
from failover.model.snapshot import Snapshot
from failover.report.kafka_acls import kafka_acls
from tests.unit.planning.worlds import exact, plan, world

NO_AUTHORIZER = Fault(54, "SECURITY_DISABLED")
DENIED = Fault(31, "CLUSTER_AUTHORIZATION_FAILED")


def acl(resource: str, name: str, operation: str = "READ", principal: str = "User:app", **more: str) -> AclBinding:
    fields = {"pattern": "literal", "host": "*", "permission": "ALLOW"} | more
    return AclBinding(resource=resource, name=name, operation=operation, principal=principal, **fields)


def scene(
    there: list[AclBinding] | None,
    here: list[AclBinding] | None,
    *,
    users: tuple[list[str], list[str]] = ([], []),
    untold: dict[str, Fault] | None = None,
    **more: Any,
) -> Snapshot:
    snapshot = world(source_commits={0: 500}, translations={0: exact(500, 490)}, **more)
    found = [tuple(ScramUser(name, (("SCRAM-SHA-512", 4096),)) for name in names) for names in users]
    source = msgspec.structs.replace(snapshot.source, acls=None if there is None else tuple(there), users=found[0])
    target = msgspec.structs.replace(
        snapshot.target,
        acls=None if here is None else tuple(here),
        users=found[1],
        untold=untold or {},
        bootstrap=("standby-1:9092",),
    )
    return msgspec.structs.replace(snapshot, source=source, target=target)


def missing(there: list[AclBinding], here: list[AclBinding], **more: Any) -> list[AclBinding]:
    snapshot = scene(there, here, **more)
    return list(missing_rights(snapshot, plan(snapshot).groups).acls)


@pytest.mark.parametrize(
    ("on_source", "wanted"),
    [
        # a consumer needs the copy, and the plain topic for what is written after the failover
        (acl("topic", "orders"), [acl("topic", "orders"), acl("topic", "primary.orders")]),
        # nobody but the mirror writes to copies
        (acl("topic", "orders", "WRITE"), [acl("topic", "orders", "WRITE")]),
        (acl("topic", "orders", "ALL"), [acl("topic", "orders", "ALL"), acl("topic", "primary.orders")]),
        (
            acl("topic", "orders", "WRITE", permission="DENY"),
            [
                acl("topic", "orders", "WRITE", permission="DENY"),
                acl("topic", "primary.orders", "WRITE", permission="DENY"),
            ],
        ),
        (
            acl("topic", "ord", pattern="prefixed"),
            [acl("topic", "ord", pattern="prefixed"), acl("topic", "primary.ord", pattern="prefixed")],
        ),
        (acl("topic", "*"), [acl("topic", "*")]),
        (acl("topic", "elsewhere"), []),
        (acl("topic", "elsewhere", pattern="prefixed"), []),
        (acl("group", "payments"), [acl("group", "payments")]),
        (acl("group", "pay", pattern="prefixed"), [acl("group", "pay", pattern="prefixed")]),
        (acl("group", "others"), []),
        (acl("cluster", "kafka-cluster", "ALTER"), []),
    ],
)
def test_what_an_acl_of_the_source_asks_for_on_the_target(on_source: AclBinding, wanted: list[AclBinding]) -> None:
    assert sorted(missing([on_source], [])) == sorted(wanted)


@pytest.mark.parametrize(
    ("on_target", "covers"),
    [
        (acl("group", "payments"), True),
        (acl("group", "*"), True),
        (acl("group", "pay", pattern="prefixed"), True),
        (acl("group", "payments", "ALL"), True),
        (acl("group", "payments", principal="User:*"), True),
        (acl("group", "payments", host="10.0.0.7"), False),
        (acl("group", "payments", principal="User:other"), False),
        (acl("group", "payments", "DESCRIBE"), False),
        (acl("group", "payments", permission="DENY"), False),
        (acl("group", "payment"), False),
        (acl("topic", "payments"), False),
    ],
)
def test_what_covers_a_right(on_target: AclBinding, covers: bool) -> None:
    assert (missing([acl("group", "payments")], [on_target]) == []) is covers


def test_reading_covers_describing_and_not_the_other_way_round() -> None:
    assert missing([acl("group", "payments", "DESCRIBE")], [acl("group", "payments", "READ")]) == []
    denied = acl("group", "payments", "DESCRIBE", permission="DENY")
    assert missing([denied], [acl("group", "payments", "READ", permission="DENY")]) == [denied]


def test_a_prefix_is_covered_by_a_shorter_one_and_by_no_single_name() -> None:
    prefix = acl("group", "pay", pattern="prefixed")
    assert missing([prefix], [acl("group", "p", pattern="prefixed")]) == []
    assert missing([prefix], [acl("group", "pay")]) == [prefix]


def test_transactional_ids_and_idempotence_follow_the_principals_of_the_flow() -> None:
    more = [
        acl("transactional-id", "settle", "WRITE"),
        acl("cluster", "kafka-cluster", "IDEMPOTENT_WRITE"),
        acl("transactional-id", "settle", "WRITE", principal="User:stranger"),
    ]
    assert missing(more, []) == []
    found = missing([acl("topic", "orders", "WRITE"), *more], [])
    assert set(found) == {acl("topic", "orders", "WRITE"), *more[:2]}


def test_users_named_by_the_acls_are_missed_and_all_where_there_are_none() -> None:
    users = (["app", "stranger", "known"], ["known"])

    def named(there: list[AclBinding] | None) -> list[str]:
        snapshot = scene(there, [], users=users)
        return [user.name for user in missing_rights(snapshot, plan(snapshot).groups).users]

    assert named([acl("group", "payments")]) == ["app"]
    assert named([acl("group", "payments", principal="User:*")]) == ["app", "stranger"]
    assert named(None) == ["app", "stranger"]
    assert named([acl("group", "others")]) == []


def codes(made: Plan) -> dict[str, Severity]:
    return {finding.code: finding.severity for finding in made.findings}


def test_the_findings_say_what_is_missing_what_is_off_and_what_was_not_told() -> None:
    there = [acl("topic", "orders")]
    made = plan(scene(there, []))
    assert codes(made)["acl-missing"] is Severity.WARNING
    assert "--format kafka-acls" in next(f.remedy for f in made.findings if f.code == "acl-missing")
    assert len(made.missing_acls) == 2
    assert (
        not {"acl-missing", "authorizer-missing", "not-checked"}
        & codes(plan(scene(there, list(made.missing_acls)))).keys()
    )

    off = codes(plan(scene(there, None, untold={"ACLs": NO_AUTHORIZER})))
    assert off["authorizer-missing"] is Severity.WARNING
    assert "acl-missing" not in off
    assert codes(plan(scene(None, None, untold={"ACLs": NO_AUTHORIZER})))["authorizer-missing"] is Severity.INFO

    untold = plan(scene(there, None, untold={"ACLs": DENIED, "SCRAM users": DENIED}))
    [said] = [finding for finding in untold.findings if finding.code == "not-checked"]
    assert said.severity is Severity.INFO
    assert said.message.endswith("ACLs of standby, SCRAM users of standby (CLUSTER_AUTHORIZATION_FAILED)")


NASTY = "a'b $(touch /tmp/owned) `x`\n\x1b[31m\u202e;\\"


def test_the_commands_are_one_word_a_name_whatever_it_holds() -> None:
    there = [acl("topic", "orders"), acl("topic", "orders", "WRITE"), acl("topic", "orders", principal=f"User:{NASTY}")]
    text = kafka_acls(plan(scene(there, [], users=([NASTY, "app"], []))))
    assert all(char.isprintable() or char == "\n" for char in text)
    commands = [line for line in text.splitlines() if line.startswith("kafka-")]
    assert commands[0].startswith("kafka-configs.sh --bootstrap-server standby-1:9092 ")
    # a real shell reads the names back as they were
    show = 'kafka-acls.sh() { printf "%s\\0" "$@"; }\nkafka-configs.sh() { :; }\nread() { :; }\nPASSWORD=p\n'
    ran = subprocess.run(
        [shutil.which("bash") or "bash", "-c", show + text.replace("echo", ":")],
        capture_output=True,
        check=True,
        env={"COMMAND_CONFIG": "/admin properties", "PATH": "/nowhere"},
    )
    words = ran.stdout.decode().split("\0")
    assert f"User:{NASTY}" in words
    assert "/admin properties" in words
    first = shlex.split(next(line for line in commands if "User:app" in line and "--topic orders" in line))
    assert [first[at + 1] for at, word in enumerate(first) if word == "--operation"] == ["Read", "Write"]


def test_nothing_missing_is_a_script_that_does_nothing() -> None:
    text = kafka_acls(plan(scene([], [])))
    assert [line for line in text.splitlines() if not line.startswith("#")] == []
    assert "Nothing is known to be missing" in text
