"""`failover lab`: two real Kafka clusters on loopback to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from failover.cli.frame import Group, Settings, format_option, pass_settings
from failover.cli.params import DURATION
from failover.errors import LabUsageError

if TYPE_CHECKING:
    from failover.lab import Lab
    from failover.lab.side import Side

_COMPRESSION = ("none", "gzip", "snappy", "lz4", "zstd")
_PROTOCOLS = ("classic", "consumer")


@click.group(cls=Group)
def command() -> None:
    """Runs two real Kafka clusters on loopback, with the real MirrorMaker 2, traffic and faults."""


@command.command()
@click.option(
    "--with",
    "mirror",
    type=click.Choice(["none", "mm2", "connect", "replicator"]),
    default="none",
    show_default=True,
    help="What mirrors; connect: a Kafka Connect worker, ready for `failover connect deploy`.",
)
@click.option("--brokers", default="1", show_default=True, metavar="N[,M]", help="Brokers of each cluster.")
@click.option("--kafka-version", metavar="V", help="Kafka's version (default 4.1.1; 3.9.1 and 4.3.1 work too).")
@click.option(
    "--security",
    type=click.Choice(["plaintext", "sasl_ssl"]),
    default="plaintext",
    show_default=True,
    help="How the written mm2.properties connects.",
)
@click.option("--authorizer", is_flag=True, help="Enforce ACLs; clients of the PLAINTEXT listener are super users.")
@click.option("--proxy", is_flag=True, help="Put a proxy before the brokers, for `lab fault cut` and `delay`.")
@click.option("--aliases", default="primary,standby", show_default=True, metavar="A,B", help="The clusters' names.")
@click.option("--topics", default=".*", show_default=True, metavar="RE", help="Topics MirrorMaker 2 mirrors.")
@click.option("--interval", default="2s", type=DURATION, show_default=True, help="Between MirrorMaker 2's checkpoints.")
@click.option("--sync-groups", is_flag=True, help="MirrorMaker 2 writes group offsets by itself.")
@click.option("--quick", is_flag=True, help="JVM flags for a fast start instead of speed.")
@format_option("table", "json")
@pass_settings
def up(
    settings: Settings, /, mirror: str, brokers: str, aliases: str, kafka_version: str | None, **options: Any
) -> None:
    """Starts the clusters and returns when they answer; writes an mm2.properties every command accepts."""
    from failover.lab import LabOptions, MirrorOptions
    from failover.lab import up as start
    from failover.lab.fault import look
    from failover.lab.jars import DEFAULT_VERSION
    from failover.mm2.filters import topic_filter

    topic_filter({"topics": options["topics"]})  # a pattern that is none would be found by MirrorMaker 2 alone
    first, _, second = aliases.partition(",")
    lab = start(
        _folder(settings),
        LabOptions(
            aliases=(first.strip(), second.strip()),
            brokers=_counts(brokers),
            kafka_version=kafka_version or DEFAULT_VERSION,
            security=options["security"],
            authorizer=options["authorizer"],
            proxy=options["proxy"],
            mm2=mirror == "mm2",
            replicator=mirror == "replicator",
            connect=mirror == "connect",
            quick=options["quick"],
            mirror=MirrorOptions(
                topics=options["topics"],
                checkpoint_seconds=max(1, round(options["interval"])),
                sync_group_offsets=options["sync_groups"],
            ),
        ),
        say=settings.say,
    )
    _show(settings, lab, look(lab))
    then = " && failover connect deploy" if mirror == "connect" else ""
    settings.say(f"next: export FAILOVER_CONFIG={lab.config}{then}")


@command.command()
@format_option("table", "json")
@pass_settings
def down(settings: Settings) -> None:
    """Ends exactly what `lab up` started, also after a crash, and removes its data."""
    from failover.lab import end_lab

    ended = end_lab(_folder(settings))
    settings.emit_value({"ended": ended}, {"table": lambda: "ended: " + (", ".join(ended) or "nothing ran")})


@command.command()
@format_option("table", "json")
@pass_settings
def status(settings: Settings) -> None:
    """Shows the lab's processes and where its clusters answer."""
    from failover.lab.fault import look

    lab = _lab(settings)
    _show(settings, lab, look(lab))


@command.command()
@click.option("--cluster", metavar="ALIAS", help="Where to (default: the source).")
@click.option("--topic", "topics", multiple=True, metavar="T", help="Topic, repeatable (default: orders).")
@click.option("--partitions", default=3, show_default=True, help="Of a topic that is created.")
@click.option("--rate", default=100.0, show_default=True, help="Records a second for each topic; 0: no limit.")
@click.option("--count", default=0, help="End after so many records a topic.")
@click.option("--for", "seconds", type=DURATION, default=0.0, help="End after this time, such as 30s.")
@click.option("--keys", default=100, show_default=True, help="Distinct keys; 0: none.")
@click.option("--size", default=100, show_default=True, help="Bytes a value.")
@click.option("--compression", type=click.Choice(_COMPRESSION), default="none", show_default=True)
@click.option("--transaction", default=0, metavar="N", help="Records a transaction; 0: none.")
@click.option("--aborts", default=0.0, metavar="SHARE", help="Share of transactions that is aborted (0.1).")
@click.option("--group", "groups", multiple=True, metavar="G[:LAG]", help="Afterwards G stands LAG before the ends.")
@click.option("--live-group", "live", multiple=True, metavar="G", help="G consumes meanwhile.")
@click.option("--protocol", type=click.Choice(_PROTOCOLS), default="classic", show_default=True, help="Of the groups.")
@format_option("table", "json")
@pass_settings
def traffic(
    settings: Settings,
    /,
    *,
    cluster: str | None,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    live: tuple[str, ...],
    protocol: Any,
    **load: Any,
) -> None:
    """Writes records and leaves consumer groups behind by given lags; bounded by --count or --for."""
    from failover.lab.traffic import Load, lag_behind, run

    names = topics or ("orders",)
    if not load["count"] and not load["seconds"]:
        load["count"] = 1000
    lags = [_lag(group) for group in groups]
    side = _side(_lab(settings), cluster)
    written = run(side, [Load(topic=topic, **load) for topic in names], live=live, protocol=protocol)
    for group, lag in lags:
        lag_behind(side, group, names, lag, protocol=protocol)
    rows = [(item.topic, item.records, item.aborted, f"{item.seconds:.1f}") for item in written]
    settings.emit_value(
        {"cluster": side.alias, "written": written, "groups": [group for group, _ in lags]},
        {"table": lambda: _table(rows, ["TOPIC", "RECORDS", "ABORTED", "SECONDS"])},
    )


@command.group()
def fault() -> None:
    """Breaks something on purpose."""


def _process_fault(name: str, text: str) -> None:
    @fault.command(name, help=text)
    @click.argument("process")
    @pass_settings
    def act(settings: Settings, process: str) -> None:
        getattr(_lab(settings), name)(process)
        settings.say(f"{name}: {process}")


_process_fault("kill", "Kills a broker (alias/node), a whole cluster (alias), mm2 or proxy with SIGKILL.")
_process_fault("freeze", "Freezes a process: connections stay open, nothing answers.")
_process_fault("thaw", "Lets a frozen process go on.")
_process_fault("restart", "Starts a broker or cluster again with its data, stopping it first if it runs.")


@fault.command("delete-records")
@click.argument("topic")
@click.option("--partition", default=0, show_default=True)
@click.option("--before", type=int, required=True, metavar="OFFSET", help="The new log start.")
@click.option("--cluster", metavar="ALIAS", help="Where (default: the source).")
@pass_settings
def delete_records(settings: Settings, topic: str, partition: int, before: int, cluster: str | None) -> None:
    """Moves a partition's log start forward."""
    _side(_lab(settings), cluster).delete_records(topic, partition, before)
    settings.say(f"{topic}-{partition} now starts at {before}")


@fault.command("recreate-topic")
@click.argument("topic")
@click.option("--cluster", metavar="ALIAS", help="Where (default: the source).")
@pass_settings
def recreate_topic(settings: Settings, topic: str, cluster: str | None) -> None:
    """Deletes a topic and creates it again, empty, with its partitions and settings."""
    _side(_lab(settings), cluster).recreate_topic(topic)
    settings.say(f"{topic} is new and empty")


@fault.command()
@click.option("--where", type=click.Choice(["request", "answer"]), default="answer", show_default=True)
@click.option("--api", metavar="NAME", help="Request it concerns, as offset-commit (default: any).")
@click.option("--after-bytes", default=0, show_default=True, help="So much of the message still passes.")
@click.option("--skip", default=0, help="So many matching requests pass first.")
@click.option("--times", default=1, show_default=True, help="So often; 0: until `clear`.")
@click.option("--hold", is_flag=True, help="Keep the connection open and silent instead of resetting it.")
@pass_settings
def cut(settings: Settings, /, where: Any, api: str | None, hold: bool, **rule: int) -> None:
    """Breaks connections through the proxy before a request or its answer is through."""
    from failover.lab import Rule
    from failover.lab.fault import api_key

    added = Rule(where=where, action="hold" if hold else "cut", api=api_key(api), **rule)
    settings.say(f"rule {_lab(settings).proxy.add(added).id} waits for its request")


@fault.command()
@click.argument("seconds", type=DURATION)
@click.option("--where", type=click.Choice(["request", "answer"]), default="answer", show_default=True)
@click.option("--api", metavar="NAME", help="Request it concerns (default: any).")
@click.option("--times", default=0, help="So often; 0: until `clear`.")
@pass_settings
def delay(settings: Settings, seconds: float, where: Any, api: str | None, times: int) -> None:
    """Holds requests or answers back through the proxy."""
    from failover.lab.fault import api_key

    _lab(settings).proxy.delay(seconds, where=where, api=api_key(api), times=times)
    settings.say(f"each {where} waits {seconds:g} s")


@fault.command()
@pass_settings
def clear(settings: Settings) -> None:
    """Takes every cut and delay away."""
    _lab(settings).proxy.clear()
    settings.say("the proxy passes everything on")


def _folder(settings: Settings) -> Path:
    from failover.state.folder import default_folder

    root = Path(settings.state_dir).expanduser() if settings.state_dir else default_folder()
    return root / "lab"


def _lab(settings: Settings) -> Lab:
    from failover.lab import Lab

    return Lab.load(_folder(settings))


def _side(lab: Lab, alias: str | None) -> Side:
    from failover.lab.side import Side

    chosen = alias or lab.state.options.aliases[0]
    return Side(chosen, lab.client_settings(chosen))


def _counts(text: str) -> tuple[int, int]:
    first, _, second = text.partition(",")
    try:
        return int(first), int(second or first)
    except ValueError:
        raise LabUsageError(f"--brokers {text}: not a number", hint="--brokers 3, or 3,1 for three and one") from None


def _lag(text: str) -> tuple[str, int]:
    group, colon, lag = text.rpartition(":")
    if not colon:
        return text, 0
    try:
        return group, int(lag)
    except ValueError:
        raise LabUsageError(f"--group {text}: {lag} is no number", hint="--group payments:120") from None


def _show(settings: Settings, lab: Lab, value: Any) -> None:
    def text() -> str:
        where = "\n".join(f"{alias}  {servers}" for alias, servers in value.bootstrap.items())
        rows = [(row.name, row.state, row.pid or "-", row.log) for row in value.processes]
        head = f"lab {value.phase}, Kafka {value.kafka_version}, since {value.created}\n{where}\nconfig  {value.config}"
        if value.connect:
            head += f"\nconnect {value.connect}"
        return head + "\n\n" + _table(rows, ["PROCESS", "STATE", "PID", "LOG"])

    settings.emit_value(value, {"table": text})


def _table(rows: list[tuple[Any, ...]], headers: list[str]) -> str:
    from tabulate import tabulate

    return tabulate(rows, headers=headers, tablefmt="plain")
