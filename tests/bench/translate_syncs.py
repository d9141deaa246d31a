"""Reads an offset-syncs topic whole and translates for many groups; a process of its own, to be measured."""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

from failover.config.load import load_config, select_flow
from failover.inventory.internal_topics import read_offset_syncs
from failover.kafka.admin import KafkaCluster
from failover.translate.sync_rule import LogBounds, translate


def main() -> None:
    path, topic, groups = sys.argv[1:]
    config = load_config([path], ())
    selected = select_flow(config, None, None)
    cluster = KafkaCluster(selected.source, selected.source_client(), timeout=10)
    began = time.monotonic()
    syncs, reading = read_offset_syncs(cluster, topic, exists=True)
    read = time.monotonic()
    pick = random.Random(1)
    placed = 0
    for _ in range(int(groups)):
        for own in syncs.values():
            end = own.ups[-1] + 1
            bounds = LogBounds(target_start=0, target_end=own.downs[-1] + 1, source_start=0, source_end=end)
            placed += translate(pick.randrange(end), own, bounds).offset is not None
    done = time.monotonic()
    cluster.close()
    found = {"records": reading.records, "partitions": len(syncs), "placed": placed}
    json.dump({**found, "read": read - began, "translate": done - read}, sys.stdout)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
