"""The mirror turned round: the flow back is stopped before this one is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from failover.errors import Declined, OperatorOwns, Refused, StepFailed, UsageError
from failover.runbook.kinds import Context, Kind, Result, Settled
from failover.runbook.steps.command import run_program
from failover.runbook.steps.flow_topics import data_topics
from failover.runbook.steps.manual import done_by_hand
from failover.runbook.steps.noted import note_more, noted
from failover.runbook.steps.switching import Verb, act, rest_client

if TYPE_CHECKING:
    from failover.connect.client import ConnectClient
    from failover.connect.mirrors import Mirror

Way = Literal["prefix", "seed", "recreate"]
_OWN, _BACK = "own", "back"


class ReverseReplication(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``part``: ``stop`` the opposite flow, ``start`` this one, ``both`` in this order, or ``finish``: stop this one.

    ``way``: how records go back: under a ``prefix``, or under one name on both clusters from a position that a step
    ``seed`` writes, or whole to topics that a step ``recreate-topics`` made room for. ``how``: ``connect`` (the REST
    of Kafka Connect or ``failover replicate``), ``hook`` (a program) or ``manual``. ``url``: where this flow runs, or
    is to; ``back_url``: where the opposite one runs; empty: the same. ``hook``: the program and its arguments.
    """

    part: Literal["both", "stop", "start", "finish"] = "both"
    way: Way = "prefix"
    how: Literal["connect", "hook", "manual"] = "connect"
    url: str = ""
    back_url: str = ""
    hook: list[str] = []


class ReverseReplicationKind(Kind[ReverseReplication]):
    """Stops the opposite flow and starts this one, in this order; never both at once.

    On Kafka Connect the flow's connectors are deployed from the configuration (for ``seed`` stopped at first, before
    anything is stopped); those of ``failover replicate --rest`` are its own and are resumed. A hook is called as
    ``HOOK stop|start mirror A->B``, has to end when that is so, and to do no harm when it is called twice. The way
    back stops this flow, and starts the opposite one again if names differ; where they are kept it would copy
    everything once more, so it stays stopped.
    """

    parameters = ReverseReplication
    results = {  # noqa: RUF012 - a class's constant
        "stopped": "what was stopped: connectors, or flows",
        "started": "what was started: connectors, or flows",
    }
    undoes = True
    asks = True

    def preview(self, given: ReverseReplication, context: Context) -> str:
        check_way(given.way, context)
        if given.part != "finish":
            check_opposite(given.way, context)
        told = " and ".join(f"{verb} {self._flow(which, context)}" for verb, which in _parts(given))
        match given.how:
            case "hook":
                return "would run: " + "; ".join(
                    " ".join([*given.hook, *self._arguments(verb, which, context)]) for verb, which in _parts(given)
                )
            case "manual":
                return f"would wait for somebody to say that this is done: {told}"
        with rest_client(given.url, context) as where:
            return f"would {told}; connectors at {where.access.shown}"

    def run(self, given: ReverseReplication, context: Context) -> Result:
        check_way(given.way, context)
        if given.part != "finish" and (warning := check_opposite(given.way, context)):
            context.say(f"warning: {warning}")
        done: dict[str, list[str]] = {"stop": [], "start": []}
        if given.how == "connect" and given.part == "stop" and given.way == "seed":
            self._deploy(given, context, stopped=True)
        for verb, which in _parts(given):
            context.note(**{f"{verb}-{which}": True})
            match given.how:
                case "connect":
                    names = self._switch(given, verb, which, context)
                case "hook":
                    self._call(given, verb, which, context)
                    names = [self._flow(which, context)]
                case "manual":
                    done_by_hand(self._told(verb, which, context), "", context)
                    names = [self._flow(which, context)]
            done[verb] += names
            if (verb, which) == ("stop", _BACK):
                self._look_beside(given, context)
        return {"stopped": done["stop"], "started": done["start"]}

    def settle(self, given: ReverseReplication, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # what is stopped is not stopped again, nor what runs started

    def undo(self, given: ReverseReplication, context: Context) -> str:
        said = []
        for verb, which in reversed(_parts(given)):
            if not context.notes.get(f"{verb}-{which}"):
                continue
            flow = self._flow(which, context)
            if which == _BACK and given.way != "prefix":
                said.append(f"{flow} stays stopped: it would copy again what came from {context.reach.flow.source}")
                continue
            back = "start" if verb == "stop" else "stop"
            if given.how == "connect":
                said += [f"{name}: {back}" for name in self._switch_back(given, back, which, context)]
                continue
            if given.how == "hook":
                self._call(given, back, which, context)
            elif not context.ask(f"To go back: {self._told(back, which, context)} Is this done?"):
                raise Declined(f"declined: somebody has to {back} {flow}")
            said.append(f"{back} {flow}")
        return "; ".join(said) or "nothing had been done"

    def by_hand(self, given: Mapping[str, Any]) -> str:
        if given.get("how") in ("hook", "manual"):
            return ""
        back, own = "--source PRIMARY --target STANDBY", "--source STANDBY --target PRIMARY"
        stopped = " --stopped" if given.get("way") == "seed" else ""
        lines = {
            "stop": [f"failover connect stop {back}"],
            "start": [f"failover connect deploy {own}{stopped}", f"failover connect resume {own}"],
            "finish": [f"failover connect stop {own}"],
        }
        return "\n".join(lines.get(str(given.get("part")), [*lines["stop"], *lines["start"]]))

    # -- inside ----------------------------------------------------------------------------------

    def _flow(self, which: str, context: Context) -> str:
        flow = context.reach.flow
        return f"{flow.source}->{flow.target}" if which == _OWN else f"{flow.target}->{flow.source}"

    def _told(self, verb: str, which: str, context: Context) -> str:
        flow = self._flow(which, context)
        if verb == "stop":
            return f"Stop what mirrors {flow}, and see that nothing starts it again."
        return f"Start the mirror {flow} (MirrorMaker 2 or failover replicate)."

    def _arguments(self, verb: str, which: str, context: Context) -> list[str]:
        return [verb, "mirror", self._flow(which, context)]

    def _call(self, given: ReverseReplication, verb: str, which: str, context: Context) -> None:
        if not given.hook:
            raise UsageError("no hook is given that starts and stops mirrors", hint="how: manual, or a hook")
        run_program([*given.hook, *self._arguments(verb, which, context)], context, env={})

    def _switch(self, given: ReverseReplication, verb: str, which: str, context: Context) -> list[str]:
        ran = f"ran-{which}"
        deployed: set[str] = set()
        if verb == "start":
            with rest_client(_url(given, which), context) as where:
                if context.notes.get(ran) is None:  # begun again after a crash, what runs may have been started here
                    healthy = [one.name for one in self._connectors(where, which, context) if one.healthy]
                    context.note(**{ran: healthy})
            deployed = self._deploy(given, context, stopped=False)
        with rest_client(_url(given, which), context) as where:
            if deployed:
                # Connect shows a connector once a worker has told its state
                context.wait(
                    lambda: deployed <= {one.name for one in self._connectors(where, which, context)},
                    what=lambda: f"not all of {', '.join(sorted(deployed))} have a state yet",
                )
            found = self._connectors(where, which, context)
            wanted: Verb = "stop" if verb == "stop" else "resume"
            before = noted(context, ran)
            changing = [
                one.name for one in found if (one.state != "STOPPED" if verb == "stop" else one.name not in before)
            ]
            note_more(context, f"{verb}-{which}-names", changing)
            if found:
                act(where, found, wanted, context)
            else:
                context.say(f"{where.access.shown} has no connector of {self._flow(which, context)}")
            return changing

    def _switch_back(self, given: ReverseReplication, back: str, which: str, context: Context) -> list[str]:
        verb = "stop" if back == "start" else "start"
        names: list[str] = noted(context, f"{verb}-{which}-names")
        if not names:
            return []
        with rest_client(_url(given, which), context) as where:
            found = [one for one in self._connectors(where, which, context) if one.name in names]
            act(where, found, "resume" if back == "start" else "stop", context)
        return names

    def _connectors(self, where: ConnectClient, which: str, context: Context) -> list[Mirror]:
        from failover.connect.mirrors import mirrors_at, of_flow

        source, target = self._flow(which, context).split("->")
        found = of_flow(mirrors_at(where), source, target)
        for one in found:
            if one.operator:
                raise OperatorOwns(
                    f"{one.name} is managed by Strimzi's operator, which would undo this",
                    hint="change the KafkaMirrorMaker2 resource by a step that uses command or manual",
                )
        return found

    def _deploy(self, given: ReverseReplication, context: Context, *, stopped: bool) -> set[str]:
        """Deploys the flow's connectors and names them; none at ``failover replicate``, whose are its own."""
        from failover.connect.deploying import deploy, prepare
        from failover.library.flows import own_settings

        reach = context.reach
        with rest_client(given.url, context) as where:
            if not where.worker().commit:
                return set()
            flow = own_settings(reach.flow.config, reach.flow.selected)
            prepared = prepare(where, flow, stopped=stopped)
            if prepared.deployment.invalid:
                wrong = next(step for step in prepared.deployment.steps if step.errors)
                key, texts = next(iter(wrong.errors.items()))
                raise StepFailed(
                    f"Connect refuses {wrong.name}: {key}: {'; '.join(texts)}", hint="failover connect deploy --dry-run"
                )
            deploy(where, prepared, say=context.say)
            return set(prepared.connectors)

    def _look_beside(self, given: ReverseReplication, context: Context) -> None:
        """Waits until no worker of a dedicated MirrorMaker 2 is left that runs the opposite flow."""
        from failover.inventory.flow import flow_of

        reach = context.reach
        back = flow_of(reach.flow.config, reach.flow.selected).opposite
        assert back is not None
        group = back.internal.connect_group

        def left() -> str:
            info = reach.source.describe_groups([group])[group]
            return ", ".join(f"{one.client_id} at {one.host.lstrip('/')}" for one in info.members[:3])

        flow = self._flow(_BACK, context)
        if given.way == "prefix":
            if there := left():
                context.say(f"a worker of MirrorMaker 2 is still in group {group} of {flow}: {there}")
            return
        context.wait(lambda: not left(), what=lambda: f"MirrorMaker 2 still runs {flow}: {left()}")


def check_way(way: str, context: Context) -> list[str]:
    """Gives the topics that keep their name on the target. Raises ``Refused`` where the way does not fit the names."""
    from failover.inventory.flow import flow_of

    flow = flow_of(context.reach.flow.config, context.reach.flow.selected)
    topics = data_topics(context)
    kept = [topic for topic in topics if flow.target_topic(topic) == topic]
    if kept and way == "prefix":
        raise Refused(
            f"{kept[0]} has one name on both clusters: mirrored back, all of it would be copied twice",
            hint="way: seed (begin behind what came from there) or recreate (delete it there and mirror it whole)",
        )
    if not kept and way != "prefix":
        raise Refused(
            f"{topics[0]} is called {flow.target_topic(topics[0])} on {flow.target}: nothing comes back under its name",
            hint="way: prefix",
        )
    return kept


def check_opposite(way: str, context: Context) -> str:
    """Gives what to be warned of where the opposite flow is still configured.

    Raises ``Refused`` where it is enabled and names are kept: a worker of both directions sends records in circles.
    """
    flow = context.reach.flow
    name = f"{flow.target}->{flow.source}"
    for other in flow.config.flows:
        if other.name != name:
            continue
        if other.enabled and way != "prefix" and not flow.selected.reversed:
            raise Refused(
                f"{name} is enabled in {flow.config.path} too: with one name on both clusters records would go round",
                hint=f"write {name}.enabled = false",
            )
        if not other.enabled:
            # measured on Kafka 4.1.1: dedicated MirrorMaker 2 keeps connectors' configurations in a topic
            return (
                f"{name} is disabled, but its heartbeats are on: dedicated MirrorMaker 2 starts it with the connectors"
                f" as they were, and mirrors that way for a moment; write {name}.emit.heartbeats.enabled = false"
            )
    return ""


def _parts(given: ReverseReplication) -> list[tuple[str, str]]:
    match given.part:
        case "stop":
            return [("stop", _BACK)]
        case "start":
            return [("start", _OWN)]
        case "finish":
            return [("stop", _OWN)]
    return [("stop", _BACK), ("start", _OWN)]


def _url(given: ReverseReplication, which: str) -> str:
    return given.url if which == _OWN else given.back_url or given.url


KIND = ReverseReplicationKind()
