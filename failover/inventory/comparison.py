"""The comparison of records as a configuration wants it; its code is loaded where there is something to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from failover.config.flow import Config
    from failover.inventory.look import Report
    from failover.inventory.questions import Evidence, Refine
    from failover.inventory.snapshot import Comparison
    from failover.kafka.port import Cluster


def comparison_of(config: Config) -> Comparison:
    """Makes the comparison with the configuration's limit (``failover.exact.max.records``); raises ConfigError."""
    limit = config.failover.integer("exact.max.records") if "exact.max.records" in config.failover else None

    def comparison(source: Cluster | None, target: Cluster, evidence: Evidence, report: Report) -> Refine:
        from failover.inventory.comparing import MAX_RECORDS, record_comparison

        return record_comparison(source, target, evidence, report, max_records=MAX_RECORDS if limit is None else limit)

    return comparison
