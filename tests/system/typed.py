"""Commands typed as an operator types them, and what they must leave behind."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.system.pair import Pair, Ran

AT_ONCE = ("--yes", "--settle", "0", "--format", "json")


def named(groups: Iterable[str]) -> list[str]:
    return [word for group in groups for word in ("--group", group)]


def plan(pair: Pair, *groups: str, state: Path, code: int | None = 0, **options: Any) -> dict[str, Any]:
    """Plans these groups, all of them without any; gives the plan. ``code``: the exit code it must have."""
    more = options.pop("more", ())
    ran = pair.run_cli("plan", *named(groups), *more, "--format", "json", state=state, **options)
    assert code is None or ran.code == code, f"{ran.code}\n{ran.out}\n{ran.err}"
    made: dict[str, Any] = ran.json()
    return made


def by_name(made: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Gives the groups of a plan or an execution by their names."""
    return {group["group"]: group for group in made["groups"]}


def offsets(group: Mapping[str, Any], field: str = "offset") -> dict[tuple[str, int], int]:
    """Gives a field of each partition of a group where it is not null."""
    return {(p["topic"], p["partition"]): p[field] for p in group["partitions"] if p[field] is not None}


def findings(made: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["code"]: finding for finding in made["findings"]}


def one_error(ran: Ran, code: int, state: Path) -> str:
    """Checks that a command ended with one error, one hint and nothing else, and kept nothing; gives both lines."""
    lines = ran.err.splitlines()
    assert ran.code == code, f"{ran.code}\n{ran.out}\n{ran.err}"
    assert [line.partition(":")[0] for line in lines[-2:]] == ["error", "hint"], ran.err
    assert sum(line.startswith(("error:", "hint:")) for line in lines) == 2, ran.err
    assert ran.out == ""
    assert kept(state) == []
    return "\n".join(lines)


def error_object(ran: Ran) -> dict[str, str]:
    """Gives the error of a command with --format json, after checking that stderr says the same."""
    error: dict[str, str] = json.loads(ran.out)["error"]
    assert ran.err.splitlines()[-2:] == [f"error: {error['message']}", f"hint: {error['hint']}"]
    return error


def kept(state: Path) -> list[str]:
    """Lists the files in a state folder."""
    return sorted(str(path.relative_to(state)) for path in state.rglob("*") if path.is_file())


def world(pair: Pair) -> dict[str, Any]:
    """Is what a look must not change: topics, groups and where groups stand, on both sides."""
    found: dict[str, Any] = {}
    for alias, side in pair.sides.items():
        groups = side.groups()
        found[alias] = (side.topics(), groups, {group: side.committed(group) for group in groups})
    return found


def told_by_kafka(pair: Pair, alias: str, groups: Iterable[str]) -> dict[str, dict[tuple[str, int], int]]:
    """Asks kafka-consumer-groups of the lab's own Kafka version where groups stand; one JVM for all of them."""
    names = list(groups)
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    told = pair.lab.run_tool(tool, "--bootstrap-server", pair.bootstrap(alias), "--describe", *named(names))
    found: dict[str, dict[tuple[str, int], int]] = {}
    columns: list[str] = []
    for line in told.splitlines():
        words = line.split()
        if words[:1] == ["GROUP"]:
            columns = words
        elif words and words[0] in names and len(words) >= len(columns):
            row = dict(zip(columns, words, strict=False))
            if row["CURRENT-OFFSET"].isdigit():
                found.setdefault(row["GROUP"], {})[row["TOPIC"], int(row["PARTITION"])] = int(row["CURRENT-OFFSET"])
    return found


def on_a_terminal(
    pair: Pair, *arguments: str, answer: str, state: Path, config: Path | None = None, color: bool = False
) -> tuple[int, str]:
    """Runs a command on a pseudo terminal and types one line once asked; gives exit code and what the screen got."""
    environment = os.environ | {"FAILOVER_CONFIG": str(config or pair.lab.config), "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    if not color:
        environment["NO_COLOR"] = "1"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "failover", "--state-dir", str(state), *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        close_fds=True,
        env=environment,
    )
    os.close(theirs)
    screen = b""
    typed = False
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # Linux: EIO once the last process has closed the terminal
                chunk = b""
            if not chunk:
                break
            screen += chunk
            if not typed and b"to go ahead" in screen:
                os.write(ours, answer.encode() + b"\n")
                typed = True
        return process.wait(timeout=20), screen.decode(errors="replace").replace("\r\n", "\n")
    finally:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait()
