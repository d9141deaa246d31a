"""Two minutes on tokens of 30 seconds: a waiting `execute` and a running `replicate` outlive several of them."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest

from failover.lab import LabOptions
from failover.model import TopicPartition
from tests.system.executing import running as beside
from tests.system.executing import write_plan
from tests.system.pair import Pair
from tests.system.replicating import Flow
from tests.system.running import running
from tests.system.token_endpoint import TokenEndpoint

LIFE, SECONDS = 30.0, 130.0


def settings(pair: Pair, endpoint: TokenEndpoint, source: str, target: str) -> dict[str, str]:
    first = endpoint.settings(source, pair.bootstrap("a", "sasl"))
    return first | endpoint.settings(target, pair.bootstrap("b", "sasl"))


@pytest.mark.timeout(600)
def test_execute_waits_and_replicate_copies_across_renewals(tmp_path: Path) -> None:
    options = LabOptions(aliases=("a", "b"), sasl=True, authorizer=True, quick=True)
    with running(tmp_path, options) as pair, TokenEndpoint(pair.lab, seconds=LIFE) as endpoint:
        topic, held = pair.create_topic("a", "copied.orders", 2), pair.create_topic("b", "held", 1)
        pair.produce("b", held, 100)
        plan = write_plan(pair, {"held": {TopicPartition(held, 0): 50}})
        config = pair.config_path(added=settings(pair, endpoint, "a", "b"))
        arguments = ("execute", str(plan), "--yes", "--settle", "0", "--wait", "5m")
        flow = Flow(pair, r"copied\..*", settings(pair, endpoint, "{source}", "{target}"))
        # away when a token is due, and back before that one ends
        endpoint.outage = (5, 0.1 * LIFE)
        with flow.worker("-v") as worker, contextlib.ExitStack() as started:
            with pair.b.member("held", [held]):
                process = started.enter_context(beside(pair, *arguments, state=tmp_path / "state", config=config))
                began = time.monotonic()
                while time.monotonic() < began + SECONDS:
                    pair.produce("a", topic, 20)
                    time.sleep(0.2)
                assert process.poll() is None, process.communicate()
                assert pair.committed("b", "held") == {}
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0, out + err
            assert pair.committed("b", "held") == {TopicPartition(held, 0): 50}
            source, copy = worker.copied(topic)
            assert {tp: [(r.key, r.value) for r in records] for tp, records in copy.items()} == {
                tp: [(r.key, r.value) for r in records] for tp, records in source.items()
            }

            # by now every token of the beginning is over
            def level() -> bool:
                weighed = pair.run_cli("status", "--format", "json", config=flow.config)
                assert weighed.code == 0, weighed.err
                rows = [row for row in weighed.json()["partitions"] if row["source_topic"] == topic]
                return len(rows) == 2 and all(row["source_end"] == row["mirrored_to"] > 0 for row in rows)

            pair.b.until(level, what="status tells that all is copied", seconds=60, every=0.5)
            worker.stop()
            loud = [line for line in worker.log.splitlines() if " WARNING " in line or " ERROR " in line]
        # authenticated again, not connected again: nothing was lost on the way
        assert all("answers 503" in line for line in loud), loud
        assert endpoint.turned_away > 0
        # two processes, four fifths of a life each
        assert len(endpoint.tokens) >= 2 * int(SECONDS / LIFE)
        brokers = [broker.log.read_text() for alias in ("a", "b") for broker in pair.lab.brokers(alias)]
        assert not any("authentication" in log.lower() for log in brokers), brokers
        assert not any(token in text for token in endpoint.tokens for text in (worker.log, out, err))
