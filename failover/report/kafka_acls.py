"""The rights and users that the target lacks, as the commands of Kafka's own tools that create them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from failover.kafka.tools import shell, tool
from failover.model.plan import Plan
from failover.model.rights import AclBinding, ScramUser
from failover.report.inert import inert_line
from failover.report.values import things

_RESOURCES = {"topic": "--topic", "group": "--group", "transactional-id": "--transactional-id", "cluster": "--cluster"}
_CONFIG = ("--command-config", '"$COMMAND_CONFIG"')


def kafka_acls(plan: Plan) -> str:
    """Writes a shell script; one of nothing but comments where nothing is known to be missing."""
    source, target = inert_line(plan.source.alias), inert_line(plan.target.alias)
    lines = [
        "#!/usr/bin/env bash",
        f"# What applications have on {source} for this flow's topics and groups and {target} lacks (plan {plan.id}).",
    ]
    unknown = [f.message for f in plan.findings if f.code == "not-checked"]
    lines += [f"# {inert_line(message)}" for message in unknown]
    if not plan.missing_acls and not plan.missing_users:
        return "\n".join([*lines, "# Nothing is known to be missing."]) + "\n"
    lines += [
        "# Read it before you run it. Where brokers allow everybody what no ACL is about",
        "# (allow.everyone.if.no.acl.found=true), the first ACL on a name shuts everybody else out from it.",
        "set -euo pipefail",
        ': "${COMMAND_CONFIG:?a properties file that logs in to the target as an administrator}"',
        "",
        *_users(plan.missing_users, plan.target.bootstrap),
        *_acls(plan.missing_acls, plan.target.bootstrap),
    ]
    return "\n".join(lines) + "\n"


def _users(users: Iterable[ScramUser], servers: tuple[str, ...]) -> Iterator[str]:
    for user in users:
        yield f"read -rsp {shell(f'password of {inert_line(user.name)}: ')} PASSWORD && echo"
        for mechanism, iterations in user.credentials:
            yield tool(
                "kafka-configs",
                servers,
                *_CONFIG,
                "--alter --entity-type users --entity-name",
                shell(user.name),
                f'--add-config "{mechanism}=[iterations={iterations},password=$PASSWORD]"',
            )


def _acls(acls: tuple[AclBinding, ...], servers: tuple[str, ...]) -> Iterator[str]:
    """Writes one command for each resource, principal and host, with all operations."""
    rows: dict[tuple[str, ...], list[str]] = {}
    others = 0
    for acl in acls:
        if acl.resource not in _RESOURCES or acl.operation.isdigit():
            others += 1
            continue
        key = acl.resource, acl.pattern, acl.name, acl.principal, acl.host, acl.permission
        rows.setdefault(key, []).append(acl.operation.replace("_", " ").title().replace(" ", ""))
    for (resource, pattern, name, principal, host, permission), operations in rows.items():
        kind = permission.lower()
        named = [] if resource == "cluster" else [shell(name), "--resource-pattern-type", pattern]
        yield tool(
            "kafka-acls",
            servers,
            *_CONFIG,
            "--add",
            f"--{kind}-principal",
            shell(principal),
            f"--{kind}-host",
            shell(host),
            *(word for operation in operations for word in ("--operation", operation)),
            _RESOURCES[resource],
            *named,
        )
    if others:
        yield f"# {things(others, 'ACL')} of a kind that this program does not know are left out."
