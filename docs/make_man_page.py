"""Write `docs/tui-agent.1`, the manual page, from the commands and options of the program.

`python docs/make_man_page.py` writes the page; with `--stdout` it prints it.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from tui_agent.cli.command_line import launch, program

PAGE = Path(__file__).parent / "tui-agent.1"

ENDINGS = (
    ("0", "done"),
    ("1", "the run failed: an error, a guardrail or a budget"),
    ("2", "the arguments or the configuration are wrong"),
    ("3", "the step limit was reached"),
    ("4", "a call needed an approval, no one could give it, and the run could not continue"),
    ("75", "worth a retry later: rate limit, overload or network"),
    ("130", "interrupted"),
)
"""Exit codes of `-p`."""

VARIABLES = (
    ("ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN", "credential of the endpoint"),
    ("ANTHROPIC_BASE_URL", "endpoint of the Messages API"),
    ("TUI_AGENT_*", "settings, as in TUI_AGENT_UI__THEME=light"),
    ("TUI_AGENT_HOME", "one directory for settings, sessions and logs"),
    ("NO_COLOR, TUI_AGENT_REDUCED_MOTION", "a screen without colours; without animation"),
)

FILES = (
    ("$XDG_CONFIG_HOME/tui-agent/config.toml", "settings of the user"),
    (".tui-agent/config.toml", "settings of a project, once it is trusted"),
    ("$XDG_STATE_HOME/tui-agent/sessions/", "sessions"),
    ("$XDG_STATE_HOME/tui-agent/log/", "logs"),
)


def page() -> str:
    """Return the whole page in the language of man(7)."""
    root = click.Context(program, info_name="tui-agent", **program.context_settings)
    lines = [
        '.TH TUI-AGENT 1 "" "tui-agent" "User Commands"',
        ".SH NAME",
        r"tui-agent \- a full-screen terminal coding agent",
        ".SH SYNOPSIS",
        ".B tui-agent",
        r"[\fIOPTIONS\fR] [\fIPROMPT\fR]",
        ".br",
        ".B tui-agent",
        r"\fICOMMAND\fR …",
        ".SH DESCRIPTION",
        *_paragraphs(program.help or ""),
        ".SH OPTIONS",
        *_options(launch),
        ".SH COMMANDS",
    ]
    for name in program.list_commands(root):
        if (command := program.get_command(root, name)) is not None and not command.hidden:
            lines += _command(command, click.Context(command, root, info_name=name))
    for title, rows in (("EXIT STATUS", ENDINGS), ("ENVIRONMENT", VARIABLES), ("FILES", FILES)):
        lines.append(f".SH {title}")
        for name, words in rows:
            lines += [".TP", rf"\fB{_escaped(name)}\fR", _escaped(words)]
    return "\n".join(lines) + "\n"


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the section of a command, then those of its sub-commands."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (child := command.get_command(context, name)) is not None:
                yield from _command(child, click.Context(child, context, info_name=name))
        return
    arguments = [
        parameter.make_metavar(context) for parameter in command.params if isinstance(parameter, click.Argument)
    ]
    yield f".SS {_escaped(' '.join([context.command_path, *arguments]))}"
    yield from _paragraphs(command.help or "")
    yield from _options(command)


def _options(command: click.Command) -> Iterator[str]:
    """Yield the options of a command, without `--help`."""
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            names = ", ".join(rf"\fB{_escaped(name)}\fR" for name in option.opts)
            kind = option.type.name
            value = "" if option.is_flag else option.metavar or (kind if "|" in kind else kind.upper())
            yield ".TP"
            yield names + (rf" \fI{_escaped(value)}\fR" if value else "")
            yield _escaped(option.help or "")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield a help text; a paragraph that begins with a backspace keeps its line breaks."""
    for paragraph in text.split("\n\n"):
        yield ".PP"
        if paragraph.startswith("\b"):
            yield from (".nf", *map(_escaped, paragraph.splitlines()[1:]), ".fi")
        else:
            yield _escaped(" ".join(paragraph.split()))


def _escaped(text: str) -> str:
    """Return plain text as man(7) reads it: no escapes, no requests, hyphens that can be copied."""
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("`", "")
    return re.sub(r"^([.'])", r"\\&\1", plain)


def main() -> None:
    """Write or print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stdout", action="store_true", help="print the page")
    if parser.parse_args().stdout:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
