"""The process's entry: runs a command and turns whatever happens into an exit code."""

from __future__ import annotations

import atexit
import contextlib
import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn

import click

from failover.cli.frame import Group, Settings
from failover.cli.streams import wait_for_readers
from failover.errors import FailoverError, Interrupted, PlaybookInvalid, UsageError


class LazyGroup(Group):
    """Knows its commands by a static table and imports a command's module when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from failover.cli import COMMANDS

        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from failover.cli import COMMANDS

        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from failover.cli import COMMANDS

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, 1)
            raise UsageError(
                f"there is no command {args[0]!r}",
                hint=f"did you mean: failover {near[0]}" if near else "failover --help lists the commands",
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from failover.cli import COMMANDS

        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup, name="failover", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
def root() -> None:
    """Leaves a Kafka primary safely: plans and commits consumer offsets on the standby.

    Start with `failover plan`: it reads ./mm2.properties, writes nothing to either cluster and
    shows what would happen. `failover COMMAND --help` says what a command takes; the global
    options stand before or after its name.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits with the code its outcome has."""
    ending: list[int] = []
    if arguments is None:
        atexit.register(_leave, ending)  # registered first, so that it comes last
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    settings = Settings()
    wait_for_readers()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # help texts on a terminal that is not UTF-8
    signal.signal(signal.SIGTERM, _terminated)
    try:
        code = root.main(args=arguments, prog_name="failover", standalone_mode=False, obj=settings)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) left. Nothing more can be said there; the shell's own code for it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 128 + signal.SIGPIPE
    except BaseException as error:  # noqa: BLE001 - the one place where every failure becomes an exit code
        code = report(error, settings, arguments)
    ending.append(code if isinstance(code, int) else 0)
    sys.exit(ending[0])


def _leave(ending: Sequence[int]) -> None:
    """Ends the process once Python's own part is over, if librdkafka has been at work.

    A thread of it that still waits for a broker is met by OpenSSL's own end, which is the C library's exit: of 207 runs
    whose credentials were refused one ended by SIGSEGV (measured, confluent-kafka 2.16.1).
    """
    if not ending or "confluent_kafka" not in sys.modules:
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(ending[0])


def report(error: BaseException, settings: Settings, arguments: Sequence[str]) -> int:
    """Prints an error as its `error:` and `hint:` lines (and as JSON where asked); gives its exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, click.exceptions.Exit):
        return int(error.exit_code)
    code, message, hint, exit_code = describe(error)
    if settings.verbosity >= 2 and not isinstance(error, (click.ClickException, KeyboardInterrupt)):
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    from failover.report.inert import inert_line

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        print(error.format_message(), end="\n\n", file=sys.stderr)
    print(f"error: {inert_line(message)}", file=sys.stderr)
    if hint:
        print(f"hint: {inert_line(hint)}", file=sys.stderr)
    if not settings.emitted and _wants_json(settings, arguments):
        import json

        print(json.dumps({"error": {"code": code, "message": message, "hint": hint}}))
    return exit_code


def describe(error: BaseException) -> tuple[str, str, str, int]:
    """Gives an error's code, message, hint and exit code."""
    if isinstance(error, Interrupted):
        return error.code, error.message, error.hint, 128 + error.signal_number
    if isinstance(error, PlaybookInvalid):  # its message has a line for each mistake
        return error.code, "; ".join(error.message.splitlines()), error.hint, error.exit_code
    if isinstance(error, FailoverError):
        return error.code, error.message, error.hint, error.exit_code
    if isinstance(error, (KeyboardInterrupt, click.exceptions.Abort)):
        return Interrupted.code, "interrupted", "", 130
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # its message is the whole help
        return UsageError.code, f"{error.ctx.command_path} wants a command", "the list above has them", 2
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "failover"
        return UsageError.code, " ".join(error.format_message().split()), f"{where} --help lists what it takes", 2
    if isinstance(error, click.ClickException):
        return UsageError.code, error.format_message(), "", 2
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        name = str(error.filename or "")
        return UsageError.code, f"{name[:60]}… is too long for a file's name", "type an id or a path", 2
    text = str(error).strip().splitlines()
    summary = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    return FailoverError.code, f"unexpected: {summary}", "run it again with -vv for the traceback, and report it", 1


def _wants_json(settings: Settings, arguments: Sequence[str]) -> bool:
    # A usage error may come before --format was read, hence the look at the raw arguments.
    typed = " ".join(arguments)
    return settings.format == "json" or "--format json" in typed or "--format=json" in typed


def _terminated(number: int, frame: FrameType | None) -> Any:
    raise Interrupted("terminated by a signal", signal_number=number)
