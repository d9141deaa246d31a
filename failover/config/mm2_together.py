"""Settings that MM2's connectors do not take together: what Connect's validation refuses although each is valid. Pure.

Source: MirrorSourceConnector.validate, MirrorCheckpointConfig.validate, Kafka 3.5 to 4.3; Kafka Connect 4.1.1 is asked
the same by a system test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from failover.config.mm2_keys import CHECKPOINT, SOURCE

EMIT_SYNCS: Final = "emit.offset-syncs.enabled"
EMIT_CHECKPOINTS: Final = "emit.checkpoints.enabled"
WORKER_EXACTLY: Final = "exactly.once.source.support"
_EXACTLY_ONCE: Final = "exactly.once.support"
_ISOLATION: Final = ("source.consumer.isolation.level", "consumer.isolation.level")


def refused_together(
    connector: str, given: Mapping[str, str], version: tuple[int, int], worker: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Gives what is wrong with a connector's settings (``given``: those written, not defaults), by key.

    ``connector``: ``source``, ``checkpoint`` or ``heartbeat``. ``worker``: its worker's settings; None: not known.
    """
    wrong: dict[str, str] = {}
    # MM2 compares texts here: "FALSE" passes (measured on Kafka 4.1.1).
    without_syncs = given.get(EMIT_SYNCS) == "false" and version >= (3, 9)
    if connector == SOURCE:
        syncs = sorted(key for key in given if key.startswith(("offset-syncs-", "offset-syncs.topic.")))
        if without_syncs and syncs:
            wrong[EMIT_SYNCS] = f"{EMIT_SYNCS} = false excludes settings of the offset syncs: {', '.join(syncs)}"
        isolation = next((given[key] for key in _ISOLATION if key in given), None)
        if given.get(_EXACTLY_ONCE) == "required" and version >= (3, 5):
            if isolation != "read_committed":
                wrong[_EXACTLY_ONCE] = "exactly once is required, and its consumer reads what is not committed"
            elif worker is not None and worker.get(WORKER_EXACTLY, "").strip().lower() != "enabled":
                # Kafka Connect: DistributedHerder.validateExactlyOnceConfigs
                wrong[_EXACTLY_ONCE] = "exactly once is required, and its worker is not set up for it"
    if connector == CHECKPOINT and version >= (3, 9) and given.get("enabled", "true").strip().lower() == "true":
        if given.get(EMIT_CHECKPOINTS) == "false":
            wrong[EMIT_CHECKPOINTS] = f"{EMIT_CHECKPOINTS} = false leaves the connector nothing to do"
        if without_syncs:
            wrong[EMIT_SYNCS] = f"{EMIT_SYNCS} = false leaves nothing from which offsets could be translated"
    return wrong
