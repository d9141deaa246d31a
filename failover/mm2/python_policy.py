"""Replication policies written in Python, in the place of Java classes that are unknown here.

A package offers one as an entry point of the group ``failover.replication_policies``, under the name of the Java class
whose naming it repeats, or under any name that the settings give.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from failover.errors import ConfigError
from failover.mm2.replication_policy import DefaultReplicationPolicy

GROUP = "failover.replication_policies"

_NEEDED = ("format_remote_topic", "topic_source", "upstream_topic")
_PROBE = "orders"


class PythonPolicy(Protocol):
    """Is what a Python policy must have; the nouns are those of MM2's ReplicationPolicy, and one object is one flow's.

    It may have further methods of that interface, which otherwise answer as MM2's default policy does:
    ``heartbeats_topic()``, ``offset_syncs_topic(alias)``, ``checkpoints_topic(alias)``, ``is_heartbeats_topic(topic)``,
    ``is_checkpoints_topic(topic)``, ``is_mm2_internal_topic(topic)``, ``is_internal_topic(topic)``; and
    ``configure(settings)``, which is called first with the flow's effective settings as text,
    ``source.cluster.alias`` among them.
    """

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Gives the name that ``topic`` of the cluster ``source_alias`` has on the other side."""

    def topic_source(self, topic: str) -> str | None:
        """Gives the alias of the cluster from which a topic was mirrored; None for one that was not."""

    def upstream_topic(self, topic: str) -> str | None:
        """Gives the name a mirrored topic has on the cluster from which it came; None for one that was not mirrored."""


class PythonReplicationPolicy(DefaultReplicationPolicy, frozen=True, kw_only=True):
    """Asks a Python policy, and the default one for what that does not answer.

    ``label``: the entry point's name. Each method raises ConfigError where the Python policy raises anything or gives
    something else than a name.
    """

    label: str
    policy: Any

    @property
    def name(self) -> str:
        """Names the policy in plans, by which one that was made under another policy is seen to be stale."""
        return f"python:{self.label}"

    def format_remote_topic(self, alias: str, topic: str) -> str:
        """Gives the Python policy's name for the topic."""
        return self._text("format_remote_topic", alias, topic)

    def topic_source(self, topic: str) -> str | None:
        """Gives the alias the Python policy tells; of "" what it says of any name that was never mirrored."""
        return self._text_or_none("topic_source", topic or _PROBE)

    def upstream_topic(self, topic: str) -> str | None:
        """Gives the name the Python policy tells."""
        return self._text_or_none("upstream_topic", topic)

    def heartbeats_topic(self) -> str:
        """Gives the Python policy's name, MM2's where it has none."""
        return self._text("heartbeats_topic") if self._has("heartbeats_topic") else super().heartbeats_topic()

    def offset_syncs_topic(self, alias: str) -> str:
        """Gives the Python policy's name, MM2's where it has none."""
        return (
            self._text("offset_syncs_topic", alias)
            if self._has("offset_syncs_topic")
            else super().offset_syncs_topic(alias)
        )

    def checkpoints_topic(self, alias: str) -> str:
        """Gives the Python policy's name, MM2's where it has none."""
        return (
            self._text("checkpoints_topic", alias)
            if self._has("checkpoints_topic")
            else super().checkpoints_topic(alias)
        )

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Says what the Python policy says, or whether the topic was written as the heartbeats topic."""
        if self._has("is_heartbeats_topic"):
            return self._flag("is_heartbeats_topic", topic)
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Says what the Python policy says, or what its own name of such a topic tells."""
        if self._has("is_checkpoints_topic"):
            return self._flag("is_checkpoints_topic", topic)
        return super().is_checkpoints_topic(topic) or topic == self.checkpoints_topic(self.source_alias)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Says what the Python policy says, or MM2's default one."""
        if self._has("is_mm2_internal_topic"):
            return self._flag("is_mm2_internal_topic", topic)
        return super().is_mm2_internal_topic(topic) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Says what the Python policy says, or MM2's default one."""
        if self._has("is_internal_topic"):
            return self._flag("is_internal_topic", topic)
        return super().is_internal_topic(topic)

    # -- inside ----------------------------------------------------------------------------------

    def _has(self, method: str) -> bool:
        return callable(getattr(self.policy, method, None))

    def _ask(self, method: str, *arguments: str) -> Any:
        try:
            return getattr(self.policy, method)(*arguments)
        except Exception as error:
            raise ConfigError(
                f"replication policy {self.label}: {_call(method, arguments)} failed: {error!r}",
                hint=f"mend the Python policy ({_place(self.policy)}), or exclude the topic",
            ) from error

    def _text(self, method: str, *arguments: str) -> str:
        answer = self._ask(method, *arguments)
        if isinstance(answer, str) and answer:
            return answer
        raise self._wrong(method, arguments, answer, "a name")

    def _text_or_none(self, method: str, *arguments: str) -> str | None:
        answer = self._ask(method, *arguments)
        if answer is None or isinstance(answer, str):
            return answer or None
        raise self._wrong(method, arguments, answer, "a name or None")

    def _flag(self, method: str, topic: str) -> bool:
        answer = self._ask(method, topic)
        if isinstance(answer, bool):
            return answer
        raise self._wrong(method, (topic,), answer, "True or False")

    def _wrong(self, method: str, arguments: tuple[str, ...], answer: object, wanted: str) -> ConfigError:
        return ConfigError(
            f"replication policy {self.label}: {_call(method, arguments)} gives {answer!r}, which is not {wanted}",
            hint=f"mend the Python policy ({_place(self.policy)})",
        )


def installed_policies() -> tuple[str, ...]:
    """Gives the names of the Python policies that are installed."""
    from importlib.metadata import entry_points

    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def python_policy(
    name: str, settings: Mapping[str, str], base: DefaultReplicationPolicy
) -> PythonReplicationPolicy | None:
    """Makes the installed Python policy of a name for one flow; None when there is none.

    ``settings``: the flow's effective ones. ``base``: the flow's alias, separator and release. Raises ConfigError where
    several packages offer one of that name, where it cannot be loaded or lacks a method, and where it does not find
    back from a name that it gave.
    """
    from importlib.metadata import entry_points

    points = tuple(entry_points(group=GROUP, name=name))
    if not points:
        return None
    if len({point.value for point in points}) > 1:
        offered = ", ".join(sorted(f"{point.dist.name if point.dist else '?'} ({point.value})" for point in points))
        raise ConfigError(
            f"replication policy {name} is offered by several packages: {offered}", hint="uninstall all but one"
        )
    value = points[0].value
    try:
        policy = points[0].load()()
        configure = getattr(policy, "configure", None)
        if configure is not None:
            configure({**settings, "source.cluster.alias": base.source_alias})
    except Exception as error:
        raise ConfigError(
            f"replication policy {name}: {value} cannot be made: {error!r}",
            hint=f"mend the package, or uninstall it; {GROUP} points to a class that takes no arguments",
        ) from error
    lacking = [method for method in _NEEDED if not callable(getattr(policy, method, None))]
    if lacking:
        raise ConfigError(
            f"replication policy {name}: {value} lacks {', '.join(lacking)}",
            hint=f"a replication policy has the methods {', '.join(_NEEDED)}",
        )
    made = PythonReplicationPolicy(
        source_alias=base.source_alias,
        separator=base.separator,
        internal_topic_separator_enabled=base.internal_topic_separator_enabled,
        mm2_version=base.mm2_version,
        label=name,
        policy=policy,
    )
    _finds_back(made, base.source_alias)
    return made


def _finds_back(policy: PythonReplicationPolicy, alias: str) -> None:
    remote = policy.format_remote_topic(alias, _PROBE)
    source, upstream = policy.topic_source(remote), policy.upstream_topic(remote)
    if (source, upstream) != (alias, _PROBE):
        raise ConfigError(
            f"replication policy {policy.label} calls {_PROBE} of {alias} {remote!r}, and says of that name that it is"
            f" {upstream!r} of {source!r}",
            hint="topic_source and upstream_topic must undo format_remote_topic: a plan could not tell what a topic of"
            " the target is a copy of",
        )


def _call(method: str, arguments: tuple[str, ...]) -> str:
    return f"{method}({', '.join(map(repr, arguments))})"


def _place(policy: object) -> str:
    kind = type(policy)
    return f"{kind.__module__}:{kind.__qualname__}"
