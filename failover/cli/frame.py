"""What every command shares: the global options, where results and talk go, and questions.

stdout carries the result and nothing else; progress, logs and prompts go to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from failover.cli.params import SOME_TIME
from failover.cli.streams import fitting
from failover.errors import Declined, NoTerminal

F = TypeVar("F", bound=Callable[..., Any])


class Settings:
    """Holds what the global options said and what was printed; one a process, in ``ctx.obj``."""

    def __init__(self) -> None:
        self.config: tuple[str, ...] = ()
        self.overrides: tuple[str, ...] = ()
        self.secrets_dir = ""
        self.source: str | None = None
        self.target: str | None = None
        self.source_down = False
        self.state_dir: str | None = None
        self.timeout: float | None = None
        self.verbosity = 0
        self.quiet = False
        self.log_format = "text"
        self.color = True
        self.format = "table"
        self.emitted = False

    def source_timeout(self) -> float:
        """Is the longest silence accepted from the source, in seconds."""
        return 10.0 if self.timeout is None else self.timeout

    def target_timeout(self) -> float:
        """Is the longest silence accepted from the target, in seconds."""
        return 30.0 if self.timeout is None else self.timeout

    def say(self, text: str) -> None:
        """Tells the operator something on stderr, unless -q; what of it came from outside comes out inert."""
        if not self.quiet:
            print(_inert(text), file=sys.stderr, flush=True)

    def emit(self, text: str) -> None:
        """Prints a result on stdout."""
        self.emitted = True
        whole = text if text.endswith("\n") or not text else text + "\n"
        sys.stdout.write(fitting(whole, sys.stdout.encoding, self.format))
        sys.stdout.flush()

    def emit_value(self, value: object, renderers: Mapping[str, Callable[[], str]]) -> None:
        """Prints a value in the asked format."""
        self.emit(self.written(value, renderers))

    def written(self, value: object, renderers: Mapping[str, Callable[[], str]]) -> str:
        """Writes a value in the asked format: by its renderer, else as JSON or YAML."""
        if self.format in renderers:
            return renderers[self.format]()
        from failover.report.encode import to_json, to_yaml

        return to_yaml(value) if self.format == "yaml" else to_json(value)


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        # An option that was not typed here must not undo what was typed before the command.
        if value == "" or (isinstance(value, tuple) and "" in value):
            raise click.BadParameter("it is empty", ctx, param)  # $UNSET in a script: never the current folder
        if ctx.get_parameter_source(param.name or "") is not click.core.ParameterSource.DEFAULT:
            settings = ctx.ensure_object(Settings)
            setattr(settings, name, value)
        return value

    return callback


def _add_verbosity(ctx: click.Context, param: click.Parameter, value: int) -> int:
    ctx.ensure_object(Settings).verbosity += value
    return value


def _no_color(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    if value:
        ctx.ensure_object(Settings).color = False
    return value


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from failover._version import __version__

        click.echo(f"failover {__version__}")
        ctx.exit()


def _global_options() -> list[click.Option]:
    return [
        click.Option(
            ["--config", "config"],
            multiple=True,
            metavar="FILE",
            callback=_keep("config"),
            help="mm2.properties, a Strimzi resource, connectors' JSON or YAML (repeatable), or connect+https://HOST "
            "(default: $FAILOVER_CONFIG, then ./mm2.properties).",
        ),
        click.Option(
            ["--set", "overrides"],
            multiple=True,
            metavar="KEY=VALUE",
            callback=_keep("overrides"),
            help="Override one setting of mm2.properties (repeatable).",
        ),
        click.Option(
            ["--secrets-dir"],
            metavar="DIR",
            callback=_keep("secrets_dir"),
            help="Secrets that a Strimzi resource names: DIR/NAME/KEY or DIR/NAME.yaml.",
        ),
        click.Option(
            ["--source"],
            metavar="ALIAS",
            callback=_keep("source"),
            help="Cluster to leave; needed where several flows are enabled.",
        ),
        click.Option(
            ["--target"],
            metavar="ALIAS",
            callback=_keep("target"),
            help="Cluster to fail over to; needed where several flows are enabled.",
        ),
        click.Option(
            ["--source-down"], is_flag=True, callback=_keep("source_down"), help="Do not contact the source at all."
        ),
        click.Option(
            ["--state-dir"], metavar="DIR", callback=_keep("state_dir"), help="Where plans and journals are kept."
        ),
        click.Option(
            ["--timeout"],
            type=SOME_TIME,
            callback=_keep("timeout"),
            help="Longest silence accepted from a cluster, such as 5s (default: source 10s, target 30s).",
        ),
        click.Option(
            ["-v", "--verbose", "verbosity"],
            count=True,
            callback=_add_verbosity,
            help="Say more; -vv also logs and tracebacks.",
        ),
        click.Option(["-q", "--quiet"], is_flag=True, callback=_keep("quiet"), help="Say less on stderr."),
        click.Option(
            ["--log-format"],
            type=click.Choice(["text", "json"]),
            callback=_keep("log_format"),
            help="Form of log lines on stderr.",
        ),
        click.Option(["--no-color"], is_flag=True, callback=_no_color, help="No colours."),
        click.Option(["--version"], is_flag=True, is_eager=True, callback=_version, help="Print the version and exit."),
    ]


class _WithGlobals:
    """Adds the global options to a command, so that they stand before or after its name."""

    params: list[click.Parameter]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {name for param in self.params for name in param.opts}
        for option in _global_options():
            if not own.intersection(option.opts):
                option.expose_value = False
                self.params.append(option)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses what was typed; an error names the command it belongs to."""
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc, no-any-return]
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # the parser's own errors have none
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shared = {option.name for option in _global_options()}
        rows: dict[bool, list[tuple[str, str]]] = {False: [], True: []}
        for param in self.params:
            record = param.get_help_record(ctx)
            if record is not None and record[1]:  # what an argument means stands in the text above
                rows[param.name in shared and not param.expose_value].append(record)
        help_option = self.get_help_option(ctx)  # type: ignore[attr-defined]
        if help_option is not None and (record := help_option.get_help_record(ctx)) is not None:
            rows[True].append(record)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)
        for title, key in (("Options", False), ("Global options", True)):
            if rows[key]:
                with formatter.section(title):
                    formatter.write_dl(rows[key])


class Command(_WithGlobals, click.Command):
    """Is a command with the global options."""

    def invoke(self, ctx: click.Context) -> Any:
        """Sets up logging by the global options, then runs the command."""
        from failover.cli.logs import set_up

        settings = ctx.ensure_object(Settings)
        set_up(settings.verbosity, settings.quiet, settings.log_format)
        return super().invoke(ctx)


class Group(_WithGlobals, click.Group):
    """Is a group of commands with the global options."""

    command_class = Command
    group_class = type

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands, each with its whole first sentence: click cuts it off where the line ends."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(limit=1000)))
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


pass_settings = click.make_pass_decorator(Settings, ensure=True)


def _keep_format(ctx: click.Context, param: click.Parameter, value: str) -> str:
    ctx.ensure_object(Settings).format = value
    return value


def format_option(*formats: str) -> Callable[[F], F]:
    """Adds ``--format`` with these choices, the first being the default; it concerns stdout only."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        expose_value=False,
        callback=_keep_format,
        help="Form of the result on stdout.",
    )


def require_terminal(*, assume_yes: bool) -> None:
    """Raises ``NoTerminal`` when a question will come that nobody can be asked: before anything is contacted."""
    if not assume_yes and not sys.stdin.isatty():
        raise NoTerminal(
            "a confirmation is needed and there is no terminal", hint="add --yes to go ahead without asking"
        )


def confirm_typed(question: str, expected: str, *, assume_yes: bool, declined: str = "") -> None:
    """Asks the operator to type ``expected``; an empty or other answer declines.

    ``declined``: what to know then. Raises ``NoTerminal`` (exit 2) when nobody can be asked, ``Declined`` (exit 3) on
    another answer.
    """
    if not assume_yes and not asked(question, expected):
        raise Declined("declined: nothing was written", hint=declined)


def asked(question: str, expected: str = "yes") -> bool:
    """Asks once and says whether the operator typed ``expected``. Raises ``NoTerminal`` when nobody can be asked."""
    require_terminal(assume_yes=False)
    print(_inert(question), file=sys.stderr)
    print(f"Type {_inert(expected)} to go ahead, anything else to stop: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == expected


def _inert(text: str) -> str:
    from failover.report.inert import inert_line

    return "\n".join(map(inert_line, text.split("\n")))
