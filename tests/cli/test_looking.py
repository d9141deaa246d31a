"""What `status`, `inspect`, `translate` and `health` refuse before anything is contacted, and a target out of reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from failover.cli.entry import root
from failover.cli.frame import Settings
from failover.errors import ClusterUnreachable, FailoverError, UsageError


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "mm2.properties"
    # nobody listens on port 1
    path.write_text(
        "clusters=a,b\na.bootstrap.servers=127.0.0.1:1\nb.bootstrap.servers=127.0.0.1:1\na->b.enabled=true\n"
    )
    return str(path)


def refused(config: str, *arguments: str) -> FailoverError:
    state = str(Path(config).parent / "state")
    options = ["--config", config, "--state-dir", state, "--timeout", "0.2s"]
    done = CliRunner().invoke(root, [*options, *arguments], obj=Settings())
    assert isinstance(done.exception, FailoverError), done.output
    return done.exception


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["inspect"], "wants to know what"),
        (["inspect", "orders"], "none of MirrorMaker 2's topics"),
        (["inspect", "mm2-configs.a.internal"], "none of MirrorMaker 2's topics"),
        (["inspect", "positions", "--group", "g"], "--group does not go with positions"),
        (["inspect", "checkpoints", "--follow", "--format", "yaml"], "--follow does not go with"),
        (["inspect", "offset-syncs", "--source-down"], "which --source-down leaves alone"),
        (["status", "--watch", "--check"], "--watch does not go with --check"),
        (["status", "--watch", "--format", "json"], "--watch does not go with --format"),
    ],
)
def test_what_cannot_be_shown_is_a_usage_error(config, arguments, said):
    error = refused(config, *arguments)
    assert isinstance(error, UsageError)
    assert said in error.message
    assert error.hint


@pytest.mark.parametrize("arguments", [["inspect", "checkpoints"], ["translate", "g", "--source-down"]])
def test_a_target_out_of_reach_is_named(config, arguments):
    error = refused(config, *arguments)
    assert isinstance(error, ClusterUnreachable)
    assert (error.alias, error.exit_code) == ("b", 8)
