"""`failover explain CODE`."""

from __future__ import annotations

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.errors import UsageError


@click.command(cls=Command)
@click.argument("words", nargs=-1, metavar="[CODE]")
@format_option("table", "json", "yaml")
@pass_settings
def command(settings: Settings, /, *, words: tuple[str, ...]) -> int:
    """Says what a code, verdict or column means and what to do; without CODE it lists them all."""
    from failover.report.explain import entries, explain_text, find_word, near_words, words_text

    if not words:
        listed = [entry._asdict() for entry in entries().values()]
        settings.emit_value(listed, {"table": words_text})
        return 0
    typed = " ".join(words)
    entry = find_word(typed)
    if entry is None:
        near = near_words(typed)
        raise UsageError(
            f"there is no code or word {typed!r}",
            hint=f"did you mean: failover explain {near[0]}" if near else "failover explain lists them all",
        )
    settings.emit_value(entry._asdict(), {"table": lambda: explain_text(entry)})
    return 0
