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
from failover.runbook.library import shipped
from failover.serve.access import HEALTH

FOLDER = Path(__file__).parents[2] / "docs" / "deploy"
SERVICES = sorted(FOLDER.glob("systemd/*.service"))
TIMERS = sorted(FOLDER.glob("systemd/*.timer"))
MANIFESTS = sorted(FOLDER.glob("kubernetes/*.yaml"))


@pytest.fixture
def is_a_command(capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], str]:
    """Parses arguments as the command line does, up to a help text; gives the command's name."""

    def parse(arguments: list[str]) -> str:
        # An option that comes after it is parsed all the same, and one that does not exist is refused.
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
    name = path.stem.removeprefix("failover-")
    if path.with_suffix(".timer") in TIMERS:
        assert is_a_command(arguments) == by_the_clock(name, arguments)
        assert parser["Service"]["Type"] == "oneshot"
        assert f"/var/lib/{parser['Service']['StateDirectory']}" in arguments
        return
    assert is_a_command(arguments) == name
    assert parser["Service"]["RestartPreventExitStatus"].split() == ["2", "3"]
    assert "143" in parser["Service"]["SuccessExitStatus"].split()


@pytest.mark.parametrize("path", TIMERS, ids=lambda path: path.name)
def test_timers(path: Path) -> None:
    assert path.with_suffix(".service") in SERVICES
    assert unit(path)["Timer"]["OnCalendar"]


def by_the_clock(name: str, arguments: list[str]) -> str:
    """Gives the command that belongs to a file's name; a playbook of that name must exist where it runs one."""
    if name != "drill":
        return name
    assert name in shipped()
    assert name in arguments
    return "run"


def kinds(kind: str) -> list[Any]:
    """Gives the manifests of a kind."""
    found = [path for path in MANIFESTS if yaml.safe_load(path.read_text())["kind"] == kind]
    return [pytest.param(path, id=path.name) for path in found]


def mounted(pod: dict[str, Any]) -> dict[str, Any]:
    """Gives a pod's volumes by where its only container has them."""
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    [container] = pod["containers"]
    return {mount["mountPath"]: volumes.pop(mount["name"]) for mount in container["volumeMounts"]}


@pytest.mark.parametrize("path", kinds("CronJob"))
def test_jobs(path: Path, is_a_command: Callable[[list[str]], str]) -> None:
    spec = yaml.safe_load(path.read_text())["spec"]
    assert len(spec["schedule"].split()) == 5
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert is_a_command(container["args"]) == by_the_clock(path.stem, container["args"])
    volumes = mounted(pod)
    [claim] = kinds("PersistentVolumeClaim")
    state = yaml.safe_load(claim.values[0].read_text())["metadata"]["name"]
    folder = container["args"][container["args"].index("--state-dir") + 1]
    assert volumes[folder]["persistentVolumeClaim"]["claimName"] == state
    assert volumes[str(Path(container["args"][1]).parent)]["secret"]["secretName"] == "failover"


@pytest.mark.parametrize("path", kinds("Deployment"))
def test_manifests(path: Path, is_a_command: Callable[[list[str]], str]) -> None:
    [document] = list(yaml.safe_load_all(path.read_text()))
    spec: dict[str, Any] = document["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    [container] = spec["template"]["spec"]["containers"]
    assert is_a_command(container["args"]) == path.stem
    [mount] = container["volumeMounts"]
    assert mount["name"] in {volume["name"] for volume in spec["template"]["spec"]["volumes"]}
    assert container["args"][1].startswith(mount["mountPath"])
    if path.stem == "replicate":
        assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
        [port] = container["ports"]
        assert container["args"][container["args"].index("--rest") + 1] == f"0.0.0.0:{port['containerPort']}"
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            asked = container[probe]["httpGet"]
            assert (asked["path"].partition("?")[0], asked["port"], asked["scheme"]) == (HEALTH, port["name"], "HTTPS")
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
    for path in (*SERVICES, *TIMERS, *MANIFESTS, FOLDER / "Containerfile"):
        assert f"({path.relative_to(FOLDER)})" in page
