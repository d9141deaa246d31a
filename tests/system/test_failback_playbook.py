"""The shipped failback after the shipped failover: every record is accounted for, and groups go on where they were."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from failover.lab import MirrorOptions
from tests.system.failing_back import Site, there_and_back
from tests.system.pair import Pair
from tests.system.test_seed import There


def test_with_default_names_the_real_mirror_maker_brings_back_what_was_written(pair: Pair, tmp_path: Path) -> None:
    aliases = (pair.name("fa"), pair.name("fb"))
    topic, group = pair.create_topic("a", pair.name("failback"), 2), pair.name("failback.group")
    pair.create_topic("b", topic, 2)
    pair.expected["b"].add("failover-canary")
    pair.expected["a"].add("failover-canary")
    there, back = f"{aliases[0]}->{aliases[1]}", f"{aliases[1]}->{aliases[0]}"
    # With heartbeats on, its worker would begin with the connectors as they were, and mirror that way for a while.
    flows = {there: {}, back: {f"{there}.enabled": "false", f"{there}.emit.heartbeats.enabled": "false"}}
    options = {
        flow: MirrorOptions(
            topics=re.escape(topic), checkpoint_seconds=1, refresh_seconds=1, flush_seconds=1, both_ways=bool(added)
        )
        for flow, added in flows.items()
    }
    configs = [pair.config_path(aliases=aliases, options=options[flow], added=flows[flow]) for flow in flows]

    @contextlib.contextmanager
    def mirrors(flow: str) -> Iterator[None]:
        with pair.mirror(options[flow], aliases=aliases, added=flows[flow]):
            yield

    copies = (f"{aliases[0]}.{topic}", f"{aliases[1]}.{topic}")
    subscribed = {aliases[0]: [topic, copies[1]], aliases[1]: [copies[0], topic]}
    site = Site(pair, tmp_path, topic, group, aliases=aliases, subscribed=subscribed, mirrors=mirrors)
    with site.at_work():
        there_and_back(site, tmp_path / "state", forward=configs[0], backward=configs[1], copies=copies, way="prefix")


def one_name(pair: Pair, tmp_path: Path, way: str) -> None:
    """Goes there and back by this tool's replicator, with one topic name on both clusters."""
    stem = pair.name("oneway")
    flow = There(pair, rf"{stem}\..*")
    topic, group = pair.create_topic("a", f"{stem}.t", 2), pair.name("oneway.group")
    pair.expect_topic(rf"{stem}\..*")
    for alias in ("a", "b"):
        pair.expected[alias].add("failover-canary")
    aliases = (flow.source, flow.target)

    @contextlib.contextmanager
    def mirrors(which: str) -> Iterator[None]:
        flow.config = flow.there if which == flow.name else flow.back
        with flow.worker() as worker:
            yield
            worker.stop()

    site = Site(
        pair,
        tmp_path,
        topic,
        group,
        aliases=aliases,
        subscribed={alias: [topic] for alias in aliases},
        mirrors=mirrors,
    )
    with site.at_work():
        back = there_and_back(
            site, tmp_path / "state", forward=flow.there, backward=flow.back, copies=(topic, topic), way=way
        )
    assert back["open-for-mirror"]["topics"] == [topic]
    if way == "seed":
        assert back["seed"] == {"written": 2, "there": 0}
    else:
        assert back["recreate"]["deleted"] == [topic]


def test_with_one_name_the_mirror_begins_behind_what_came_from_there(pair: Pair, tmp_path: Path) -> None:
    one_name(pair, tmp_path, "seed")
