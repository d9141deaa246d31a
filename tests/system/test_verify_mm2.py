"""An execution whose offsets a live MirrorMaker 2 writes again."""

from __future__ import annotations

from pathlib import Path

from failover.lab import MirrorOptions
from failover.model.names import TopicPartition
from tests.system.pair import Pair
from tests.system.typed import AT_ONCE, by_name, offsets, plan


def test_group_sync_that_moves_on_after_an_execution_is_named(pair: Pair, tmp_path: Path) -> None:
    """MM2 moves a group without members forward, never back: what it has at or below ours stays as it is."""
    topic, group = pair.create_topic("a", pair.name("sync.after")), pair.name("sync.after")
    witness = pair.name("sync.after.witness")
    name = "mm2-os-ot"
    options = MirrorOptions(
        topics=topic,
        groups=f"{group},{witness}",
        checkpoint_seconds=1,
        refresh_seconds=1,
        flush_seconds=1,
        sync_group_offsets=True,
    )
    with pair.mirror(options, aliases=("os", "ot")) as config:
        target = TopicPartition(f"os.{topic}", 0)

        def consumed(more: int) -> int:
            pair.produce("a", topic, more)
            pair.wait_mirrored(topic, flow="os")
            end = pair.ends("a", topic)[0][1]
            pair.commit("a", group, {(topic, 0): end})
            return end

        def synced(to: int, name: str = group) -> None:
            what = f"MM2 moves {name} to {to}"
            pair.b.until(lambda: pair.committed("b", name).get(target) == to, what=what, seconds=90)

        synced(consumed(60))
        pair.produce("a", topic, 30)
        pair.wait_mirrored(topic, flow="os")
        pair.lab.freeze(name)
        pair.commit("a", group, {(topic, 0): 75})
        made = plan(pair, group, state=tmp_path, config=config)
        assert offsets(by_name(made)[group]) == {(target.topic, 0): 75}
        ran = pair.run_cli("execute", made["id"], *AT_ONCE, state=tmp_path, config=config)
        assert ran.code == 0, ran.err
        run = ran.json()["id"]
        pair.lab.thaw(name)

        # where it would put the group is at or below ours: it leaves it
        pair.commit("a", witness, {(topic, 0): 90})
        synced(90, witness)
        held = pair.run_cli("verify", run, "--format", "json", state=tmp_path, config=config)
        assert (held.code, pair.committed("b", group)[target]) == (0, 75), held.out

        synced(consumed(30))
        found = pair.run_cli("verify", run, "--format", "json", state=tmp_path, config=config)
        (partition,) = found.json()["groups"][0]["partitions"]
        assert (found.code, partition["verdict"], partition["because"]) == (6, "overwritten", "mm2-group-sync")
        assert (partition["written"], partition["now"]) == (75, 120)
        said = " ".join(pair.run_cli("verify", run, state=tmp_path, config=config).out.split())
        assert "overwritten by MM2's group sync" in said
        assert "set os->ot.sync.group.offsets.enabled = false, then plan again" in said
        assert "next: stop MirrorMaker 2's checkpoint connector" in said

    # with it gone, a new plan and a new execution hold
    again = plan(pair, group, state=tmp_path, config=config)
    assert by_name(again)[group]["verdict"] == "ready"
    assert pair.committed("b", group)[target] == 120
