"""The steps of a failback: what only one cluster holds, the mirror turned round, the fence taken away."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from failover.errors import StateError
from failover.library.flows import MirrorFlow, load_config
from failover.mm2.offset_sync import OffsetSync
from failover.model.names import TopicPartition
from failover.model.records import Record
from failover.model.seed import SeedPartition
from failover.runbook.engine import Status
from failover.runbook.library import find_playbook
from failover.runbook.reach import Reach
from failover.runbook.runner import preview
from failover.runbook.steps.seed import covered
from failover.runbook.variables import variables_of
from failover.state.folder import StateFolder
from failover.state.tails import TailHead, TailPartition, TailWriter, tail_foot, tail_records
from tests.unit.connect.fake_connect import FakeConnect, serving
from tests.unit.runbook.test_steps import CONFIG, Scene, acl, failure, result

FAIL = "uses: command, with: {run: [no-such-program]}"
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
HEAD = TailHead(created=datetime(2026, 11, 30, tzinfo=UTC), run="p-1", cluster="a", cluster_id="A", lacking="b")


def chosen(made: Scene, path: Path, text: str, source: str, target: str) -> Scene:
    (path / "mm2.properties").write_text(text)
    flow = load_config(path / "mm2.properties").flow(source, target)
    made.reach = Reach(flow, StateFolder(path / "state"))
    return made


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Is the way back, from b to a: a has ten records that b does not."""
    made = chosen(Scene(tmp_path), tmp_path, CONFIG, "b", "a")
    clusters = {"a": made.a, "b": made.b}
    monkeypatch.setattr(MirrorFlow, "open_cluster", lambda _, alias, timeout=None: clusters[alias])
    made.b.topic("orders", 2)
    sync = OffsetSync("orders", 0, 99, 99)
    made.a.append("mm2-offset-syncs.b.internal", sync.encode_key(), sync.encode_value())
    for number in range(10):
        made.a.append("orders", b"k", b"late %d" % number, timestamp=1000 + number, headers=(("h", None),))
    return made


def part(first: int, end: int, *, topic: str = "orders") -> TailPartition:
    return TailPartition(topic=topic, partition=0, first=first, end=end, exact=True)


class TestFile:
    def test_it_appears_whole_and_for_its_owner_alone(self, tmp_path):
        path = tmp_path / "tail.ndjson"
        records = [Record(7, 5, None, b"\x00", (("h", b"x"), ("n", None))), Record(9, -1, b"k", None)]
        writer = TailWriter(path, HEAD)
        writer.add(part(7, 10), records)
        writer.add(part(4, 4, topic="paid"), [])
        assert not path.exists()
        foot = writer.finish()
        writer.discard()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [each.name for each in tmp_path.iterdir()] == ["tail.ndjson"]
        assert foot.records == 2
        assert [(each.offset, each.key, each.value, each.headers) for each in tail_records(path)] == [
            (7, None, b"\x00", (("h", b"x"), ("n", None))),
            (9, b"k", None, ()),
        ]
        assert json.loads(path.read_text().splitlines()[1])["value"] == "AA=="
        head, partitions = tail_foot(path)
        assert head == HEAD
        assert {tp: (one.first, one.end, one.records) for tp, one in partitions.items()} == {
            TopicPartition("orders", 0): (7, 10, 2),
            TopicPartition("paid", 0): (4, 4, 0),
        }

    def test_one_cut_short_leaves_the_older_file_and_is_begun_anew(self, tmp_path):
        path = tmp_path / "tail.ndjson"
        TailWriter(path, HEAD).finish()
        before = path.read_bytes()
        writer = TailWriter(path, HEAD)
        writer.add(part(0, 1), [Record(0, 0, None, b"x")])
        assert path.read_bytes() == before
        writer.discard()
        assert [each.name for each in tmp_path.iterdir()] == ["tail.ndjson"]

    def test_the_foot_is_found_however_long_it_is(self, tmp_path):
        path = tmp_path / "tail.ndjson"
        writer = TailWriter(path, HEAD)
        for number in range(3000):
            writer.add(part(number, number, topic=f"topic-{number}"), [])
        writer.finish()
        assert len(tail_foot(path)[1]) == 3000

    @pytest.mark.parametrize("text", ["", "{}", '{"kind":"failover.tail"}\n', "no json\n"])
    def test_another_file_is_none(self, tmp_path, text):
        (tmp_path / "x").write_text(text)
        with pytest.raises(StateError, match="is no exported tail"):
            tail_foot(tmp_path / "x")


class TestTail:
    def test_what_the_old_primary_alone_has_is_exported(self, scene, tmp_path):
        assert scene.previewed("uses: tail").startswith(
            "would export at most 10 records on 1 partitions: orders 0 from"
        )
        assert not (tmp_path / "state").exists()
        found = result(scene.run("uses: tail"))
        assert (found["records"], found["partitions"], found["exact"]) == (10, 1, True)
        assert found["file"] == str(tmp_path / "state" / "playbook-runs" / "p-1" / "tail-a.ndjson")
        assert [each.value for each in tail_records(Path(found["file"]))] == [b"late %d" % n for n in range(10)]
        assert {str(tp): one.end for tp, one in tail_foot(Path(found["file"]))[1].items()} == {
            "orders-0": 110,
            "orders-1": 0,
            "paid-0": 0,
        }

    def test_aborted_records_are_left_out_and_a_topic_that_was_never_mirrored_is_exported_whole(self, scene, tmp_path):
        scene.a.aborted.add((TopicPartition("orders", 0), 104))
        del scene.b.infos["a.paid"]
        scene.a.append("paid", None, b"never")
        found = result(scene.run(f"uses: tail, with: {{file: {tmp_path}/out}}"))
        values = [each.value or b"" for each in tail_records(tmp_path / "out")]
        assert (found["records"], found["partitions"]) == (10, 2)
        assert sorted(values) == sorted([b"late %d" % n for n in range(10) if n != 4] + [b"never"])

    def test_what_nobody_can_tell_fails_unless_all_of_it_is_wanted(self, scene):
        scene.a.append("paid", None, b"one")
        scene.b.append("a.paid", None, b"another")
        assert "nobody can tell which records of paid 0 b has" in failure(scene.run("uses: tail"))
        assert result(scene.run("uses: tail, with: {unknown: whole}"))["records"] == 11
        assert result(scene.run("uses: tail, with: {handle: ignore}"))["file"] == ""

    def test_it_fails_while_somebody_writes_there(self, scene, tmp_path):
        scene.a.before["windows"] = lambda *_: scene.a.append("orders", None, b"later")
        assert "written meanwhile on a: orders 0" in failure(scene.run("uses: tail"))
        assert not list((tmp_path / "state").rglob("*tail*"))

    def test_it_waits_until_the_mirror_has_brought_the_rest(self, scene):
        def mirror() -> None:
            end = scene.b.logs[TopicPartition("a.orders", 0)].end
            if end < 110:
                record = scene.a.log[TopicPartition("orders", 0)][end]
                scene.b.append("a.orders", record.key, record.value, timestamp=record.timestamp, headers=record.headers)

        scene.on_sleep = mirror
        found = result(scene.run("uses: tail, timeout: 60s, with: {handle: mirror}"))
        assert found["records"] == 0
        scene.on_sleep = lambda: None
        scene.a.append("orders", None, b"stays")
        assert "b does not have at most 1 records" in failure(
            scene.run("uses: tail, timeout: 60s, with: {handle: mirror}")
        )

    def test_seen_from_the_other_side_it_is_the_sources(self, scene, tmp_path):
        chosen(scene, tmp_path, CONFIG, "a", "b")
        assert result(scene.run("uses: tail, with: {on: source}"))["records"] == 10


class TestUnfence:
    def test_a_fence_of_whoever_is_taken_away_and_put_back(self, scene, tmp_path):
        other = acl("ALLOW", "READ", "paid", who="User:x")
        chosen(scene, tmp_path, CONFIG, "a", "b")
        scene.a.bindings = [other]
        scene.run("uses: fence")
        fenced = set(scene.a.bindings)
        chosen(scene, tmp_path, CONFIG, "b", "a")
        scene.b.topic("paid")
        assert scene.previewed("uses: unfence") == "would delete 5 ACLs on a: 2 topics are shut"
        assert result(scene.run("uses: unfence")) == {"acls": 5, "topics": ["orders", "paid"]}
        assert scene.a.bindings == [other]
        assert result(scene.run("uses: unfence")) == {"acls": 0, "topics": []}
        scene.a.bindings = list(fenced)
        runner = scene.run("uses: unfence", FAIL)
        assert runner.state.steps["s0"].status is Status.UNDONE
        assert set(scene.a.bindings) == fenced

    def test_without_an_authorizer_there_is_nothing_to_do(self, scene):
        scene.a.bindings = None
        assert result(scene.run("uses: unfence"))["acls"] == 0


class TestReverse:
    CODE = "import sys; open(sys.argv[1], 'a').write(' '.join(sys.argv[2:]) + chr(10))"
    HOOK = f'how: hook, hook: [{sys.executable}, -c, "{CODE}", %s]'

    def hook(self, path: Path, more: str = "") -> str:
        return f"uses: reverse-replication, with: {{{self.HOOK % path}{more}}}"

    def test_the_flow_back_is_stopped_before_this_one_is_started(self, scene, tmp_path):
        log = tmp_path / "log"
        assert scene.previewed(self.hook(log)).endswith(f"{log} start mirror b->a")
        found = result(scene.run(self.hook(log)))
        assert found == {"stopped": ["a->b"], "started": ["b->a"]}
        assert log.read_text() == "stop mirror a->b\nstart mirror b->a\n"
        scene.run(self.hook(log, ", part: finish"))
        assert log.read_text().endswith("\nstop mirror b->a\n")

    def test_the_way_back_turns_it_round_again(self, scene, tmp_path):
        log = tmp_path / "log"
        runner = scene.run(self.hook(log), FAIL)
        assert runner.state.steps["s0"].undo_text == "stop b->a; start a->b"
        assert log.read_text().splitlines()[2:] == ["stop mirror b->a", "start mirror a->b"]

    def test_by_hand_somebody_says_so(self, scene):
        found = result(scene.run("uses: reverse-replication, with: {how: manual}"))
        assert found == {"stopped": ["a->b"], "started": ["b->a"]}
        assert "Stop what mirrors a->b, and see that nothing starts it again." in scene.said

    def test_the_way_has_to_fit_the_names(self, scene, tmp_path):
        said = failure(scene.run("uses: reverse-replication, with: {how: manual, way: seed}"))
        assert said == "orders is called b.orders on a: nothing comes back under its name"
        chosen(scene, tmp_path, CONFIG + IDENTITY, "b", "a")
        said = failure(scene.run("uses: reverse-replication, with: {how: manual}"))
        assert said == "orders has one name on both clusters: mirrored back, all of it would be copied twice"

    def test_where_names_are_kept_both_directions_must_not_be_enabled(self, scene, tmp_path):
        both = "b->a.enabled = true\nb->a.topics = orders\n"
        chosen(scene, tmp_path, CONFIG + IDENTITY + both, "b", "a")
        step = "uses: reverse-replication, with: {how: manual, way: recreate}"
        assert "a->b is enabled in" in failure(scene.run(step))
        assert "a->b is enabled in" in scene.previewed(step)
        text = (CONFIG + IDENTITY + both).replace("a->b.enabled = true", "a->b.enabled = false")
        chosen(scene, tmp_path, text, "b", "a")
        result(scene.run(step))
        assert any("write a->b.emit.heartbeats.enabled = false" in said for said in scene.said)

    def test_where_names_are_kept_the_flow_back_is_not_started_again(self, scene, tmp_path):
        chosen(scene, tmp_path, CONFIG + IDENTITY, "b", "a")
        log = tmp_path / "log"
        runner = scene.run(self.hook(log, ", way: seed"), FAIL)
        undone = runner.state.steps["s0"].undo_text
        assert undone == "stop b->a; a->b stays stopped: it would copy again what came from b"
        assert log.read_text().splitlines()[-1] == "stop mirror b->a"

    def test_where_names_are_kept_a_mirror_maker_that_still_runs_is_waited_for(self, scene, tmp_path):
        chosen(scene, tmp_path, CONFIG + IDENTITY, "b", "a")
        from tests.unit.runbook.test_steps import APP

        scene.b.group("a-mm2", members=(APP,))
        runner = scene.run("uses: reverse-replication, timeout: 5s, with: {how: manual, part: stop, way: seed}")
        assert "MirrorMaker 2 still runs a->b: app-1 at 10.0.3.7" in failure(runner)


@pytest.fixture
def fake() -> Iterator[FakeConnect]:
    with serving(FakeConnect()) as started:
        started.add_flow()
        yield started


def test_on_kafka_connect_the_connectors_of_the_way_back_are_deployed(scene, fake, tmp_path):
    chosen(scene, tmp_path, CONFIG + "b->a.enabled = true\nb->a.topics = orders\n", "b", "a")
    turn = f"uses: reverse-replication, timeout: 20s, with: {{url: '{fake.url}'}}"
    found = result(scene.run(turn))
    assert set(found["stopped"]) == {"a-b-source", "a-b-checkpoint", "a-b-heartbeat"}
    states = fake.states()
    assert {name for name, state in states.items() if state == "STOPPED"} == set(found["stopped"])
    assert {name for name, state in states.items() if state == "RUNNING"} == set(states) - set(found["stopped"])
    assert len(states) == 6


def test_a_group_that_stands_further_on_by_what_it_consumed_itself_passes_the_gates(scene):
    """It read two of the records that were never mirrored, on the old primary, before it left."""
    copies = TopicPartition("a.orders", 0)
    scene.b.group("g", {copies: 100})
    scene.a.group("g", {TopicPartition("orders", 0): 102})
    plan = "uses: plan, with: {groups: [g], all_ready: true}"
    execute = "uses: execute, with: {plan: '{{ steps.s0.plan_id }}', settle: 0s}"
    runner = scene.run(plan, execute)
    assert (result(runner)["partial"], result(runner)["skipped"]) == (1, 0)
    assert runner.state.steps["s1"].status is Status.DONE, runner.state.steps["s1"].failure
    assert scene.a.committed(["g"])["g"][TopicPartition("orders", 0)].offset == 102
    scene.b.group("h", {copies: 50})
    both = scene.run(plan.replace("[g]", "[g, h]"), execute)
    assert both.state.steps["s1"].status is Status.DONE
    assert scene.a.committed(["h"])["h"][TopicPartition("orders", 0)].offset == 50


def test_the_whole_playbook_says_what_it_would_do_and_changes_nothing(scene, tmp_path):
    scene.b.bindings = []
    playbook = find_playbook("failback")
    variables = variables_of(playbook, {"replication": "manual", "tail": "ignore"})
    found = {one.step: one for one in preview(playbook, variables, scene.around())}
    assert [one.problem for one in found.values() if one.problem] == []
    assert found["assess"].would.startswith("would only tell: at most 10 records on 1 partitions: orders 0 from 100")
    assert found["stop-forward"].would.endswith("somebody to say that this is done: stop a->b")
    assert found["caught-up"].would.startswith("would wait until at most 10000 records are missing")
    assert "would be passed over" in found["recreate"].would
    assert "would be passed over" in found["seed"].would
    assert not (tmp_path / "state").exists()
    wrong = variables_of(playbook, {"way": "seed", "replication": "manual"})
    found = {one.step: one for one in preview(playbook, wrong, scene.around())}
    assert "nothing comes back under its name" in found["stop-forward"].problem


def test_a_tail_lets_a_partition_be_seeded_only_if_it_is_in_the_file_as_it_is_now():
    def seed(**more: Any) -> SeedPartition:
        values: dict[str, Any] = {"target_end": 110, "tail": 10, "mirrored": 100, "reason": "unreplicated-tail"} | more
        return SeedPartition(topic="orders", partition=0, action="refuse", offset=50, **values)

    there = {TopicPartition("orders", 0): part(98, 110)}
    assert covered(seed(), there).action == "write"
    assert covered(seed(), {}).action == "refuse"
    assert covered(seed(target_end=111), there).action == "refuse"
    assert covered(seed(mirrored=97), there).action == "refuse"
    assert covered(seed(reason="mixed"), there).action == "refuse"


class TestRecreate:
    @pytest.fixture
    def kept(self, scene: Scene, tmp_path: Path) -> Scene:
        return chosen(scene, tmp_path, CONFIG + IDENTITY, "b", "a")

    def step(self, file: object) -> str:
        return f"uses: recreate-topics, with: {{exported: '{file}'}}"

    def test_nothing_is_deleted_that_the_file_does_not_hold(self, kept, tmp_path):
        path = tmp_path / "tail"
        said = failure(kept.run(self.step("")))
        assert said.startswith("no exported file does not hold") or "orders 0 among them" in said
        writer = TailWriter(path, HEAD)
        writer.add(part(100, 109), [])
        writer.finish()
        assert "does not hold what 1 partitions end with, orders 0 among them" in failure(kept.run(self.step(path)))
        assert "orders" in kept.a.infos

    def test_another_clusters_file_does_not_count(self, kept, tmp_path):
        import msgspec

        TailWriter(tmp_path / "tail", msgspec.structs.replace(HEAD, cluster="b")).finish()
        assert "holds what b alone had, not a" in failure(kept.run(self.step(tmp_path / "tail")))

    def test_with_default_names_there_is_nothing_to_recreate(self, scene):
        assert "nothing comes back under its name" in failure(scene.run(self.step("")))
