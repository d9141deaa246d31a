"""What the options of plan mean, and what is wrong with them before anything is contacted."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import click
import pytest

from failover.cli.options import groups_in, plan_options, selection_of, times_of, to_options
from failover.cli.params import Missing
from failover.errors import UsageError
from failover.inventory.by_time import Times
from failover.inventory.selection import Selection
from failover.model.plan import PlanOptions


def options(*arguments: str) -> PlanOptions:
    command = click.Command("plan", params=plan_options())
    values: dict[str, Any] = command.make_context("plan", list(arguments)).params
    return to_options(values)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), PlanOptions()),
        (("--all",), PlanOptions()),
        (("--group", "a,b", "--group", "c", "--group", "c"), PlanOptions(groups=("a,b", "c"))),
        (("--group-pattern", r"\p{Alpha}+"), PlanOptions(group_pattern=r"\p{Alpha}+")),
        (("--topic", "orders", "--topic", "fees"), PlanOptions(topics=("orders", "fees"))),
        (("--missing", "earliest"), PlanOptions(missing="earliest")),
        (("--missing", "latest", "--allow-skip"), PlanOptions(missing="latest", allow_skip=True)),
        (("--missing", "at=2026-11-30 03:00+01:00"), PlanOptions(missing="at=2026-11-30T02:00:00Z")),
        (("--missing", "ago=1h30m"), PlanOptions(missing="ago=1h30m")),
        (("--rewind-by", "5m"), PlanOptions(rewind_by=300.0)),
        (
            ("--allow-rewind", "--allow-moving-commits", "--allow-unverified", "--create-group"),
            PlanOptions(allow_rewind=True, allow_moving_commits=True, allow_unverified=True, create_group=True),
        ),
        (
            ("--all-or-nothing", "--require-source-inactive", "--no-content", "--precision", "exact"),
            PlanOptions(all_or_nothing=True, require_source_inactive=True, content=False, precision="exact"),
        ),
    ],
)
def test_what_is_typed_is_what_is_asked(arguments: tuple[str, ...], expected: PlanOptions) -> None:
    assert options(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--group", ""), "--group wants a name"),
        (("--group-pattern", "("), "is no regular expression"),
        (("--group-pattern", "x", "--all"), "--all does not go with"),
        (("--missing", "latest"), "never read"),
        (("--groups-file", "/nowhere/at/all"), "No such file"),
    ],
)
def test_what_contradicts_itself(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        options(*arguments)


@pytest.mark.parametrize("text", ["", "newest", "at=", "at=noon", "ago=", "ago=soon", "latest=", "earliest ", "AT=x"])
def test_policies_that_are_none(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Missing().convert(text, None, None)
    with pytest.raises(click.BadParameter):
        options("--rewind-by", "0")


def test_a_file_names_one_group_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "groups"
    content = "\ufeffpayments\r\n\n# the late ones\n  fraud,old \npayments\n"
    file.write_bytes(content.encode())
    assert groups_in(str(file)) == ["payments", "fraud,old", "payments"]
    assert options("--group", "extra", "--groups-file", str(file)).groups == ("extra", "payments", "fraud,old")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert options("--groups-file", "-").groups == ("payments", "fraud,old")
    assert groups_in(None) == []


@pytest.mark.parametrize(("content", "said"), [(b"\n# none\n", "names no group"), (b"caf\xe9\n", "is not UTF-8")])
def test_a_file_that_names_nothing_never_means_every_group(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "groups"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        groups_in(str(file))
    file.write_text("one\n")
    with pytest.raises(UsageError, match="--all does not go with"):
        options("--groups-file", str(file), "--all")


def test_the_look_is_asked_for_the_same() -> None:
    asked = options("--group", "g", "--exclude-group", "h", "--topic", "t", "--missing", "ago=1h", "--rewind-by", "1m")
    assert selection_of(asked) == Selection(("g",), None, ("h",), False, ("t",))
    assert times_of(asked) == Times("ago=1h", 60.0)
