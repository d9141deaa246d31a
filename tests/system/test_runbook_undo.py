"""A step that fails: before the point of no return all is put back, after it what stands is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from failover.model.names import TopicPartition
from tests.system.pair import Pair
from tests.system.runbook_undo import failing


@pytest.mark.timeout(400)
def test_before_the_point_of_no_return_all_is_put_back_and_after_it_what_stands_is_told(
    pair: Pair, tmp_path: Path
) -> None:
    with failing(pair, tmp_path) as scene:
        first, second = scene.flow.source, scene.flow.target
        record = scene.undone("fence")
        undone = {step["id"] for step in record["steps"] if step["status"] == "undone"}
        assert undone == {"acls", "fence"}
        record = scene.undone("canary")
        undone = {step["id"] for step in record["steps"] if step["status"] == "undone"}
        assert undone == {
            *(
                "acls",
                "fence",
                "stop-producers",
                "stop-consumers",
                "stop-mirror",
                "unfence",
                "execute",
                "move-consumers",
            )
        }
        there = [f"stop producers {first}", f"stop consumers {first}", f"start consumers {second}"]
        back = [f"stop consumers {second}", f"start consumers {first}", f"start producers {first}"]
        assert scene.called == [*there, *back]
        assert {one["what"]: one["back"] for one in record["outages"]} == {
            "producers": "fence",
            "consumers": "stop-consumers",
        }

        before = scene.standing()
        ran, record = scene.run("move-producers")
        assert (ran.code, record["outcome"], record["final"]) == (2, "failed", "move-producers"), ran.err
        after = scene.standing()
        assert after.acls["a"] > before.acls["a"]  # the fence
        assert set(after.connectors.values()) == {"STOPPED"}
        remote = scene.flow.remote(scene.topic)
        # the replicator's copies begin at offset 1
        assert after.committed["b"] == {TopicPartition(remote, 0): 21, TopicPartition(remote, 1): 31}
        shown = pair.run_cli("show", record["id"], state=scene.place.state)
        assert shown.code == 0
        assert re.search(r"Stands: .*fence.*move-producers", shown.out, re.DOTALL)
        assert "Step move-producers has begun: from there on nothing is put back by itself." in shown.out
        assert f"Go on: failover run --resume {record['id']}" in shown.out
        refused = pair.run_cli(
            "run", "--resume", record["id"], "--undo", "--yes", config=scene.flow.config, state=scene.place.state
        )
        assert (refused.code, "there is no way back by itself" in refused.err) == (3, True)
