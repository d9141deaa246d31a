"""The functions that `import failover` gives: typed, silent, for programs of other people."""

from failover.library.executing import execute
from failover.library.flows import Configuration, MirrorFlow, load_config
from failover.library.looking import take_snapshot, translate_offsets
from failover.library.planning import make_plan
from failover.library.values import from_json, to_json

__all__ = [
    "Configuration",
    "MirrorFlow",
    "execute",
    "from_json",
    "load_config",
    "make_plan",
    "take_snapshot",
    "to_json",
    "translate_offsets",
]
