"""The project's own rules about its files, versions and dependencies."""

from __future__ import annotations

import ast
import configparser
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from failover._version import __version__

ROOT = Path(__file__).parents[2]
GENERATED = {"build", "dist", "site", "__pycache__"}


def project_files() -> Iterator[Path]:
    """Every file that belongs to the project, without asking git: a source archive has none."""
    for folder, folders, names in os.walk(ROOT):
        kept = [n for n in folders if n not in GENERATED and not n.endswith(".egg-info")]
        folders[:] = [n for n in kept if not n.startswith(".") or n == ".ci"]
        for name in names:
            if not name.startswith(".coverage"):
                yield Path(folder, name)


def text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def test_the_walk_sees_the_whole_project() -> None:
    seen = {str(path.relative_to(ROOT)) for path in project_files()}
    assert {"pyproject.toml", ".ci/run", "failover/_version.py", "tests/unit/test_project_layout.py"} <= seen


@pytest.mark.parametrize(
    "pattern",
    [
        # Written in pieces, so that this file passes its own test.
        r"py" + r"pi\.org",
        r"pythonhosted" + r"\.org",
        r"repo\d?\.maven" + r"\.(apache\.)?org",
        r"registry\." + r"npmjs",
        r"(?<![\w.-])/(work|root|home/\w+)" + r"/\w",
    ],
)
def test_no_file_names_a_registry_host_or_a_path_of_one_machine(pattern: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in project_files()
        for number, line in enumerate((text_of(path) or "").splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert found == []


def test_text_files_end_in_one_newline_and_hold_no_tabs_or_trailing_blanks() -> None:
    wrong = []
    for path in project_files():
        if path.suffix not in {".py", ".md", ".toml", ".yml", ".yaml"}:
            continue
        text = text_of(path)
        assert text is not None, f"{path} is not UTF-8"
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            wrong.append(f"{path.relative_to(ROOT)}: end")
        wrong += [
            f"{path.relative_to(ROOT)}:{number}"
            for number, line in enumerate(text.splitlines(), 1)
            if line != line.rstrip() or "\t" in line
        ]
    assert wrong == []


def test_the_changelog_knows_this_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
    assert re.search(rf"^## .*\b{re.escape(__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def pyproject() -> dict[str, dict[str, object]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def requirements() -> list[str]:
    project = pyproject()["project"]
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    dependencies = project["dependencies"]
    assert isinstance(dependencies, list)
    return dependencies + [requirement for extra in extras.values() for requirement in extra]


@pytest.mark.parametrize("requirement", [r for r in requirements() if not r.startswith("failover[")])
def test_every_dependency_has_a_floor_and_a_ceiling(requirement: str) -> None:
    assert re.fullmatch(r"[\w.-]+(\[[\w,]+\])?>=[\d.]+,<[\d.]+(;.*)?", requirement), requirement


@pytest.mark.parametrize("requirement", [r for r in requirements() if not r.startswith("failover[")])
def test_every_dependency_is_explained(requirement: str) -> None:
    name = re.split(r"[\[>]", requirement)[0]
    assert f"`{name.lower()}" in (ROOT / "docs/dependencies.md").read_text().lower()


def test_pure_modules_that_exist_stand_in_the_import_contract() -> None:
    contract = configparser.ConfigParser()
    contract.read(ROOT / ".importlinter")
    pure = contract["importlinter:contract:pure"]["source_modules"].split()
    wanted = ["model", "mm2", "translate", "checks", "report", "planning", "runbook/engine", "replication/batches"]
    for name in wanted:
        path = ROOT / "failover" / name
        if path.is_dir() or path.with_suffix(".py").exists():
            assert f"failover.{name.replace('/', '.')}" in pure


def test_every_package_is_a_layer() -> None:
    contract = configparser.ConfigParser()
    contract.read(ROOT / ".importlinter")
    layers = set(re.findall(r"\w+", contract["importlinter:contract:layers"]["layers"]))
    packages = {path.parent.name for path in (ROOT / "failover").glob("*/__init__.py")}
    assert packages <= layers


@pytest.mark.parametrize("word", ["utils", "util", "helpers", "helper", "manager", "base", "common", "misc"])
def test_no_module_has_a_name_that_says_nothing(word: str) -> None:
    assert [p for p in (ROOT / "failover").rglob("*") if p.stem == word] == []


def test_make_and_ci_are_ready_to_run() -> None:
    assert os.access(ROOT / ".ci/run", os.X_OK)
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "test", "lint", "format", "bench", "chaos", "docs", "clean", "quick", "system"} <= targets


def third_party_imports(folder: str) -> dict[str, str]:
    """Top-level names imported anywhere below a folder, each with one file that imports it."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                found.setdefault(name.split(".")[0], path.relative_to(ROOT).as_posix())
    own = {*sys.stdlib_module_names, "failover", "tests"}
    return {name: where for name, where in found.items() if name not in own}


def declared(*extras: str) -> set[str]:
    project = pyproject()["project"]
    optional = project["optional-dependencies"]
    assert isinstance(optional, dict)
    assert isinstance(project["dependencies"], list)
    named = [*project["dependencies"], *(requirement for extra in extras for requirement in optional[extra])]
    return {canonical(re.split(r"[\[>]", requirement)[0]) for requirement in named}


def canonical(name: str) -> str:
    """A distribution's name as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize(("folder", "extras"), [("failover", ("aws", "lab")), ("tests", ("aws", "lab", "test"))])
def test_every_import_is_of_a_declared_dependency(folder: str, extras: tuple[str, ...]) -> None:
    distributions = packages_distributions()
    missing = {
        name: where
        for name, where in third_party_imports(folder).items()
        if not declared(*extras).intersection(
            canonical(distribution) for distribution in distributions.get(name, [name])
        )
    }
    assert missing == {}
