"""The command line: which command, with which options, and every usage error in one line.

Nothing heavy is imported here or for `--version` and `--help`; each command imports what it needs when it runs.
"""

import difflib
import errno
import importlib
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from tui_agent import __version__
from tui_agent.protocol.errors import TuiAgentError

from .controlling_terminal import say_error
from .launch import launch
from .shortage import FAILED, shortage_in

USAGE_ERROR = 2
INTERRUPTED = 130

_COMMANDS = {
    "config": ".config_command",
    "doctor": ".doctor",
    "hooks": ".hooks_command",
    "permissions": ".permissions_command",
    "sessions": ".sessions_command",
    "tools": ".tools_command",
}
"""Where each command is that is loaded when it is named."""

_LONGEST_MESSAGE = 2_000
"""Most characters of an error message."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of writing to a standard output that is full, broken or, for EBADF, closed from the start."""


class Program(click.Group):
    """The program: a first word that names a command runs it; anything else starts the agent."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order they are shown."""
        return sorted((*self.commands, *_COMMANDS))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name, loaded now."""
        if cmd_name not in _COMMANDS:
            return super().get_command(ctx, cmd_name)
        found: click.Command = getattr(importlib.import_module(_COMMANDS[cmd_name], __package__), cmd_name)
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the agent's own command in front of anything that is no command."""
        if args[:1] not in (["--help"], ["--version"]) and (not args or args[0] not in self.list_commands(ctx)):
            self._refuse_misspelt(args)
            args = [launch.name or "", *args]
        return super().parse_args(ctx, args)

    def _refuse_misspelt(self, args: list[str]) -> None:
        """A single word that nearly is a command was hardly meant for the model."""
        first = args[0] if args and not args[0].startswith("-") else ""
        near = difflib.get_close_matches(first, list(_COMMANDS), 1, 0.8)
        if near:
            raise click.UsageError(
                f"no command {first!r}; did you mean `tui-agent {near[0]}`? As a prompt: tui-agent -- {first}"
            )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Shows the agent's options with the program's, because that is where people look for them."""
        launch.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Both forms."""
        formatter.write_usage("tui-agent", "[OPTIONS] [PROMPT]")
        formatter.write_usage("tui-agent", "COMMAND …")


@click.group(cls=Program, add_help_option=True)
@click.version_option(__version__, prog_name="tui-agent", message="%(prog)s %(version)s")
def program() -> None:
    """A full-screen terminal coding agent: see everything, steer at any time, nothing happens that you did not allow.

    Without a key, try `tui-agent --demo`.
    """


program.add_command(launch)


def run_program(arguments: Sequence[str]) -> int:
    """Runs the program; returns its exit code (interface §1).

    A usage or configuration error takes one line, and its code is 2.
    """
    try:
        result: Any = program.main(list(arguments), prog_name="tui-agent", standalone_mode=False)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        return _refuse(_in_one_line(error))
    except TuiAgentError as error:
        shortage = shortage_in(error)
        return _refuse(str(error)) if shortage is None else _refuse(shortage, FAILED)
    except FileNotFoundError:
        if _cwd_exists():
            raise
        return _refuse("the directory you are in is no longer there; go to another, or name one with --cwd")
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        # What is still unwritten would fail once more at the interpreter's end.
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 1)
        return _refuse(f"the output cannot be written: {error.strerror}")
    except KeyboardInterrupt:
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def _refuse(message: str, code: int = USAGE_ERROR) -> int:
    with suppress(OSError):
        say_error(f"tui-agent: {' '.join(message.split())[:_LONGEST_MESSAGE]}")
    return code


def _cwd_exists() -> bool:
    """Whether the current directory still exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _in_one_line(error: click.ClickException) -> str:
    """What is wrong and the nearest right form."""
    if isinstance(error, click.NoSuchOption):
        known = [name for parameter in (error.ctx.command.params if error.ctx else []) for name in parameter.opts]
        near = difflib.get_close_matches(error.option_name, known, n=1, cutoff=0.7)
        hint = f" (did you mean {near[0]}?)" if near else ""
        return f"no such option: {error.option_name}{hint}"
    message = error.format_message()
    return message[:1].lower() + message[1:]
