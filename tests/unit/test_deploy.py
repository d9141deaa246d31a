"""The files by which it is run as a service: they parse, and the commands they run are ones."""

from __future__ import annotations

import configparser
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from failover.cli import COMMANDS
from failover.cli.entry import root
from failover.cli.frame import Settings

FOLDER = Path(__file__).parents[2] / "docs" / "deploy"
SERVICES = sorted(FOLDER.glob("systemd/*.service"))
MANIFESTS = sorted(FOLDER.glob("kubernetes/*.yaml"))


@pytest.fixture
def is_a_command(capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], str]:
    """Parses arguments as the command line does, up to a help text; gives the command's name."""

    def parse(arguments: list[str]) -> str:
        root.main([*arguments, "--help"], prog_name="failover", standalone_mode=False, obj=Settings())
        match = re.match(r"Usage: failover (\w+)", capsys.readouterr().out)
        assert match is not None
        return match[1]

    return parse


def unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text())
    return parser


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_units(path: Path, is_a_command: Callable[[list[str]], str]) -> None:
    parser = unit(path)
    program, *arguments = shlex.split(parser["Service"]["ExecStart"])
    assert program.endswith("/failover")
    assert is_a_command(arguments) == path.stem.removeprefix("failover-")
    assert parser["Service"]["RestartPreventExitStatus"].split() == ["2", "3"]
    assert "143" in parser["Service"]["SuccessExitStatus"].split()


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests(path: Path, is_a_command: Callable[[list[str]], str]) -> None:
    [document] = list(yaml.safe_load_all(path.read_text()))
    spec: dict[str, Any] = document["spec"]
    assert document["kind"] == "Deployment"
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    [container] = spec["template"]["spec"]["containers"]
    assert is_a_command(container["args"]) == path.stem
    [mount] = container["volumeMounts"]
    assert mount["name"] in {volume["name"] for volume in spec["template"]["spec"]["volumes"]}
    assert container["args"][1].startswith(mount["mountPath"])
    if path.stem == "replicate":
        assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
    else:
        assert spec["replicas"] == 2


def test_the_container_file_runs_a_command() -> None:
    text = (FOLDER / "Containerfile").read_text()
    entry, command = (re.search(rf'^{word} \["(.+)"\]$', text, re.MULTILINE) for word in ("ENTRYPOINT", "CMD"))
    assert entry is not None
    assert command is not None
    assert (entry[1], command[1] in COMMANDS) == ("failover", True)


def test_the_page_names_every_file() -> None:
    page = (FOLDER / "index.md").read_text()
    for path in (*SERVICES, *MANIFESTS, FOLDER / "Containerfile"):
        assert f"({path.relative_to(FOLDER)})" in page
