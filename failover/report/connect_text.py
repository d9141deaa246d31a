"""Connectors of a Connect cluster as screens: lists, states, positions, what was done and what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence

from failover.connect.acting import Acted
from failover.connect.deploying import Deployment, Step
from failover.connect.mirrors import Mirror
from failover.connect.strimzi import RECONCILED, Patch
from failover.connect.values import FAILED, Offset, Task
from failover.connect.vendors import VendorCommands
from failover.report.inert import inert_line
from failover.report.table import labelled, table
from failover.report.values import duration, things

SHOWN = 40
_OUTCOMES = {"done": "done", "not-yet": "not yet", "failed": "failed", "undone": "undone again", "owned": "not done"}


def list_text(at: str, version: str, found: Sequence[Mirror], others: Sequence[tuple[str, str, str]]) -> str:
    """Writes the connectors of a cluster; ``others``: name, class and state of those that are not MirrorMaker 2's."""
    what = things(len(found), "connector") + " of MirrorMaker 2"
    lines = [f"{_flows(found)}{inert_line(at)}   {version and 'Kafka ' + inert_line(version) + '   '}{what}"]
    if found:
        lines += ["", _table(found)]
    if others:
        rows = [(name, class_.rpartition(".")[2], state) for name, class_, state in others]
        lines += ["", table(("OTHER CONNECTOR", "CLASS", "STATE"), rows)]
    if not found:
        lines += ["", "next: failover connect deploy"]
    return "\n".join(lines) + "\n"


def status_text(at: str, found: Sequence[Mirror]) -> str:
    """Writes the state of connectors and tasks, what failed first, and the next step."""
    ordered = sorted(found, key=lambda one: (not one.failed, one.healthy))
    lines = [f"{_flows(found)}{inert_line(at)}   {_summary(found)}"]
    if found:
        lines += ["", _table(ordered)]
    for one in ordered:
        if one.reason:
            lines += labelled("  ", f"{inert_line(one.name)}: {inert_line(one.reason)}", indent=4)
        for task in one.tasks:
            if task.state == FAILED:
                lines += labelled("  ", _task(one, task), indent=4)
    return "\n".join([*lines, "", *_next(ordered)]) + "\n"


def offsets_text(rows: Iterable[tuple[str, Offset]], *, limit: int = SHOWN) -> str:
    """Writes stored positions: a source position is the last record copied, so the next is one behind."""
    cells = []
    beside = 0
    for name, one in rows:
        where, value = one.partition, (one.offset or {}).get("offset")
        if "cluster" in where and "topic" in where:
            at = str(value) if isinstance(value, int) else "-"
            following = str(value + 1) if isinstance(value, int) else "the start"
            cells.append((name, f"{where['topic']}-{where.get('partition')}", str(where["cluster"]), at, following))
        else:
            beside += 1
    lines = []
    if cells:
        headers = ("CONNECTOR", "PARTITION", "OF", "LAST COPIED", "GOES ON AT")
        lines.append(table(headers, sorted(cells)[:limit], numbers=frozenset({"LAST COPIED", "GOES ON AT"})))
        if len(cells) > limit:
            lines.append(f"{things(len(cells) - limit, 'more partition')} (--format json has all)")
    else:
        lines.append("No position is stored: the source connector has copied nothing yet, or its positions are gone.")
    if beside:
        lines.append(
            f"{things(beside, 'entry') if beside == 1 else f'{beside:,} entries'} of checkpoints and heartbeats"
        )
    return "\n".join(lines) + "\n"


def deployment_text(deployment: Deployment) -> str:
    """Writes what a deployment changes, or what it did."""
    flow = inert_line(deployment.flow)
    lines = [f"{flow} on {inert_line(deployment.url)}   Kafka {inert_line(deployment.connect_version)}"]
    for step in deployment.steps:
        lines += ["", *_step(step)]
    if deployment.extra:
        names = ", ".join(inert_line(name) for name in deployment.extra)
        lines += ["", *labelled("left:", f"{names}: the configuration asks for none; it runs on", indent=7)]
    if deployment.states:
        lines += ["", status_text(deployment.url, deployment.states).rstrip("\n")]
    elif deployment.invalid:
        lines += ["", "Connect refuses this configuration; nothing was changed."]
    elif not deployment.to_do:
        lines += ["", "Everything is as it should be; nothing to change."]
    else:
        if any(step.action == "create" and step.kind == "source" for step in deployment.to_do):
            lines += [
                "",
                "A new source connector has no positions: it copies every topic from its start. If another mirror",
            ]
            lines += ["copied this flow before, under the same names on the target, its records come a second time."]
        if deployment.dry_run:
            lines += ["", "next: the same command without --dry-run"]
    return "\n".join(lines) + "\n"


def acted_text(acted: Acted) -> str:
    """Writes what became of a pause, stop, resume or restart."""
    verb, flow = acted.verb, inert_line(acted.flow)
    lines = [f"{verb} {flow} at {inert_line(acted.at)}: {_OUTCOMES[acted.outcome]}"]
    if acted.connectors:
        lines += ["", _table(acted.connectors)]
    for one in acted.connectors:
        if one.problem:
            lines += labelled("  ", f"{inert_line(one.name)}: {inert_line(one.problem)}", indent=4)
    lines.append("")
    match acted.outcome:
        case "owned":
            lines.append(
                f"Strimzi's operator owns these connectors: within {duration(RECONCILED)} it undoes what is done"
            )
            lines.append("by REST. Nothing was done.")
            lines += _operator(acted)
            lines.append(f"next: failover connect {verb} --kubectl applies it; --by-rest goes by REST all the same")
        case "undone":
            names = ", ".join(inert_line(name) for name in acted.undone)
            lines += labelled("", f"{names} changed again within {duration(acted.watched_seconds)}.", indent=0)
            lines.append("Strimzi's operator, or another controller, put it back: by REST it does not last.")
            lines += _operator(acted)
            lines.append(f"next: failover connect {verb} --kubectl applies it")
        case "not-yet":
            lines.append("next: failover connect status, in a while")
        case "failed":
            lines.append("next: failover connect restart, once the cause is gone")
        case _ if acted.watched_seconds:
            lines.append(f"It stayed so for {duration(acted.watched_seconds)}.")
    return "\n".join(lines).rstrip("\n") + "\n"


def vendor_text(commands: VendorCommands) -> str:
    """Writes what to type where there is no REST interface; each command on a line of its own, to be copied."""
    lines = [f"{commands.vendor} has no Kafka Connect REST interface; its own commands do it:"]
    lines += [f"  {shlex.join(command)}" for command in commands.commands] or ["  (none)"]
    for note in commands.notes:
        lines += labelled("", note, indent=0)
    return "\n".join(lines) + "\n"


def question(verb: str, chosen: Sequence[Mirror], at: str) -> str:
    """Writes what a pause, stop, resume or restart concerns, and what follows from it."""
    what = {
        "pause": "They keep their clients and go on from where they are.",
        "stop": "No record is copied, no checkpoint and no group offset is written any more; positions are kept.",
        "resume": "They go on from their stored positions, and write to the target again.",
        "restart": "Records copied since the last stored position are copied again.",
    }[verb]
    rows = _table(chosen)
    text = f"This does {verb} {things(len(chosen), 'connector')} of {_flows(chosen)}{inert_line(at)}. {what}"
    return "\n".join([rows, "", *labelled("", text, indent=0)])


def _step(step: Step) -> list[str]:
    name = inert_line(step.name)
    if step.action == "none":
        return [f"= {name}: as it is"]
    lines = [f"{'+' if step.action == 'create' else '~'} {name}: {step.action}"]
    if step.action == "create":
        lines.append(table(("", "KEY", "VALUE"), [("  +", c.key, c.after) for c in step.changes]))
    else:
        rows = [
            ("  ~" if c.before and c.after else "  -" if c.before else "  +", c.key, c.before, c.after)
            for c in step.changes
        ]
        lines.append(table(("", "KEY", "NOW", "THEN"), rows))
    for key, errors in step.errors.items():
        for error in errors:
            lines += labelled("error:", f"{inert_line(key)}: {inert_line(error)}", indent=7)
    return lines


def _operator(acted: Acted) -> list[str]:
    if acted.patch is not None:
        return ["", f"  {_command(acted.patch)}", ""]
    if acted.snippet:
        return ["In the KafkaMirrorMaker2 resource:", "", *(f"  {line}" for line in acted.snippet.splitlines()), ""]
    return []


def _command(patch: Patch) -> str:
    return shlex.join(patch.command)


def _table(found: Sequence[Mirror]) -> str:
    """Lays connectors out; a flow that all have stands above the table already."""
    one_flow = len({one.flow for one in found}) == 1
    headers = ("CONNECTOR", "KIND", *(() if one_flow else ("FLOW",)), "STATE", "TASKS")
    rows = [(one.name, one.kind, *(() if one_flow else (one.flow,)), one.state, _tasks(one)) for one in found]
    return table(headers, rows, keep=frozenset({"CONNECTOR"}))


def _tasks(one: Mirror) -> str:
    states = Counter(task.state for task in one.tasks)
    return ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "none"


def _flows(found: Sequence[Mirror]) -> str:
    names = list(dict.fromkeys(one.flow for one in found))
    return f"{inert_line(names[0])} on " if len(names) == 1 else ""


def _task(one: Mirror, task: Task) -> str:
    where = f" on {inert_line(task.worker_id)}" if task.worker_id else ""
    return f"{inert_line(one.name)} task {task.id}{where}: {inert_line(task.reason) or 'no reason is given'}"


def _summary(found: Sequence[Mirror]) -> str:
    failed = sum(one.failed for one in found)
    resting = sum(not one.failed and not one.healthy for one in found)
    parts = [f"{things(len(found), 'connector')}"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{resting} not running"] if resting else []
    return ", ".join(parts) + ("" if failed or resting or not found else ", all running")


def _next(found: Sequence[Mirror]) -> list[str]:
    failed = next((one for one in found if one.failed), None)
    if failed is not None:
        return [f"next: failover connect restart --only-failed {_quoted(failed.name)}, once the cause is gone"]
    resting = [one for one in found if not one.healthy]
    if resting and all(one.idle for one in resting):
        name, source = _quoted(resting[0].name), inert_line(resting[0].source)
        return [f"next: failover connect status {name}, once {source} has a topic to copy: it runs and has no task"]
    if resting:
        return [f"next: failover connect resume {_quoted(resting[0].name)}, if it is to mirror"]
    return ["All run. Whether records arrive, their tasks do not say: failover status looks at the data."]


def _quoted(name: str) -> str:
    """Writes a name as a shell wants it: Strimzi's hold ``->``."""
    return shlex.quote(inert_line(name))
