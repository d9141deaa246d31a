"""A real Prometheus scrapes a real replicator; queries of dashboard, alerts and guides find there what they should."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from failover.lab.ports import free_ports
from tests.system.pair import Pair
from tests.system.replicating import Flow, send
from tests.system.rest_side import Rest

PROMETHEUS = shutil.which("prometheus")
pytestmark = pytest.mark.skipif(PROMETHEUS is None, reason="Prometheus is not installed (Debian: prometheus)")
DOCS = Path(__file__).parents[2] / "docs/grafana"
GUIDES = (
    "rate(kafka_connect_source_record_write_total[5m])",
    "kafka_connect_source_record_poll_total - kafka_connect_source_record_write_total",
    "(time() - (kafka_heartbeat_timestamp_seconds / 1000)) < 60",
    'kafka_consumer_lag{group=~"mirrormaker2-cluster-.*"} > 5',
    # as Strimzi's dashboard asks
    r'sum(kafka_connect_source_task_source_record_active_count{connector=~"\".*SourceConnector\""})',
    r'sum(kafka_producer_buffer_available_bytes{clientid=~"\".*SourceConnector-[0-9]+\""})',
    'sum(kafka_consumer_fetch_manager_records_lag{clientid!~"consumer-mirrormaker2-.*"}) by (topic, partition)',
)
FIRES = {"PartitionStandsStill"}
NOTHING_THERE = {
    "HighReplicationLag": "a few records are behind",
    "HighReplicationAge": "for less than a minute",
    "NoHeartbeat": "heartbeats are written",
    "ConnectorDown": "all connectors run",
    "ConnectorPaused": "and nobody has paused one",
    "ReplicatorDown": "the replicator is scraped",
    "SourceSilent": "the source answers",
    "StaleCheckpoint": "the group is checkpointed",
    "NobodyChecksPositions": "by this process",
    "ShardsWithoutWorker": "this one copies all and leads",
    "NothingWritten": "records are copied",
    "SmallBatches": "fewer than a thousand a second",
    "TasksMissing": "all tasks run",
    "PositionsNotRecorded": "all positions are on record",
}
"""Alerts whose expression is empty on a flow that is well but for one partition, and why."""

Query = Callable[[str], list[Any]]


@pytest.fixture(scope="module")
def query(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Query]:
    """Has a flow at work, with a group on its source and one partition whose records the target does not take."""
    stem = pair.name("scraped")
    live, large = (pair.create_topic("a", f"{stem}.{what}", 2) for what in ("live", "large"))
    flow = Flow(pair, rf"{re.escape(stem)}\..*", {"failover.checkpoint.interval.seconds": "1"})
    pair.create_topic("b", flow.remote(large), 2, config={"max.message.bytes": "1000"})
    pair.commit("a", pair.name("scraped-group"), {(live, 0): 1, (live, 1): 1})
    send(pair, ((large, b"x" * 5_000, None, 0, 0, []) for _ in range(10)))

    with flow.worker("--rest", "127.0.0.1:0") as worker:
        (line,) = worker.says("REST on http://", seconds=90)
        url = line.rpartition(" ")[2]
        rest = Rest(url)
        with prometheus(url, tmp_path_factory.mktemp("prometheus")) as ask:

            def all_there() -> bool:
                """Sends on and says whether everything has happened that queries are to find."""
                send(pair, ((live, b"%d" % number, None, number % 2, 0, []) for number in range(20)))
                ages = rest.metrics().all("failover_checkpoint_age_seconds", source=flow.source)
                rates = ask("rate(failover_records_total[10s]) > 0 and on (source) failover_faults_total")
                return bool(rates and ages and max(ages) < 30 and ask(still))

            still = 'failover_partitions{state="standing_still"} > 0'
            worker.until(all_there, what="everything is there to be found", seconds=90)
            yield ask
        worker.stop()


@contextlib.contextmanager
def prometheus(url: str, folder: Path) -> Iterator[Query]:
    """Scrapes a page every second while the context lasts, with the alert rules."""
    [port] = free_ports(1)
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(DOCS / "alerts.yml")],
        "scrape_configs": [{"job_name": "failover", "static_configs": [{"targets": [url.removeprefix("http://")]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    command = [str(PROMETHEUS), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)

    def ask(expression: str) -> list[Any]:
        wanted = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{wanted}", timeout=30) as answer:
            found: list[Any] = json.load(answer)["data"]["result"]
            return found

    try:
        deadline = time.monotonic() + 90
        up: list[Any] = []
        while not up:
            assert time.monotonic() < deadline, (folder / "log").read_text()
            with contextlib.suppress(urllib.error.URLError):
                up = ask("up == 1")
            time.sleep(0.1)
        yield ask
    finally:
        process.terminate()
        process.wait(30)


def expressions() -> list[str]:
    dashboard = json.loads((DOCS / "dashboard.json").read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    for name, value in {"$source": ".*", "$target": ".*", "$__rate_interval": "10s"}.items():
        found = [each.replace(name, value) for each in found]
    return found


def alerts() -> dict[str, str]:
    rules = yaml.safe_load((DOCS / "alerts.yml").read_text())["groups"][0]["rules"]
    return {rule["alert"]: rule["expr"] for rule in rules}


@pytest.mark.parametrize("expression", [*dict.fromkeys(expressions()), *GUIDES])
def test_a_query_finds_something(query: Query, expression: str) -> None:
    assert query(expression)


def test_an_alert_finds_what_is_wrong_and_nothing_else(query: Query) -> None:
    assert alerts().keys() == FIRES | NOTHING_THERE.keys()
    found = {name for name, expression in alerts().items() if query(expression)}
    assert found == FIRES
    assert {row["metric"]["alertname"] for row in query("ALERTS")} == FIRES
    # what is empty is so because of its values, not because it asks for something that nobody serves
    for expression in alerts().values():
        for metric in re.findall(r"\b(?:failover|kafka)_\w+", expression):
            assert query(metric), metric


def test_it_is_scraped_whole(query: Query) -> None:
    assert [row["value"][1] for row in query('up{job="failover"}')] == ["1"]
    assert len(query("failover_lag_records")) == 4
