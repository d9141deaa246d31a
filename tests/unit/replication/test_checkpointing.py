"""The checkpointer's settings, and what is run beside the copying by them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from failover.config.flow import SelectedFlow
from failover.config.load import load_config
from failover.errors import ConfigError
from failover.inventory.flow import flow_of
from failover.replication.checkpointing import CheckpointOptions, Leading, beside_copying, checkpoint_options

BASE = {
    "clusters": "a, b",
    "a.bootstrap.servers": "127.0.0.1:9092",
    "b.bootstrap.servers": "127.0.0.1:9093",
    "a->b.enabled": "true",
}
CLUSTER: Any = SimpleNamespace(alias="x")


def read(folder: Path, settings: Mapping[str, str]) -> tuple[Any, CheckpointOptions]:
    path = folder / "mm2.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in (BASE | dict(settings)).items()))
    config = load_config([str(path)])
    [only] = config.enabled_flows
    flow = flow_of(config, SelectedFlow(only, "a", "b"))
    return flow, checkpoint_options(config, only, flow)


def test_defaults(tmp_path: Path) -> None:
    _, options = read(tmp_path, {})
    assert (options.tracker.interval, options.tracker.new_groups) == (5, True)
    assert options.exact is not None
    assert (options.exact.name, options.exact.partitions, options.exact.replication_factor) == (
        "mm2-exact-checkpoints.a.internal",
        1,
        3,
    )
    assert options.exact.configs["cleanup.policy"] == "compact"
    assert options.checkpoints.name == "a.checkpoints.internal"
    assert (options.emit_seconds, options.sync_seconds) == (60, None)


@pytest.mark.parametrize(
    ("settings", "work"),
    [
        ({}, 2),
        ({"emit.checkpoints.enabled": "false"}, 1),
        ({"a->b.emit.checkpoints.interval.seconds": "-1"}, 1),
        ({"sync.group.offsets.enabled": "true"}, 3),
        ({"sync.group.offsets.enabled": "true", "a->b.sync.group.offsets.interval.seconds": "-1"}, 2),
        # MM2 (MirrorCheckpointConnector.taskConfigs): without checkpoints there is no task that could sync
        ({"sync.group.offsets.enabled": "true", "emit.checkpoints.enabled": "false"}, 1),
        ({"sync.group.offsets.enabled": "true", "emit.checkpoints.interval.seconds": "-1"}, 1),
        ({"failover.checkpoint.enabled": "false", "sync.group.offsets.enabled": "true"}, 0),
    ],
)
def test_settings_switch_what_is_done(tmp_path: Path, settings: dict[str, str], work: int) -> None:
    flow, options = read(tmp_path, settings)
    assert len(beside_copying(flow, CLUSTER, CLUSTER, options).work) == work


def test_intervals_and_limits_are_read(tmp_path: Path) -> None:
    _, options = read(
        tmp_path,
        {
            "failover.checkpoint.interval.seconds": "2.5",
            "failover.exact.max.records": "7",
            "refresh.groups.enabled": "false",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": "9",
            "checkpoints.topic.replication.factor": "1",
        },
    )
    assert (options.tracker.interval, options.tracker.max_records, options.tracker.new_groups) == (2.5, 7, False)
    assert options.sync_seconds == 9
    assert options.exact is not None
    assert (options.exact.replication_factor, options.checkpoints.replication_factor) == (1, 1)


@pytest.mark.parametrize("value", ["0", "soon", "-3"])
def test_an_interval_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r"checkpoint\.interval\.seconds"):
        read(tmp_path, {"failover.checkpoint.interval.seconds": value})


def test_who_leads_is_told_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    tokens: Any = SimpleNamespace(trouble="", held=False)
    tokens.holds = lambda token: token == 0 and tokens.held
    leading = Leading(tokens, "a->b")
    with caplog.at_level(logging.INFO):
        for held in (False, True, True, False, False, True):
            tokens.held = held
            assert leading() is held
        tokens.held, tokens.trouble = False, "GROUP_AUTHORIZATION_FAILED"
        assert [leading(), leading()] == [False, False]
    ours, theirs = "exact checkpoints of a->b: this one leads", "exact checkpoints of a->b: another one leads now"
    assert caplog.messages == [
        ours,
        theirs,
        ours,
        theirs,
        "exact checkpoints of a->b: nobody can be elected: GROUP_AUTHORIZATION_FAILED",
    ]
