"""Failover and switchover for active-passive Kafka, as a library: what the commands use, nothing printed, no exit.

Names are imported when they are first used; ``docs/library.md`` shows a whole failover in a few lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from failover._version import __version__
    from failover.errors import FailoverError
    from failover.library.executing import execute
    from failover.library.flows import Configuration, MirrorFlow, load_config
    from failover.library.looking import take_snapshot, translate_offsets
    from failover.library.planning import make_plan
    from failover.library.values import from_json, to_json
    from failover.model.execution import Execution
    from failover.model.names import TopicPartition
    from failover.model.plan import Plan
    from failover.model.snapshot import Snapshot
    from failover.model.translated import TranslatedOffset

__all__ = [
    "Configuration",
    "Execution",
    "FailoverError",
    "MirrorFlow",
    "Plan",
    "Snapshot",
    "TopicPartition",
    "TranslatedOffset",
    "__version__",
    "execute",
    "from_json",
    "load_config",
    "make_plan",
    "take_snapshot",
    "to_json",
    "translate_offsets",
]

_HOMES = {
    "Configuration": "failover.library.flows",
    "Execution": "failover.model.execution",
    "FailoverError": "failover.errors",
    "MirrorFlow": "failover.library.flows",
    "Plan": "failover.model.plan",
    "Snapshot": "failover.model.snapshot",
    "TopicPartition": "failover.model.names",
    "TranslatedOffset": "failover.model.translated",
    "__version__": "failover._version",
    "execute": "failover.library.executing",
    "from_json": "failover.library.values",
    "load_config": "failover.library.flows",
    "make_plan": "failover.library.planning",
    "take_snapshot": "failover.library.looking",
    "to_json": "failover.library.values",
    "translate_offsets": "failover.library.looking",
}


def __getattr__(name: str) -> object:
    """Imports a name of this package's face when it is first asked for (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'failover' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
