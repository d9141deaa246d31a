"""The plan's formats agree, and names from hostile hands come out of a real cluster inert in every one of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.system.pair import Pair
from tests.system.typed import by_name, named, one_error

GROUPS = {
    "\x1b[31mred\x1b[0m\x1b]0;owned\x07": 10,
    "two\nlines\rand\ttabs": 20,
    "<script>alert(1)</script>": 30,
    "=cmd()|'/c calc'!A1": 40,
    "@SUM(A1:A9)": 50,
    "a|b`c``d*e_f": 60,
    "\u202egnp.exe": 70,
    "größe 組 🐘": 80,
    "-rf --yes": 90,
    '{"json": [1]}': 100,
}
BUSY = "+busy\x1b[2J"
CLIENT = "<img src=x>\x1b[1mapp|1,=2"


class Scene(NamedTuple):
    """Is a topic and groups on it by the names above; BUSY has a member named CLIENT on the target."""

    pair: Pair
    topic: str
    remote: str


@pytest.fixture(scope="module")
def scene(mm2: Pair) -> Iterator[Scene]:
    topic = mm2.create_topic("a", mm2.name("t.formats"))
    mm2.produce("a", topic, 100)
    for group, at in GROUPS.items():
        mm2.commit("a", group, {(topic, 0): at})
    mm2.commit("a", BUSY, {(topic, 0): 1})
    remote = mm2.wait_mirrored(topic)
    with mm2.b.member(BUSY, [remote], client_id=CLIENT):
        yield Scene(mm2, topic, remote)


def run(scene: Scene, state: Path, *arguments: str) -> str:
    ran = scene.pair.run_cli("plan", *named([*GROUPS, BUSY]), *arguments, state=state)
    assert ran.code == 4, ran.err
    assert unprintable(ran.out) == set()
    return ran.out


def unprintable(text: str) -> set[str]:
    """Finds what would act on a terminal; line ends are the tool's own."""
    return {char for char in text if not char.isprintable() and char != "\n"}


def test_the_screen_is_one_line_a_group_within_100_columns(scene: Scene, tmp_path: Path) -> None:
    screen = run(scene, tmp_path)
    lines = screen.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("a -> b   plan ")
    assert lines[-1].startswith("next: failover execute")
    head = next(number for number, line in enumerate(lines) if line.startswith("GROUP "))
    rows = lines[head + 1 : head + 2 + len(GROUPS)]
    assert len(rows) == 11
    # worst first
    assert rows[0].startswith("+busy\\x1b[2J")
    assert all(" ready " in row for row in rows[1:])
    for shown in ("\\x1b[31mred", "two\\nlines", "<script>", "\\u202egnp.exe", "größe 組 🐘"):
        assert any(row.startswith(shown) for row in rows), shown
    assert "\\x1b[1mapp|1,=2" in screen


def test_every_format_tells_the_same(scene: Scene, tmp_path: Path) -> None:
    as_json = by_name(parsed_json(run(scene, tmp_path, "--format", "json")))
    assert set(as_json) == {*GROUPS, BUSY}
    assert {name: group["partitions"][0]["offset"] for name, group in as_json.items()} == {**GROUPS, BUSY: None}
    assert as_json[BUSY]["members"][0]["client_id"] == CLIENT

    as_yaml = by_name(yaml.safe_load(run(scene, tmp_path, "--format", "yaml")))
    assert facts(as_yaml) == facts(as_json)

    text = run(scene, tmp_path, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 11
    for row in rows:
        # a spreadsheet takes no cell for a formula
        assert not any(str(cell).lstrip().startswith(("=", "+", "-", "@")) for cell in row.values())
    said = {(row["verdict"], row["topic"], row["action"], row["reason"], row["offset"]) for row in rows}
    assert said == {
        (group["verdict"], p["topic"], p["action"], p["reason"], "" if p["offset"] is None else str(p["offset"]))
        for group in as_json.values()
        for p in group["partitions"]
    }

    lines = run(scene, tmp_path, "--format", "markdown").splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("| GROUP "))
    table = lines[head + 2 : head + 2 + 11]
    assert all(line.startswith("| `") and line.count("|") == 10 for line in table), table
    assert sum("| ready |" in line for line in table) == len(GROUPS)


def parsed_json(text: str) -> Any:
    import json

    return json.loads(text)


def facts(groups: dict[str, Any]) -> dict[str, Any]:
    """Gives what two looks at the same clusters must agree on."""
    return {
        name: (
            group["verdict"],
            group["reasons"],
            group["state"],
            [member["client_id"] for member in group["members"]],
            [(p["topic"], p["partition"], p["action"], p["offset"], p["precision"]) for p in group["partitions"]],
        )
        for name, group in groups.items()
    }


def test_they_are_executed_shown_and_remembered(scene: Scene, tmp_path: Path) -> None:
    ran = scene.pair.run_cli(
        "execute", *named([*GROUPS, BUSY]), "--yes", "--settle", "0", "--reason", "=1\x1b[31m\n", state=tmp_path
    )
    assert ran.code == 4, ran.err
    assert {group: list(scene.pair.committed("b", group).values()) for group in GROUPS} == {
        group: [at] for group, at in GROUPS.items()
    }
    run_id = parsed_json(scene.pair.run_cli("history", "--format", "json", state=tmp_path).out)["runs"][0]["id"]
    shown = [ran.out, ran.err]
    for arguments in (["history"], ["show", run_id, "-vv"], ["show", run_id, "--format", "yaml"], ["plan", "-v"]):
        again = scene.pair.run_cli(*arguments, state=tmp_path)
        shown += [again.out, again.err]
    assert [unprintable(text) for text in shown] == [set()] * len(shown)
    wrong = "\x1b[31mrod\x1b[0m\x1b]0;owned\x07\n"
    said = one_error(scene.pair.run_cli("plan", "--group", wrong, state=tmp_path / "none"), 2, tmp_path / "none")
    assert unprintable(said) == set()
    assert "group \\x1b[31mrod" in said
    assert "did you mean \\x1b[31mred" in said


def test_short_names_fit_100_columns_in_every_table(scene: Scene, tmp_path: Path) -> None:
    group = scene.pair.name("g")
    scene.pair.commit("a", group, {(scene.topic, 0): 5})
    made = scene.pair.run_cli("plan", "--group", group, "-vv", state=tmp_path)
    done = scene.pair.run_cli("execute", "--yes", "--settle", "0", "-vv", state=tmp_path)
    for ran in (made, done, scene.pair.run_cli("history", state=tmp_path)):
        assert ran.code == 0, ran.err
        assert max(map(len, ran.out.splitlines())) <= 100, ran.out
