"""Names of internal topics as people type them, those of guides among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from failover.mm2.guide_names import kind_of
from tests.unit.inventory.scene import flow


@pytest.mark.parametrize(
    ("word", "kind", "said"),
    [
        ("checkpoints", "checkpoints", ""),
        ("offset-syncs", "offset-syncs", ""),
        ("heartbeats", "heartbeats", ""),
        ("positions", "positions", ""),
        ("a.checkpoints.internal", "checkpoints", ""),
        ("mm2-exact-checkpoints.a.internal", "checkpoints", ""),
        ("mm2-offset-syncs.b.internal", "offset-syncs", ""),
        ("a.heartbeats", "heartbeats", ""),
        ("__mm2_heartbeats", "heartbeats", "mirrored copies in a.heartbeats on b"),
        ("__mm2_offsets_sync", "offset-syncs", "mm2-offset-syncs.b.internal on a"),
        ("mirrormaker2-cluster-b-offsets", "positions", "mm2-offsets.a.internal on b"),
        ("mm2-offsets.a.internal", "positions", "some guides take it for the checkpoints"),
        ("mm2-offset-syncs.a.internal", "offset-syncs", "not of the flow a->b"),
        ("z.checkpoints.internal", "checkpoints", "checkpoints are in a.checkpoints.internal on b"),
    ],
)
def test_a_name_is_recognised_and_the_real_one_said(tmp_path: Path, word, kind, said):
    meant = kind_of(word, flow(tmp_path).internal)
    assert meant is not None
    assert meant.kind == kind
    assert said in meant.note
    assert bool(meant.note) == bool(said)


@pytest.mark.parametrize("word", ["orders", "", "mm2-configs.a.internal", "checkpoint"])
def test_what_holds_none_of_these_records_is_nobodys_name(tmp_path: Path, word):
    assert kind_of(word, flow(tmp_path).internal) is None


def test_syncs_kept_on_the_target_have_the_sources_alias(tmp_path: Path):
    internal = flow(tmp_path, {"offset-syncs.topic.location": "target"}).internal
    meant = kind_of("mm2-offset-syncs.b.internal", internal)
    assert meant is not None
    assert "mm2-offset-syncs.a.internal on b" in meant.note
