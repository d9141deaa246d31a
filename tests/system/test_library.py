"""The package as a library: the documentation's own example, and what comes back, on real brokers."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import failover
from failover.errors import GroupNotFound, UsageError
from failover.model.execution import Outcome
from failover.model.plan import Verdict
from tests.system.pair import Pair

PAGE = Path(failover.__file__).parents[1] / "docs" / "library.md"


@pytest.fixture(scope="module")
def placed(mm2: Pair) -> tuple[str, str]:
    """Is a topic of the source, and a group that stands in it."""
    topic = mm2.create_topic("a", mm2.name("t.library"), 2)
    mm2.produce("a", topic, 400)
    mm2.wait_mirrored(topic)
    group = mm2.name("library")
    mm2.commit("a", group, {(topic, 0): 150, (topic, 1): 200})
    mm2.wait_checkpoint(group, topic, 0, upstream=150)
    return topic, group


def test_a_whole_failover_in_a_program(
    mm2: Pair, placed: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    topic, group = placed
    config = failover.load_config(mm2.lab.config)
    flow = config.flow("a", "b")
    assert [each.name for each in config.flows] == [flow.name] == ["a->b"]
    assert "password" not in repr(config) + repr(flow)

    snapshot = failover.take_snapshot(flow, groups=[group])
    assert failover.from_json(failover.to_json(snapshot)) == snapshot
    plan = failover.make_plan(snapshot, groups=[group], reason="drill")
    assert [(each.group, each.verdict) for each in plan.groups] == [(group, Verdict.READY)]
    assert failover.from_json(failover.to_json(plan)) == plan

    state = tmp_path / "state"
    execution: failover.Execution = failover.execute(plan, flow, state_dir=state, settle_seconds=0)
    assert execution.outcome is Outcome.DONE
    assert failover.from_json(failover.to_json(execution)) == execution
    written = {(p.topic, p.partition): p.read_back for each in execution.groups for p in each.partitions}
    assert written == {(f"a.{topic}", 0): 150, (f"a.{topic}", 1): 200} == mm2.committed("b", group)
    # what a program did is the command line's to look at
    assert mm2.run_cli("verify", execution.id, state=state).code == 0

    found = failover.translate_offsets(flow, group)
    assert {place: each.placed for place, each in found.items()} == {
        failover.TopicPartition(f"a.{topic}", 0): 150,
        failover.TopicPartition(f"a.{topic}", 1): 200,
    }
    one = next(iter(found.values()))
    assert failover.from_json(failover.to_json(one), failover.TranslatedOffset) == one
    assert failover.translate_offsets(config, mm2.name("library.nobody")) == {}
    assert capfd.readouterr() == ("", "")


def test_what_is_wrong_is_raised_with_the_next_step(mm2: Pair, placed: tuple[str, str]) -> None:
    flow = failover.load_config(mm2.lab.config).flow()
    with pytest.raises(GroupNotFound) as missing:
        failover.take_snapshot(flow, groups=["library.missing"])
    assert missing.value.exit_code == 2
    plan = failover.make_plan(failover.take_snapshot(flow, groups=[placed[1]], source_down=True))
    assert plan.source.state == "not-asked"
    back = failover.load_config(mm2.lab.config).flow("b", "a")
    with pytest.raises(UsageError):
        failover.execute(plan, back)
    with pytest.raises(failover.FailoverError):
        failover.from_json(failover.to_json(plan).replace(plan.id, "000000"))


def test_the_examples_of_the_documentation_run(mm2: Pair, placed: tuple[str, str], tmp_path: Path) -> None:
    shutil.copy(mm2.lab.config, tmp_path / "mm2.properties")
    group = placed[1]
    blocks: list[str] = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == 2
    outs = []
    for block in blocks:
        code = block.replace('"billing"', repr(group)).replace(
            "make_plan(snapshot)", f"make_plan(snapshot, groups=[{group!r}])"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        outs.append(done.stdout)
    assert f"{group} ready up" in outs[0]
    assert "exact 0" in outs[1]
    assert isinstance(failover.from_json((tmp_path / "plan.json").read_text()), failover.Plan)
