"""A real Prometheus scrapes our page; every query of the dashboard and of the guides finds something there."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from failover.lab.ports import free_ports
from failover.replication.snapshot import FlowNow
from failover.serve.metrics import Metrics
from failover.serve.server import application
from tests.system.serving import in_a_thread
from tests.unit.serve.scenes import LOCAL, board, checkpoints, flow, partition

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

Query = Callable[[str], list[Any]]


@pytest.fixture(scope="module")
def query(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Query]:
    folder = tmp_path_factory.mktemp("prometheus")
    began = time.time()
    seen = flow(*(partition("orders", number, lag=float(number % 7)) for number in range(30)))
    made = board(folder, seen)

    def look(now: float) -> FlowNow:
        ran, at = int((now - began) * 1000), int(now * 1000)
        counts = {"records": ran, "polled": ran + 5, "bytes": ran * 100, "batches": {"passed": ran // 10}}
        heard = {"source": now - 1, "target": now - 1}
        kept = checkpoints({"billing": at - 2000}, cycled=at)
        return msgspec.structs.replace(seen, at=now, heartbeat=at - 500, heard=heard, checkpoints=kept, **counts)

    entry = made.flows["A->B"]
    assert entry.open is not None
    entry.opened(entry.open._replace(look=look))
    app = application(LOCAL, metrics=Metrics(made).render, health=lambda: made.health)
    [port] = free_ports(1)
    with in_a_thread(app) as url:
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(DOCS / "alerts.yml")],
            "scrape_configs": [
                {"job_name": "failover", "static_configs": [{"targets": [url.removeprefix("http://")]}]}
            ],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))
        command = [str(PROMETHEUS), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:

            def ask(expression: str) -> list[Any]:
                wanted = urllib.parse.urlencode({"query": expression})
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{wanted}", timeout=10) as answer:
                    found: list[Any] = json.load(answer)["data"]["result"]
                    return found

            rates: list[Any] = []
            deadline = time.monotonic() + 30
            while not rates:  # a rate needs two scrapes
                assert time.monotonic() < deadline, (folder / "log").read_text()
                with contextlib.suppress(urllib.error.URLError):
                    rates = ask("rate(failover_records_total[10s]) > 0")
                time.sleep(0.2)
            yield ask
        finally:
            process.terminate()
            process.wait(20)


def expressions() -> list[str]:
    dashboard = json.loads((DOCS / "dashboard.json").read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    for name, value in {"$source": ".*", "$target": ".*", "$__rate_interval": "10s"}.items():
        found = [each.replace(name, value) for each in found]
    return found


@pytest.mark.parametrize("expression", [*dict.fromkeys(expressions()), *GUIDES])
def test_a_query_finds_something(query: Query, expression: str) -> None:
    assert query(expression)


def test_it_is_scraped_whole_and_nothing_is_wrong(query: Query) -> None:
    assert [row["value"][1] for row in query('up{job="failover"}')] == ["1"]
    assert len(query("failover_lag_records")) == 30
    assert query("ALERTS") == []
