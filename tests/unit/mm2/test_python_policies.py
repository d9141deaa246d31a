"""Policies that an installed Python package offers: found, asked, and named where they are wrong."""

from __future__ import annotations

import sys
from textwrap import dedent

import pytest

from failover.config.flow import SelectedFlow
from failover.config.load import load_config
from failover.errors import ConfigError
from failover.inventory.flow import flow_of
from failover.mm2.internal_topics import InternalTopics
from failover.mm2.python_policy import GROUP, PythonReplicationPolicy, installed_policies
from failover.mm2.replication_policy import is_cycle, policy_from
from failover.mm2.topic_selection import selection_from
from failover.replication.topics_seen import choose

JAVA = "com.acme.SuffixPolicy"
CLASS, OWN, MAP = (
    "replication.policy.class",
    "failover.replication.policy.class",
    "failover.replication.policy.topic.map",
)
SUFFIX = """
    class SuffixPolicy:
        def configure(self, settings):
            self.settings = dict(settings)
            self.alias = settings["source.cluster.alias"]

        def format_remote_topic(self, source_alias, topic):
            return f"{topic}.of-{source_alias}"

        def topic_source(self, topic):
            name, mark, alias = topic.rpartition(".of-")
            return alias if mark else None

        def upstream_topic(self, topic):
            name, mark, alias = topic.rpartition(".of-")
            return name if mark else None
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Lays a package out as pip would; gives its folder on the path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made = []

    def put(code=SUFFIX, *, name=JAVA, package="acme_policies", attribute="SuffixPolicy"):
        (tmp_path / f"{package}.py").write_text(dedent(code))
        about = tmp_path / f"{package}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {package}:{attribute}\n")
        made.append(package)

    yield put
    for package in made:
        sys.modules.pop(package, None)


def test_a_java_class_is_named_by_the_python_policy_of_its_name(install):
    install()
    assert installed_policies() == (JAVA,)
    policy = policy_from({CLASS: JAVA, "replication.policy.separator": "_"}, "a")
    assert policy.name == f"python:{JAVA}"
    assert policy.format_remote_topic("a", "orders") == "orders.of-a"
    assert (policy.topic_source("orders.of-a"), policy.upstream_topic("orders.of-a")) == ("a", "orders")
    assert policy.original_topic("orders.of-a.of-b") == "orders"
    assert policy.topic_source("orders") is None
    assert policy.is_heartbeats_topic("heartbeats.of-a")
    assert not policy.is_heartbeats_topic("a.heartbeats")
    assert policy.mirrors("orders")
    assert isinstance(policy, PythonReplicationPolicy)
    assert policy.policy.settings == {CLASS: JAVA, "replication.policy.separator": "_", "source.cluster.alias": "a"}


def test_it_is_also_taken_by_a_name_of_ones_own(install):
    install(name="suffix")
    for settings in ({OWN: "suffix", CLASS: "com.acme.Other"}, {CLASS: "suffix"}):
        assert policy_from(settings, "a").format_remote_topic("a", "t") == "t.of-a"
    # MM2's own names are never anybody else's
    assert policy_from({OWN: "identity"}, "a").name == "identity"


def test_internal_topics_cycles_and_a_map_stand_on_it(install):
    install()
    settings = {CLASS: JAVA}
    policy = policy_from(settings, "a")
    names = InternalTopics.of_flow(settings, "a", "b", policy)
    assert (names.offset_syncs, names.checkpoints) == ("mm2-offset-syncs.b.internal", "a.checkpoints.internal")
    assert names.remote_heartbeats == "heartbeats.of-a"
    assert is_cycle(policy, "a", "b", "orders.of-b")
    assert is_cycle(policy, "a", "b", "orders.of-b.of-c")
    assert not is_cycle(policy, "a", "b", "orders.of-c")
    chosen = selection_from(settings, "a", "b", policy)
    assert chosen.should_replicate("orders")
    assert (chosen.why_not("orders.of-b") or "").startswith("cycle")
    assert chosen.why_not("a.checkpoints.internal") == "internal topic"
    mapped = policy_from(settings | {MAP: "orders:sales"}, "a")
    assert [mapped.format_remote_topic("a", topic) for topic in ("orders", "bills")] == ["sales", "bills.of-a"]


def test_what_it_answers_itself_goes_before_the_default(install):
    install(
        SUFFIX
        + """
        def heartbeats_topic(self):
            return "beats"

        def offset_syncs_topic(self, alias):
            return f"syncs-{alias}"

        def checkpoints_topic(self, alias):
            return f"checkpoints-{alias}"

        def is_internal_topic(self, topic):
            return topic.startswith("internal")
"""
    )
    policy = policy_from({CLASS: JAVA}, "a")
    names = InternalTopics.of_flow({}, "a", "b", policy)
    assert (names.heartbeats, names.remote_heartbeats) == ("beats", "beats.of-a")
    assert (names.offset_syncs, names.checkpoints) == ("syncs-b", "checkpoints-a")
    assert policy.is_heartbeats_topic("beats.of-a")
    assert policy.is_checkpoints_topic("checkpoints-a")
    assert policy.is_mm2_internal_topic("checkpoints-a")
    assert policy.is_internal_topic("internal-1")
    assert not policy.is_internal_topic("__consumer_offsets")


@pytest.fixture
def configured(tmp_path):
    """Works out the flow of a file that names the policy."""

    def flow():
        path = tmp_path / "mm2.properties"
        path.write_text(
            "clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\na->b.enabled = true\n"
            f"a->b.topics = .*\nreplication.policy.class = {JAVA}\n"
        )
        config = load_config(path)
        [only] = config.enabled_flows
        return flow_of(config, SelectedFlow(only, "a", "b"))

    return flow


def test_plans_and_the_replicator_use_it_alike(install, configured):
    install()
    flow = configured()
    assert flow.info.replication_policy == f"python:{JAVA}"
    assert (flow.target_topic("orders"), flow.source_topic("orders.of-a")) == ("orders.of-a", "orders")
    assert choose(flow, ["orders", "orders.of-b"]).targets == {"orders": "orders.of-a"}
    assert flow.opposite is not None
    assert flow.opposite.target_topic("orders") == "orders.of-b"


WRONG = [
    ("def SuffixPolicy():\n    raise RuntimeError('no licence')", r"cannot be made: RuntimeError\('no licence'\)"),
    ("raise OSError('broken')", r"cannot be made: OSError\('broken'\)"),
    ("other = 1", "cannot be made: AttributeError"),
    (SUFFIX.replace("upstream_topic", "upstream"), "lacks upstream_topic"),
    (SUFFIX.replace("return name if mark else None", "return topic"), "says of that name that it is 'orders.of-a'"),
    (SUFFIX.replace("return name if mark else None", "return 7"), r"upstream_topic\('orders.of-a'\) gives 7"),
    (SUFFIX.replace('return f"{topic}.of-{source_alias}"', "return None"), "gives None, which is not a name"),
    (SUFFIX.replace("return alias if mark else None", "return mark / 2"), r"topic_source\('.*'\) failed: TypeError"),
]


@pytest.mark.parametrize(("code", "message"), WRONG)
def test_what_is_wrong_with_it_is_said(install, code, message):
    install(code)
    with pytest.raises(ConfigError, match=message) as caught:
        policy_from({CLASS: JAVA}, "a")
    assert JAVA in caught.value.message
    assert caught.value.hint


def test_a_failure_at_one_topic_costs_that_topic_alone(install, configured):
    install(SUFFIX.replace('return f"', 'assert topic != "odd"\n            return f"'))
    choice = choose(configured(), ["even", "odd"])
    assert choice.targets == {"even": "even.of-a"}
    [fault] = choice.faults
    assert (fault.topic, fault.code) == ("odd", "policy-failed")
    assert "format_remote_topic('a', 'odd') failed: AssertionError" in str(fault)


def test_an_unknown_class_is_refused_with_what_to_install(install):
    install(name="com.acme.Else")
    with pytest.raises(ConfigError, match=JAVA) as caught:
        policy_from({CLASS: JAVA}, "a")
    assert f"the entry point {JAVA} of the group {GROUP}; installed ones: com.acme.Else" in caught.value.hint
    with pytest.raises(ConfigError, match="unknown policy 'acme'") as caught:
        policy_from({OWN: "acme"}, "a")
    assert GROUP in caught.value.hint


def test_two_packages_that_offer_one_are_both_named(install):
    install()
    install(package="other_policies")
    with pytest.raises(ConfigError, match=r"acme_policies \(acme_policies:SuffixPolicy\), other_policies \("):
        policy_from({CLASS: JAVA}, "a")
