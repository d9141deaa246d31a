"""Which flows ``replicate`` runs, and of which it writes the heartbeats alone."""

from __future__ import annotations

import pytest

from failover.cli.entry import main
from failover.cli.frame import Settings
from failover.cli.replicate import _flows, _heartbeats_alone, _name_unused, _shares
from failover.config.load import load_config
from failover.errors import UsageError

THREE = "".join(f"{alias}.bootstrap.servers = {alias}:1\n" for alias in "ABC")


def chosen(tmp_path, text, *targets, source=None, target=None):
    """Gives the names of the flows that copy, and of those whose heartbeats alone are written."""
    path = tmp_path / "mm2.properties"
    path.write_text(f"clusters = A, B, C\n{THREE}{text}")
    config, settings = load_config(path), Settings()
    settings.source, settings.target = source, target
    flows = _flows(settings, config, targets)
    alone = _heartbeats_alone(settings, config, flows, targets)
    return " ".join(flow.name for flow in flows), " ".join(flow.name for flow in alone)


ONE = "A->B.enabled = true\n"


@pytest.mark.parametrize(
    ("text", "targets", "named", "alone"),
    [
        # MirrorMaker 2's driver runs every pair of clusters
        (ONE, (), {}, "A->C B->A B->C C->A C->B"),
        (f"{ONE}emit.heartbeats.enabled = false\n", (), {}, ""),
        (f"{ONE}emit.heartbeats.enabled = false\nB->A.emit.heartbeats.enabled = true\n", (), {}, "B->A"),
        (f"{ONE}C->B.emit.heartbeats.enabled = false\n", ("B",), {}, ""),
        (ONE, ("B",), {}, "C->B"),
        (ONE, (), {"source": "A", "target": "B"}, "B->A"),
        (ONE, (), {"source": "A"}, "B->A"),
        (ONE, (), {"target": "B"}, "B->A"),
    ],
)
def test_heartbeats_of_flows_that_copy_nothing(tmp_path, text, targets, named, alone):
    assert chosen(tmp_path, text, *targets, **named) == ("A->B", alone)


def test_a_flow_that_copies_writes_its_own(tmp_path):
    text = f"{ONE}B->A.enabled = true\n"
    assert chosen(tmp_path, text) == ("A->B B->A", "A->C B->C C->A C->B")
    assert chosen(tmp_path, text, source="A", target="B") == ("A->B", "")


@pytest.mark.parametrize("command", ["replicate", "checkpoint"])
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("8083", "is no HOST:PORT"),
        ("0.0.0.0:8083", "is beyond this machine and needs TLS (failover.rest.ssl.certificate, .ssl.key) and a token"),
    ],
)
def test_an_address_that_must_not_be_listened_on_ends_it_at_once(tmp_path, capsys, command, address, words):
    path = tmp_path / "mm2.properties"
    path.write_text(f"clusters = A, B\n{THREE}{ONE}")
    with pytest.raises(SystemExit) as ended:
        main(["--config", str(path), command, "--rest", address])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert words in error
    assert "hint: " in error


def test_each_setting_without_effect_is_named_once(tmp_path, caplog):
    path = tmp_path / "mm2.properties"
    unused = ("A->B.consumer.override.fetch.min.bytes", "listeners", "tasks.max", "retention.ms")
    path.write_text(
        f"clusters = A, B\n{THREE}{ONE}" + "".join(f"{key} = 1\n" for key in unused) + "topics.blacklist = x\n"
    )
    config = load_config(path)
    with caplog.at_level("INFO"):
        _name_unused(config, list(config.enabled_flows))
    for key in unused:
        assert len([line for line in caplog.messages if key in line and line.startswith("not used here: ")]) == 1
    # it is read here, whatever MM2 4.0 does
    [line] = [line for line in caplog.messages if "topics.blacklist" in line]
    assert "not used here" not in line
    assert "failover replicate reads it where topics.exclude is not set" in line


def shares(tmp_path, text, *, group=None, shard=None):
    path = tmp_path / "mm2.properties"
    path.write_text(f"clusters = A, B, C\n{THREE}{text}")
    return {
        name: str(share) for name, share in _shares(_flows(Settings(), load_config(path), ()), group, shard).items()
    }


TWO_INTO_B = f"{ONE}C->B.enabled = true\n"


def test_each_flow_has_a_group_of_its_own_where_none_is_named(tmp_path):
    assert shares(tmp_path, TWO_INTO_B) == {"A->B": "", "C->B": ""}
    assert shares(tmp_path, TWO_INTO_B, group="") == {
        "A->B": "group failover.replicate.A-B",
        "C->B": "group failover.replicate.C-B",
    }
    both_ways = f"{ONE}B->A.enabled = true\n"
    assert set(shares(tmp_path, both_ways, group="dr").values()) == {"group dr"}
    assert set(shares(tmp_path, both_ways, shard="2/3").values()) == {"shard 2/3"}


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (TWO_INTO_B, {"group": "dr"}, "several flows into one cluster (A->B, C->B)"),
        (ONE, {"group": "dr", "shard": "1/2"}, "exclude each other"),
        (ONE, {"shard": "3/2"}, "--shard '3/2' cannot be used"),
    ],
)
def test_shares_that_cannot_be_are_refused(tmp_path, text, options, words):
    with pytest.raises(UsageError) as caught:
        shares(tmp_path, text, **options)
    assert words in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("typed", [["--clusters", "B", "C"], ["--clusters", "B,C"], ["--clusters=B", "--clusters=C"]])
def test_clusters_are_named_as_mirror_maker_2_takes_them(tmp_path, monkeypatch, typed):
    path = tmp_path / "mm2.properties"
    path.write_text(f"clusters = A, B, C\n{THREE}A->B.enabled = true\nA->C.enabled = true\nC->A.enabled = true\n")
    picked: list[str] = []

    def noted(config, flows):
        picked.extend(flow.name for flow in flows)
        raise UsageError("enough")

    monkeypatch.setattr("failover.cli.replicate._name_unused", noted)
    with pytest.raises(SystemExit):
        main(["--config", str(path), "replicate", *typed])
    assert picked == ["A->B", "A->C"]


def test_a_cluster_that_is_not_there_is_named(tmp_path, capsys):
    path = tmp_path / "mm2.properties"
    path.write_text(f"clusters = A, B\n{THREE}{ONE}")
    with pytest.raises(SystemExit) as ended:
        main(["--config", str(path), "replicate", "mm2.properties", "--clusters", "B"])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert "has no cluster 'mm2.properties'" in error
    assert "clusters: A, B" in error


@pytest.mark.parametrize("typed", [["mm2.properties"], ["B"]])
def test_a_word_that_nothing_asked_for_is_refused_with_the_way(tmp_path, capsys, typed):
    path = tmp_path / "mm2.properties"
    path.write_text(f"clusters = A, B\n{THREE}{ONE}")
    with pytest.raises(SystemExit) as ended:
        main(["--config", str(path), "replicate", *typed])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert typed[0] in error
    assert "--config" in error
