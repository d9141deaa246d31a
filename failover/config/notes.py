"""What in a configuration has no effect on MM2, or not the effect its writer meant: notes, never errors."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from failover.config.java_client import is_own_client_key
from failover.config.mm2_keys import (
    ALIASES,
    CLIENT_KEYS,
    CONNECTOR_KEYS,
    DRIVER_KEYS,
    FLOW_ONLY_KEYS,
    FLOW_ONLY_PREFIXES,
    OWN_KEYS,
    ROLE_KEYS,
    ROLES,
    STORAGE_KEYS,
    UNOFFICIAL,
    WORKER_KEYS,
    WORKER_PREFIXES,
    is_client_key,
    is_connector_key,
)
from failover.config.providers import references
from failover.config.settings import Note, Setting

_ROLE_PREFIXES = tuple(f"{role}." for role in ROLES)
_FREE_PREFIXES = ("config.providers", "topic.creation.", "transforms.", "predicates.", "listeners.", "metrics.context.")
# `1  # comment`: Java has no comments behind a value. A `#` without a blank before it may belong to the value.
_TRAILING_COMMENT = re.compile(r"(?:^|\s)(?:#|//|!)\s|(?:^|\s)#\S*$")
# What guides write into mm2.properties though it belongs elsewhere.
_ELSEWHERE = {
    **dict.fromkeys(("auto.create.topics.enable", "delete.topic.enable", "message.max.bytes"), "broker"),
    **dict.fromkeys(("max.message.bytes", "retention.ms", "cleanup.policy", "min.insync.replicas"), "topic"),
}
READ_HERE = ("topics.exclude", "groups.exclude")
"""The settings of whose old names ``failover replicate`` reads in any release, since guides write them."""

_NOT_COMMENTED = ("jaas.config", "password", "metadata")


def notes_on_keys(
    raw: Mapping[str, Setting],
    aliases: Sequence[str],
    enabled: Sequence[tuple[str, str]],
    version: tuple[int, int],
    providers: Collection[str],
) -> Iterable[Note]:
    """Gives a note for each key that MM2 drops, does not know or no longer reads, and for values meant otherwise."""
    source, target = enabled[0] if enabled else (*aliases, "A", "B")[:2]
    by_key = {
        **{f"{alias}.": alias for alias in aliases},
        **{f"{a}->{b}.": f"{a}->{b}" for a in aliases for b in aliases if a != b},
    }
    owners = tuple(by_key)
    for key, setting in raw.items():
        yield from on_value(setting, providers)
        if key.startswith("failover."):
            yield from on_own_key(key, setting, aliases)
            continue
        owner = next((prefix for prefix in owners if key.startswith(prefix)), "")
        rest = key[len(owner) :]
        note = _on_alias(key, rest, setting, version)
        if note is None and "->" in owner:
            note = _on_flow_key(owner, rest, setting)
        elif note is None and owner:
            note = _on_cluster_key(owner, rest, setting)
        elif note is None:
            note = _on_top_level(key, setting, source, target, aliases)
        if note is not None:
            yield note


def on_value(setting: Setting, providers: Collection[str] | None) -> Iterator[Note]:
    """Gives a note for a comment behind a value, and for a reference to a provider that nobody declares.

    ``providers`` None: whoever runs the connector declares them out of sight.
    """
    key = setting.origin.key or setting.key
    if _TRAILING_COMMENT.search(setting.text) and not key.endswith(_NOT_COMMENTED):
        message = f"what looks like a comment is part of the value of {key}: Java knows none behind a value"
        yield Note("trailing-comment", key, message, setting.origin, "put the comment on a line of its own")
    for provider in dict.fromkeys(references(setting.text)) if providers is not None else ():
        if provider not in (providers or ()):
            message = f"{key} names the configuration provider '{provider}', which is not declared: it stays literal"
            remedy = f"declare it: config.providers = {provider} and config.providers.{provider}.class"
            yield Note("no-provider", key, message, setting.origin, remedy)


def on_own_key(key: str, setting: Setting, aliases: Sequence[str]) -> Iterator[Note]:
    """Gives a note for a ``failover.`` key that this tool does not read."""
    rest = key.removeprefix("failover.")
    if not key.startswith("failover.cluster."):
        if rest not in OWN_KEYS:
            yield unknown(key, setting, "this tool", nearest(rest, OWN_KEYS), "failover.")
        return
    rest = key.removeprefix("failover.cluster.")
    alias = next((alias for alias in aliases if rest.startswith(f"{alias}.")), None)
    if alias is None:
        yield _stray(key, setting, aliases)
        return
    name = rest[len(alias) + 1 :]
    if not is_own_client_key(name):
        message = (
            f"{key} is not used: only bootstrap.servers, security.protocol, client.id, ssl. and sasl. settings are"
        )
        yield Note("not-used", key, message, setting.origin, meant(nearest(name, CLIENT_KEYS), key[: -len(name)]))
    elif misspelt := _misspelt_client_key(name):
        yield unknown(key, setting, "this tool", misspelt, key[: -len(name)])


def nearest(key: str, known: Collection[str], cutoff: float = 0.8) -> str:
    """Gives the known key that was probably meant, "" if none is near."""
    from difflib import get_close_matches

    for guess in (f"{key}.enabled", f"{key}d", key.replace("_", "."), key.replace("-", ".")):
        if guess in known:
            return guess
    near = next(iter(get_close_matches(key, sorted(known), 1, cutoff)), "")
    return next((new for new, old in ALIASES.items() if old == near), near)


def meant(near: str, prefix: str = "") -> str:
    """Says which key was probably meant."""
    return f"write {prefix}{near}" if near else ""


def unknown(key: str, setting: Setting, who: str, near: str, prefix: str = "") -> Note:
    """Makes the note about a key that nobody reads."""
    message = f"{who} does not know {key} and ignores it"
    return Note("unknown-key", key, message, setting.origin, meant(near, prefix) or "take it out")


def role_note(prefix: str, role: str, name: str, setting: Setting) -> Note | None:
    """Gives a note for a client's setting that looks misspelt; Kafka's clients ignore what they do not know."""
    if role == "consumer" and name.startswith("override."):
        owner, arrow, _ = prefix.partition("->")
        return _override_note(f"{prefix}{role}.{name}", f"{owner}{arrow and '.'}{role}", setting)
    if role not in ROLES or name.startswith("override.") or name in ROLE_KEYS[role]:
        return None
    near = nearest(name, ROLE_KEYS[role], 0.88)
    return unknown(f"{prefix}{role}.{name}", setting, f"a Kafka {role}", near, f"{prefix}{role}.") if near else None


def _override_note(key: str, better: str, setting: Setting) -> Note:
    # Connect gives consumer.override. to the consumers that it makes itself, those of sinks.
    message = f"{key} is ignored: Connect gives such overrides to sink connectors, not to MM2's consumer"
    return Note("dropped", key, message, setting.origin, f"write {better}.{key.partition('override.')[2]}")


def _misspelt_client_key(key: str) -> str:
    if not key.startswith(("ssl.", "sasl.")) or key in CLIENT_KEYS or key.startswith("sasl.oauthbearer."):
        return ""
    return nearest(key, CLIENT_KEYS, 0.85)


def _on_alias(key: str, rest: str, setting: Setting, version: tuple[int, int]) -> Note | None:
    new = next((new for new, old in ALIASES.items() if old == rest), None)
    if new is None:
        return None
    better = key.removesuffix(rest) + new
    if version < (4, 0):
        return Note(
            "deprecated", key, f"{key} is a deprecated name, gone in MM2 4.0", setting.origin, f"write {better}"
        )
    remedy = f"write {better} (or set failover.mm2.version if yours is older)"
    also = f"; failover replicate reads it where {new} is not set" if new in READ_HERE else ""
    return Note("dropped", key, f"MM2 4.0 and later ignore {key}{also}", setting.origin, remedy)


def on_unofficial(key: str, rest: str, setting: Setting) -> Note | None:
    """Gives a note for a name that guides write and MM2 does not read, "" prefix or not."""
    official = UNOFFICIAL.get(rest)
    if official is None:
        return None
    also = f"; failover replicate does where {official} is not set" if rest.endswith(".regex") else ""
    message = f"MM2 does not read {key}{also}"
    return Note("unofficial", key, message, setting.origin, f"write {key.removesuffix(rest)}{official}")


def _on_flow_key(owner: str, rest: str, setting: Setting) -> Note | None:
    key, target = owner + rest, owner.rstrip(".").partition("->")[2]
    if rest in WORKER_KEYS:
        return Note("dropped", key, f"{key} does not reach MM2's worker", setting.origin, f"write {target}.{rest}")
    if rest.startswith("producer.") and not rest.startswith("producer.override.") and not is_client_key(rest[9:]):
        name = rest.removeprefix("producer.")
        message = f"{key} reaches only the producer of offset syncs"
        return Note("dropped", key, message, setting.origin, f"for the records write {target}.producer.{name}")
    if note := on_unofficial(key, rest, setting):
        return note
    if rest in CONNECTOR_KEYS or rest in FLOW_ONLY_KEYS or rest.startswith((*FLOW_ONLY_PREFIXES, *_FREE_PREFIXES)):
        return None
    if misspelt := _misspelt_client_key(rest):
        return unknown(key, setting, "MM2", misspelt, owner)
    role, _, name = rest.partition(".")
    if role in ROLES:
        return role_note(owner, role, name, setting)
    if is_client_key(rest) or rest.startswith(("source.", "target.", "replication.policy.")):
        return None
    # Anything may be the setting of a custom filter or policy, so only what is nearly a known name is told.
    near = nearest(rest, CONNECTOR_KEYS | FLOW_ONLY_KEYS, 0.85)
    return unknown(key, setting, "MM2", near, owner) if near else None


def _on_cluster_key(owner: str, rest: str, setting: Setting) -> Note | None:
    role, _, name = rest.partition(".")
    if role in ROLES:
        return role_note(owner, role, name, setting)
    if rest in CLIENT_KEYS or rest in WORKER_KEYS or rest in STORAGE_KEYS or rest.startswith(_FREE_PREFIXES):
        return None
    near = _misspelt_client_key(rest) or nearest(rest, CLIENT_KEYS | WORKER_KEYS | STORAGE_KEYS, 0.88)
    if near and near != rest:
        return unknown(owner + rest, setting, "MM2", near, owner)
    if rest in CONNECTOR_KEYS and not is_client_key(rest) and not rest.startswith(WORKER_PREFIXES):
        message = f"{owner}{rest} reaches no connector: of a cluster they read only the connection"
        return Note("dropped", owner + rest, message, setting.origin, f"write {rest}, or A->B.{rest} for one flow")
    return None


def _on_top_level(key: str, setting: Setting, source: str, target: str, aliases: Sequence[str]) -> Note | None:
    flow = f"{source}->{target}"
    if key in DRIVER_KEYS or is_connector_key(key) or key.startswith(("config.providers", "replication.policy")):
        misspelt = _misspelt_client_key(key)
        return unknown(key, setting, "MM2", misspelt) if misspelt else None
    if is_client_key(key) or key in STORAGE_KEYS:
        return None
    if key in WORKER_KEYS:
        return _dropped(key, setting, f"{target}.{key}")
    if key.startswith("consumer.override."):
        return _override_note(key, f"{source}.consumer", setting)
    if key in FLOW_ONLY_KEYS or key.startswith(FLOW_ONLY_PREFIXES):
        return _dropped(key, setting, f"{flow}.{key}")
    if key.startswith(_ROLE_PREFIXES):
        side = source if key.startswith("consumer.") else target
        return _dropped(key, setting, f"{side}.{key}")
    if note := on_unofficial(key, key, setting):
        return note
    owner, _, rest = key.partition(".")
    if "->" in owner or rest in CLIENT_KEYS or (rest == "enabled" and owner not in CONNECTOR_KEYS):
        return _stray(key, setting, aliases)
    if owner_of := _ELSEWHERE.get(key):
        message = f"{key} is a setting of a {owner_of}: MM2 does not know it and ignores it"
        return Note("unknown-key", key, message, setting.origin, f"set it on the {owner_of}")
    near = nearest(key, CONNECTOR_KEYS | DRIVER_KEYS | STORAGE_KEYS, 0.75)
    if key.startswith(WORKER_PREFIXES):
        # It reaches the worker, where a converter's own settings may have any name.
        free = key.startswith(("key.converter.", "value.converter.", "header.converter."))
        return unknown(key, setting, "MM2", near) if near and not free else None
    return unknown(key, setting, "MM2", near)


def _dropped(key: str, setting: Setting, better: str) -> Note:
    return Note("dropped", key, f"MM2 ignores this: {key}", setting.origin, f"write {better}")


def _stray(key: str, setting: Setting, aliases: Sequence[str]) -> Note:
    message = f"{key} has no effect: it names a cluster that is not in 'clusters'"
    return Note("unknown-key", key, message, setting.origin, f"the clusters are {', '.join(aliases)}")
