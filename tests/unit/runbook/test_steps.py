"""The kinds of steps that look at clusters and change them, on clusters in memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from failover.errors import FailoverError
from failover.library.flows import MirrorFlow, load_config
from failover.model.cluster import LogRange
from failover.model.groups import Member
from failover.model.names import Fault, TopicPartition
from failover.model.rights import AclBinding
from failover.runbook import events as e
from failover.runbook.engine import Status
from failover.runbook.library import find_playbook
from failover.runbook.parse import parse
from failover.runbook.playbook import Playbook
from failover.runbook.reach import Reach
from failover.runbook.runner import Runner, Surroundings, preview
from failover.runbook.variables import variables_of
from failover.state.folder import StateFolder
from tests.fake_cluster import FakeCluster

CONFIG = """\
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:2
a->b.enabled = true
a->b.topics = orders, paid
"""
ORDERS = TopicPartition("orders", 0)
APP = Member("app-1", "/10.0.3.7", "app-1-uuid")


def started(playbook: Playbook, **given: str) -> e.Started:
    """Is how a run of a playbook begins, from a to b."""
    return e.Started(
        at=datetime(2026, 11, 30, tzinfo=UTC),
        run_id="p-1",
        playbook=playbook.name,
        digest="",
        variables=variables_of(playbook, given),
        operator="ann",
        host="h",
        tool_version="1",
        source="a",
        target="b",
    )


class Scene:
    """Is both clusters, and runs single steps as a playbook would."""

    def __init__(self, path: Path) -> None:
        self.a, self.b = FakeCluster("a"), FakeCluster("b")
        self.a.topic("orders", 2).topic("paid").topic("other").topic("mm2-offset-syncs.b.internal").topic("heartbeats")
        self.b.topic("a.orders", 2).topic("a.paid")
        for number in range(100):
            for cluster, topic in ((self.a, "orders"), (self.b, "a.orders")):
                cluster.append(topic, None, b"order %d" % number, timestamp=number)
        self.path = path
        self.configure()
        self.said: list[str] = []
        self.clock = 0.0
        self.on_sleep: Callable[[], None] = lambda: None

    def configure(self, more: str = "") -> None:
        (self.path / "mm2.properties").write_text(CONFIG + more)
        self.reach = Reach(load_config(self.path / "mm2.properties").flow(), StateFolder(self.path / "state"))

    def sleep(self, seconds: float) -> None:
        self.clock += seconds
        self.on_sleep()

    def around(self) -> Surroundings:
        return Surroundings(
            now=lambda: datetime(2026, 11, 30, tzinfo=UTC) + timedelta(seconds=self.clock),
            clock=lambda: self.clock,
            sleep=self.sleep,
            ask=lambda *_: True,
            say=self.said.append,
            stop=lambda: "",
            operator="ann",
            reach=self.reach,
        )

    def playbook(self, *steps: str) -> Any:
        listed = "\n".join(f"  - {{id: s{number}, title: T, {step}}}" for number, step in enumerate(steps))
        return parse(f"name: x\ndescription: x\nsteps:\n{listed}\n", "x.yaml")

    def runner(self, *steps: str, events: list[e.Event] | None = None) -> Runner:
        playbook = self.playbook(*steps)
        return Runner(playbook, [started(playbook), *(events or [])], self, self.around())

    def note(self, event: e.Event) -> None:
        """Is the journal: what it holds, the runner holds too."""

    def run(self, *steps: str) -> Runner:
        runner = self.runner(*steps)
        runner.run()
        return runner

    def previewed(self, step: str) -> str:
        [found] = preview(self.playbook(step), {}, self.around())
        return found.problem or found.would


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(tmp_path)
    clusters = {"a": made.a, "b": made.b}
    monkeypatch.setattr(MirrorFlow, "open_cluster", lambda _, alias, timeout=None: clusters[alias])
    return made


def failure(runner: Runner, step: str = "s0") -> str:
    known = runner.state.steps[step]
    assert known.failure is not None
    return known.failure.message


def result(runner: Runner, step: str = "s0") -> Any:
    assert runner.state.steps[step].status is Status.DONE, runner.state.steps[step].failure
    return runner.state.steps[step].result


def acl(permission: str, operation: str, topic: str = "orders", **more: str) -> AclBinding:
    return AclBinding(
        "topic", more.get("pattern", "literal"), topic, more.get("who", "User:*"), "*", permission, operation
    )


class TestFence:
    FENCE = "uses: fence"

    def test_the_flows_data_topics_and_no_other_are_shut_and_readers_stay(self, scene):
        scene.a.bindings = []
        scene.a.settings["super.users"] = "User:admin;User:mm2"
        assert "would create 8 ACLs on a: no WRITE on 2 topics; not kept out" in scene.previewed(self.FENCE)
        assert scene.a.bindings == []
        found = result(scene.run(self.FENCE))
        assert found == {
            "topics": ["orders", "paid"],
            "acls": 8,
            "proved": True,
            "super_users": ["User:admin", "User:mm2"],
        }
        wanted = {
            acl("DENY", "WRITE"),
            acl("ALLOW", "READ"),
            acl("ALLOW", "DESCRIBE"),
            acl("ALLOW", "DESCRIBE_CONFIGS"),
        }
        assert {each for each in scene.a.bindings if each.name == "orders"} == wanted
        assert {each.name for each in scene.a.bindings} == {"orders", "paid"}

    @pytest.mark.parametrize(
        "there",
        [acl("ALLOW", "READ", who="User:x"), acl("ALLOW", "READ", "or", pattern="prefixed"), acl("ALLOW", "ALL", "*")],
    )
    def test_where_an_acl_names_a_topic_nobody_is_let_in_besides(self, scene, there):
        scene.a.bindings = [there]
        scene.run(f"{self.FENCE}, with: {{topics: [orders]}}")
        assert scene.a.bindings == [there, acl("DENY", "WRITE")]

    def test_brokers_that_let_nobody_in_by_default_need_only_the_denial(self, scene):
        scene.a.bindings = []
        scene.a.settings["allow.everyone.if.no.acl.found"] = "false"
        scene.run(f"{self.FENCE}, with: {{topics: [orders]}}")
        assert scene.a.bindings == [acl("DENY", "WRITE")]

    def test_the_way_back_deletes_what_was_created_and_nothing_else(self, scene):
        mine = acl("DENY", "WRITE", "paid")
        scene.a.bindings = [mine]
        runner = scene.run(self.FENCE, "uses: command, with: {run: [no-such-program]}")
        assert runner.state.steps["s0"].status is Status.UNDONE
        assert scene.a.bindings == [mine]

    def test_cut_short_it_is_put_back_by_what_was_noted(self, scene):
        scene.a.bindings = []
        scene.a.before["create_acls"] = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        runner = scene.runner(self.FENCE)
        with pytest.raises(KeyboardInterrupt):
            runner.run()
        del scene.a.before["create_acls"]
        scene.a.bindings = [acl("DENY", "WRITE"), acl("DENY", "WRITE", "paid")]  # the request arrived, in part
        again = scene.runner(self.FENCE, events=[*runner.events[1:], e.TurnedBack(datetime.now(UTC), "ann")])
        again.run()
        assert scene.a.bindings == []

    def test_without_an_authorizer_it_says_so(self, scene):
        assert "a has no authorizer: ACLs keep nobody out" in failure(scene.run(self.FENCE))

    def test_a_user_that_no_acl_keeps_out_proves_nothing(self, scene):
        scene.a.bindings = []
        scene.a.may_write = lambda topics: dict.fromkeys(topics, True)
        assert result(scene.run(self.FENCE))["proved"] is False
        assert any("it is a super user" in said for said in scene.said)

    def test_one_topic_that_stays_open_fails_and_everything_is_put_back(self, scene):
        scene.a.bindings = []
        scene.a.may_write = lambda topics: {topic: topic == "paid" for topic in topics}
        runner = scene.run(self.FENCE)
        assert "1 of 2 topics are not shut: paid" in failure(runner)
        assert scene.a.bindings == []


class TestVerifyFence:
    STEP = "uses: verify-fence, timeout: 30s, with: {watch: 5s}"

    def test_nothing_written_for_the_whole_watch(self, scene):
        assert result(scene.run(self.STEP)) == {"topics": 2, "seconds": 5.0}

    def test_an_open_transaction_may_end_first(self, scene):
        rounds = iter(range(3))
        scene.on_sleep = lambda: next(rounds, None) is not None and scene.a.append("paid", None, b"x") and None
        assert result(scene.run(self.STEP))["seconds"] == 5.0

    def test_who_writes_on_is_named_by_topic(self, scene):
        scene.on_sleep = lambda: scene.clock > 3 and scene.a.append("paid", None, b"x") and None
        assert "written although producers are kept out: paid (1 records)" in failure(scene.run(self.STEP))
        scene.on_sleep = lambda: scene.a.append("paid", None, b"x") and None
        assert "not within 30 s: still written: paid (1 records)" in failure(scene.run(self.STEP))


class TestWaiting:
    DRAINED = "uses: wait-drained, timeout: 20s, with: {groups: [g, idle]}"
    INACTIVE = "uses: wait-inactive, timeout: 20s, with: {groups: [g], on: source}"

    def test_groups_with_members_are_waited_for(self, scene):
        scene.a.group("g", {ORDERS: 90}, state="Stable", members=(APP,)).group("idle", {ORDERS: 5})

        def consume() -> None:
            if scene.clock >= 3:
                scene.a.group("g", {ORDERS: 100}, state="Stable", members=(APP,))

        scene.on_sleep = consume
        assert "would wait for 1 groups; they have about 10 records left now" in scene.previewed(self.DRAINED)
        assert result(scene.run(self.DRAINED)) == {"groups": 1, "seconds": 3.0}

    def test_a_group_that_cannot_be_seen_is_not_taken_for_one_without_members(self, scene):
        scene.a.group("g", {ORDERS: 100}).group("idle", {ORDERS: 5})
        scene.a.faults["describe_groups", "g"] = Fault(30, "GROUP_AUTHORIZATION_FAILED", "no")
        assert "who is in 1 groups cannot be seen on the source: g: GROUP_AUTH" in failure(scene.run(self.DRAINED))
        assert "who is in 1 groups cannot be seen on the source: g: GROUP_AUTH" in failure(scene.run(self.INACTIVE))
        assert scene.clock < 1  # waiting would not help

    def test_when_time_is_up_who_has_what_left_is_named(self, scene):
        scene.a.group("g", {ORDERS: 90}, state="Stable", members=(APP,)).group("idle", {ORDERS: 5})
        said = failure(scene.run(self.DRAINED))
        assert said == "not within 20 s: g has 10 left on 1 partitions, most on orders 0, and has not moved"

    def test_what_holds_no_record_counts_as_consumed(self, scene):
        scene.a.topic("paid", 1, start=0, end=3)  # three offsets, no record: markers
        paid = TopicPartition("paid", 0)
        scene.a.group("g", {ORDERS: 100, paid: 1}, state="Stable", members=(APP,)).group("idle", {})
        assert result(scene.run(self.DRAINED)) == {"groups": 1, "seconds": 0.0}

    def test_records_of_an_aborted_transaction_at_the_end_count_as_consumed(self, scene):
        scene.a.group("g", {ORDERS: 98}, state="Stable", members=(APP,)).group("idle", {})
        scene.a.aborted = {(ORDERS, 98)}
        assert "g has 2 left" in failure(scene.run(self.DRAINED))
        scene.a.aborted.add((ORDERS, 99))
        scene.clock = 0.0
        assert result(scene.run(self.DRAINED))["groups"] == 1

    def test_groups_are_waited_for_until_nobody_is_in_them(self, scene):
        scene.a.group("g", {ORDERS: 90}, state="Stable", members=(APP,))
        assert "g (Stable: app-1 at /10.0.3.7)" in scene.previewed(self.INACTIVE)
        assert "still with members on the source: g (Stable: app-1" in failure(scene.run(self.INACTIVE))
        scene.on_sleep = lambda: scene.a.group("g", {ORDERS: 90}) and None
        scene.clock = 0.0
        assert result(scene.run(self.INACTIVE))["groups"] == 1


class TestOffsets:
    PLAN = "uses: plan, with: {groups: [g]}"
    EXECUTE = "uses: execute, with: {plan: '{{ steps.s0.plan_id }}', settle: 0s}"
    VERIFY = "uses: verify, with: {execution: '{{ steps.s1.execution_id }}'}"
    FAIL = "uses: command, with: {run: [no-such-program]}"

    @pytest.fixture(autouse=True)
    def group(self, scene):
        scene.a.group("g", {ORDERS: 60})

    def committed(self, scene):
        return {tp: c.offset for tp, c in scene.b.groups["g"].commits.items()} if "g" in scene.b.groups else None

    def test_planned_executed_and_verified(self, scene):
        assert "1 group ready" in scene.previewed(self.PLAN)
        runner = scene.run(self.PLAN, self.EXECUTE, self.VERIFY)
        assert self.committed(scene) == {TopicPartition("a.orders", 0): 60}
        assert result(runner)["ready"] == 1
        assert result(runner, "s1")["committed"] == 1
        assert result(runner, "s2") == {"held": 1, "back": 0, "groups": 1}

    def test_a_later_failure_rolls_it_back(self, scene):
        runner = scene.run(self.PLAN, self.EXECUTE, self.FAIL)
        assert runner.state.steps["s1"].status is Status.UNDONE
        assert "rolled back e-" in runner.state.steps["s1"].undo_text
        assert self.committed(scene) in (None, {})

    def test_cut_short_it_goes_on_and_what_is_written_is_not_written_again(self, scene):
        def stop(*_: object) -> None:
            if ("commit", 1) in scene.b.calls:
                raise KeyboardInterrupt

        scene.b.before["committed"] = stop

        runner = scene.runner(self.PLAN, self.EXECUTE)
        with pytest.raises((KeyboardInterrupt, FailoverError)):
            runner.run()
        del scene.b.before["committed"]
        assert self.committed(scene) == {TopicPartition("a.orders", 0): 60}
        again = scene.runner(
            self.PLAN, self.EXECUTE, events=[*runner.events[1:], e.Resumed(datetime.now(UTC), "bob", "h")]
        )
        assert again.run().outcome == "done"
        assert scene.b.calls.count(("commit", 1)) == 1
        assert self.committed(scene) == {TopicPartition("a.orders", 0): 60}

    def test_bounds_are_kept(self, scene):
        missing = f"{self.PLAN[:-1]}, most_missing: 1}}"
        scene.a.append("orders", None, b"one more", timestamp=100)
        assert result(scene.run(missing))["unreplicated"] == 1
        scene.a.append("orders", None, b"and one", timestamp=101)
        assert "the target lacks 2 records, more than 1" in failure(scene.run(missing))
        scene.b.group("g", {}, state="Stable", members=(APP,))
        assert "no group is ready" in failure(scene.run(self.PLAN))

    def test_commits_that_stood_still_between_two_plans_are_not_watched_again(self, scene):
        import msgspec

        from failover.library.planning import saved_plan
        from failover.planning.fingerprint import fingerprint
        from failover.planning.plan_file import encode_plan
        from failover.runbook.steps.execute import left_to_watch
        from failover.state.plans import save_plan

        def planned() -> Any:
            return saved_plan(scene.reach.state, str(result(scene.run(self.PLAN))["plan_id"]))

        later = planned()
        earlier = msgspec.structs.replace(later, id="abcdef", created=later.created - timedelta(seconds=10))
        earlier = msgspec.structs.replace(earlier, fingerprint=fingerprint(earlier))
        save_plan(scene.reach.state, earlier.id, encode_plan(earlier))
        assert [left_to_watch(earlier, later, seconds) for seconds in (6, 10, 12)] == [0, 0, 2]
        assert left_to_watch(later, earlier, 6) == 6
        step = f"uses: execute, with: {{plan: {later.id}, earlier: abcdef, settle: 10s}}"
        assert result(scene.run(step))["committed"] == 1
        assert "commits on b stood still since plan abcdef" in scene.said
        scene.b.group("g", {TopicPartition("a.orders", 0): 10})
        assert left_to_watch(earlier, planned(), 6) == 6

    def test_what_does_not_hold_any_more_fails_with_6(self, scene):
        runner = scene.run(self.PLAN, self.EXECUTE)
        scene.b.group("g", {TopicPartition("a.orders", 0): 5})
        again = scene.runner(self.PLAN, self.EXECUTE, f"{self.VERIFY}, on_failure: stop", events=runner.events[1:-1])
        end = again.run()
        assert (end.outcome, end.exit_code) == ("failed", 6)


class TestDryRun:
    def test_the_shipped_failover_has_no_problem_with_its_own_defaults(self, scene):
        scene.a.group("g", {ORDERS: 60})
        playbook = find_playbook("failover")
        found = {one.step: one for one in preview(playbook, variables_of(playbook, {}), scene.around())}
        assert {step: one.problem for step, one in found.items() if one.problem} == {}
        for behind in ("old-primary-back", "fence-old-primary", "tail"):
            assert "would be passed over" in found[behind].would


class TestPreparing:
    def test_topics_that_producers_need_are_made_like_the_sources(self, scene):
        scene.a.topic_configs["orders"] = {"retention.ms": "1000", "cleanup.policy": "compact"}
        step = "uses: prepare-topics"
        assert "would make 2 topics on the target: orders, paid" in scene.previewed(step)
        assert result(scene.run(step)) == {"created": ["orders", "paid"], "there": []}
        assert scene.b.infos["orders"].partitions == 2
        assert result(scene.run(step)) == {"created": [], "there": ["orders", "paid"]}

    def test_where_the_source_is_gone_they_are_made_like_their_copies(self, scene):
        scene.b.topic("a.heartbeats").topic("a.b.paid").topic("a.checkpoints.internal")
        scene.b.topic_configs["a.orders"] = {"retention.ms": "1000"}
        before = list(scene.a.calls)
        step = "uses: prepare-topics, with: {like: copies}"
        assert "would make 2 topics on the target: orders, paid" in scene.previewed(step)
        assert result(scene.run(step)) == {"created": ["orders", "paid"], "there": []}
        assert scene.b.infos["orders"].partitions == 2
        assert scene.b.topic_configs["orders"] == {"retention.ms": "1000"}
        assert scene.a.calls == before
        scene.b.topic("a.orders", 3)
        said = failure(scene.run(step))
        assert said == "topic orders has 2 partitions on the target, 3 in its copy"

    def test_what_mm2_keeps_on_the_target_is_no_copy_of_a_topic(self, scene):
        scene.configure("a->b.topics = .*\n")
        scene.b.topic("a.heartbeats").topic("a.checkpoints.internal").topic("mm2-offsets.a.internal")
        step = "uses: prepare-topics, with: {like: copies}"
        assert result(scene.run(step)) == {"created": ["orders", "paid"], "there": []}

    def test_a_topic_with_fewer_partitions_is_not_enlarged(self, scene):
        scene.b.topic("orders", 1).topic("paid", 5)
        said = failure(scene.run("uses: prepare-topics"))
        assert said == "topic orders has 1 partitions on the target, 2 on the source"

    def test_a_record_is_written_to_the_target_and_read_back(self, scene):
        assert "would make it and write one record to failover-canary" in scene.previewed("uses: canary")
        assert result(scene.run("uses: canary")) == {"offset": 0}
        assert result(scene.run("uses: canary")) == {"offset": 1}
        assert "orders is not a topic for this" in failure(scene.run("uses: canary, with: {topic: orders}"))
        scene.b.no_write.add("failover-canary")
        assert "the target takes no record" in failure(scene.run("uses: canary"))
        scene.b.append_records = lambda *_: 0
        assert "says it wrote offset 0 of failover-canary, which ended at 2" in failure(scene.run("uses: canary"))

    def test_rights_that_applications_lack_are_created_and_go_on_the_way_back(self, scene):
        scene.a.group("g", {ORDERS: 60})
        scene.a.bindings = [acl("ALLOW", "READ", who="User:app"), acl("ALLOW", "WRITE", who="User:app")]
        scene.a.bindings.append(acl("DENY", "WRITE"))  # a fence, which has no place on the target
        kept = acl("ALLOW", "READ", "a.paid", who="User:other")
        scene.b.bindings = [kept]
        plan = "uses: plan, with: {groups: [g]}"
        acls = "uses: acls, with: {plan: '{{ steps.s0.plan_id }}'}"
        runner = scene.run(plan, acls)
        created = result(runner, "s1")["created"]
        assert created >= 2
        assert len(scene.b.bindings) == 1 + created
        assert "DENY" not in {each.permission for each in scene.b.bindings}
        refused = scene.run(plan, f"{acls[:-1]}, apply: false}}")
        assert refused.state.steps["s1"].status is Status.DONE
        scene.b.bindings = [kept]
        runner = scene.run(plan, acls, "uses: command, with: {run: [no-such-program]}")
        assert runner.state.steps["s1"].undo_text == f"deleted {created} ACLs"
        assert scene.b.bindings == [kept]
        assert "the target lacks" in failure(scene.run(plan, f"{acls[:-1]}, apply: false}}"), "s1")

    def test_the_mirrors_lag_is_waited_for(self, scene):
        gate = "uses: replication-lag, timeout: 5s"
        assert "how far the mirror is cannot be told" in failure(scene.run(gate))  # nothing places it
        scene.a.group("g", {ORDERS: 60, TopicPartition("paid", 0): 0})
        scene.a.append("orders", None, b"one more", timestamp=100)
        assert "now 1, the oldest" in scene.previewed(gate)
        assert "the mirror is behind: 1 records on 1 partitions, most on orders 0 by 1" in failure(scene.run(gate))
        assert result(scene.run(f"{gate}, with: {{records: 1}}"))["records"] == 1
        assert "the mirror is behind" in failure(scene.run(f"{gate}, with: {{at_once: true}}"))
        scene.on_sleep = lambda: scene.b.append("a.orders", None, b"one more", timestamp=100) and None
        assert result(scene.run(gate))["records"] == 0

    def test_a_long_aborted_transaction_is_not_waited_for_where_the_mirror_copies_committed_records(self, scene):
        gate = "uses: replication-lag, timeout: 5s"
        scene.a.group("g", {ORDERS: 60, TopicPartition("paid", 0): 0})
        scene.a.append("orders", None, b"not copied yet")
        for _ in range(40):
            scene.a.aborted.add((ORDERS, scene.a.logs[ORDERS].end))
            scene.a.append("orders", None, b"aborted")
        scene.a.logs[ORDERS] = LogRange(0, scene.a.logs[ORDERS].end + 1)
        assert "most on orders 0 by 41" in failure(scene.run(gate))
        scene.configure("a.consumer.isolation.level = read_committed\n")
        assert "most on orders 0 by 1" in failure(scene.run(gate))
        scene.b.append("a.orders", None, b"not copied yet")
        assert result(scene.run(gate))["records"] == 0


def test_the_documentation_names_every_kind_and_the_shipped_playbooks_are_in_order():
    from failover.runbook.kinds import KINDS, kind
    from failover.runbook.library import find_playbook, shipped

    page = (Path(__file__).parents[3] / "docs" / "playbooks.md").read_text()
    for name in KINDS:
        assert f"`{name}`" in page, name
        assert kind(name).__doc__
    assert {"switchover", "failover"} <= set(shipped())
    for name in shipped():
        playbook = find_playbook(name)
        assert playbook.name == name
        assert any(step.final for step in playbook.steps) or name not in ("switchover", "failover")
