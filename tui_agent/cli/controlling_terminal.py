"""Output of commands to the terminal, escaped so that it cannot act on it; and the check that there is a terminal."""

import json
import sys

import click

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.visible_text import escaped, escaped_json


def say(text: str, *, line_feed: bool = True) -> None:
    """Write a text to standard output; characters that a terminal acts on become escapes."""
    click.echo(escaped(text), nl=line_feed)


def say_error(text: str) -> None:
    """Write a text to standard error; characters that a terminal acts on become escapes."""
    click.echo(escaped(text), err=True)


def say_json(value: object) -> None:
    """Write a value as one line of JSON; characters that a terminal acts on become JSON escapes."""
    say_json_line(json.dumps(value, ensure_ascii=False))


def say_json_line(line: str) -> None:
    """Write a line of JSON; characters that a terminal acts on become JSON escapes."""
    click.echo(escaped_json(line))


def need_terminal(otherwise: str) -> None:
    """Refuses where a stream is no terminal; Textual reads from one and draws on standard error.

    Raises:
        ConfigurationError: it is none; `otherwise` says what to do then.
    """
    for name, stream in (("input", sys.stdin), ("output", sys.stdout), ("error", sys.stderr)):
        if not stream.isatty():
            words = f"the full-screen app needs a terminal, and standard {name} is none; {otherwise}"
            raise ConfigurationError(words)
