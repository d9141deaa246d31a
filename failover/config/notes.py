"""What in a configuration has no effect on MM2, or not the effect its writer meant: notes, never errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from failover.config.java_client import references
from failover.config.mm2_keys import (
    ALIASES,
    DRIVER_KEYS,
    FLOW_ONLY_KEYS,
    FLOW_ONLY_PREFIXES,
    ROLES,
    WORKER_KEYS,
    WORKER_PREFIXES,
    is_client_key,
    is_connector_key,
)
from failover.config.settings import Note, Setting

_ROLE_PREFIXES = tuple(f"{role}." for role in ROLES)


def notes_on_keys(
    raw: Mapping[str, Setting],
    aliases: Sequence[str],
    enabled: Sequence[tuple[str, str]],
    version: tuple[int, int],
    providers: frozenset[str],
) -> Iterable[Note]:
    """Gives a note for each key that MM2 drops, does not know or no longer reads, and for unresolved references."""
    source, target = enabled[0] if enabled else ("A", "B")
    by_key = {
        **{f"{alias}.": alias for alias in aliases},
        **{f"{a}->{b}.": f"{a}->{b}" for a in aliases for b in aliases if a != b},
    }
    owners = tuple(by_key)
    for key, setting in raw.items():
        if key.startswith("failover."):
            yield from _on_own_key(key, setting, aliases)
            continue
        owner = next((prefix for prefix in owners if key.startswith(prefix)), "")
        rest = key[len(owner) :]
        note = _on_alias(key, rest, setting, version)
        if note is None and "->" in owner:
            note = _on_flow_key(owner, rest, setting)
        elif note is None and not owner:
            note = _on_top_level(key, setting, source, target)
        if note is not None:
            yield note
        for provider in references(setting.text):
            if provider not in providers:
                message = (
                    f"{key} names the configuration provider '{provider}', which is not declared: it stays literal"
                )
                yield Note("no-provider", key, message, setting.origin)


def _on_alias(key: str, rest: str, setting: Setting, version: tuple[int, int]) -> Note | None:
    new = next((new for new, old in ALIASES.items() if old == rest), None)
    if new is None:
        return None
    better = key.removesuffix(rest) + new
    if version < (4, 0):
        return Note("deprecated", key, f"{key} is a deprecated name, gone in MM2 4.0; write {better}", setting.origin)
    message = f"MM2 4.0 and later ignore {key}; write {better} (or set failover.mm2.version if yours is older)"
    return Note("dropped", key, message, setting.origin)


def _on_flow_key(owner: str, rest: str, setting: Setting) -> Note | None:
    key, target = owner + rest, owner.rstrip(".").partition("->")[2]
    if rest in WORKER_KEYS:
        return Note("dropped", key, f"{key} does not reach MM2's worker; write {target}.{rest}", setting.origin)
    if rest.startswith("producer.") and not rest.startswith("producer.override.") and not is_client_key(rest[9:]):
        name = rest.removeprefix("producer.")
        message = f"{key} reaches only the producer of offset syncs; for the records write {target}.producer.{name}"
        return Note("dropped", key, message, setting.origin)
    return None


def _on_top_level(key: str, setting: Setting, source: str, target: str) -> Note | None:
    flow = f"{source}->{target}"
    if (
        key in DRIVER_KEYS
        or is_client_key(key)
        or is_connector_key(key)
        or key.startswith((*WORKER_PREFIXES, "config.providers", "replication.policy"))
    ):
        return None
    if key in WORKER_KEYS:
        return _dropped(key, setting, f"{target}.{key}")
    if key in FLOW_ONLY_KEYS or key.startswith(FLOW_ONLY_PREFIXES):
        return _dropped(key, setting, f"{flow}.{key}")
    if key.startswith(_ROLE_PREFIXES):
        side = source if key.startswith("consumer.") else target
        return _dropped(key, setting, f"{side}.{key}")
    if "->" in key.partition(".")[0] or key.endswith(".bootstrap.servers"):
        return _stray(key, setting)
    return Note("unknown-key", key, f"MM2 does not know {key} at top level and ignores it", setting.origin)


def _dropped(key: str, setting: Setting, better: str) -> Note:
    return Note("dropped", key, f"MM2 ignores this: {key}; write {better}", setting.origin)


def _stray(key: str, setting: Setting) -> Note:
    return Note(
        "unknown-key", key, f"{key} has no effect: it names a cluster that is not in 'clusters'", setting.origin
    )


def _on_own_key(key: str, setting: Setting, aliases: Sequence[str]) -> Iterable[Note]:
    if not key.startswith("failover.cluster."):
        return
    rest = key.removeprefix("failover.cluster.")
    alias = next((alias for alias in aliases if rest.startswith(f"{alias}.")), None)
    if alias is None:
        yield _stray(key, setting)
    elif not is_client_key(rest[len(alias) + 1 :]):
        message = f"{key} is not used: only bootstrap.servers, security.protocol, ssl. and sasl. settings are"
        yield Note("not-used", key, message, setting.origin)
