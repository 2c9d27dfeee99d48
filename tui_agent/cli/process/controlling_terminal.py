"""Output of commands, escaped for the terminal, and the check that standard streams are a terminal."""

import io
import json
import os
import sys

import click

from tui_agent.prelude import early_start
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.visible_text import escaped, escaped_json

WEB_DRIVER = "textual.drivers.web_driver:WebDriver"
"""Value of `TEXTUAL_DRIVER` in a program that `textual serve` starts."""

_LONGEST_MESSAGE = 2_000
"""Most characters of an error message."""


def say(text: str, *, line_feed: bool = True) -> None:
    """Write text to standard output; characters that a terminal acts on become escapes."""
    click.echo(escaped(text), nl=line_feed)


def say_error(text: str) -> None:
    """Write text to standard error; characters that a terminal acts on become escapes.

    Before the app appears, the terminal is restored first: a later restoration would hide the text.
    """
    early_start.release()
    click.echo(escaped(text), err=True)


def say_problem(message: str) -> None:
    """Write what is wrong to standard error, as one line of bounded length that begins with the program's name."""
    say_error(f"tui-agent: {' '.join(message.split())[:_LONGEST_MESSAGE]}")


def say_json(value: object) -> None:
    """Write a value as one line of JSON; characters that a terminal acts on become JSON escapes."""
    say_json_line(json.dumps(value, ensure_ascii=False))


def say_json_line(line: str) -> None:
    """Write a line of JSON; characters that a terminal acts on become JSON escapes."""
    click.echo(escaped_json(line))


def need_terminal(advice: str) -> None:
    """Check that all standard streams are a terminal, and prepare them for the screen.

    Textual reads from one and draws on standard error. It draws in UTF-8 whatever the locale says, for the window as
    the terminal reports it.

    `textual serve` shows the app in a browser: it chooses Textual's web driver, which needs pipes.

    Raises:
        ConfigurationError: one of them is not; the message ends with `advice`.
    """
    if os.environ.get("TEXTUAL_DRIVER", "") == WEB_DRIVER:
        return
    for name, stream in (("input", sys.stdin), ("output", sys.stdout), ("error", sys.stderr)):
        if not stream.isatty():
            raise ConfigurationError(f"the full-screen app needs a terminal, and standard {name} is not one; {advice}")
    for stream in (sys.__stdout__, sys.__stderr__):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    if all(os.get_terminal_size(sys.__stderr__.fileno() if sys.__stderr__ else 2)):
        # Set by a shell or a container, they would win over each later size of the window.
        os.environ.pop("COLUMNS", None)
        os.environ.pop("LINES", None)
