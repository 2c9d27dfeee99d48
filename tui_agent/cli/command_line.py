"""The command line: dispatch to the commands, and usage errors in one line.

Imports nothing heavy, so that `--version` is fast; each command is imported when it is used.
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
    "config": ".subcommands.config_command",
    "doctor": ".subcommands.doctor",
    "hooks": ".subcommands.hooks_command",
    "permissions": ".subcommands.permissions_command",
    "sessions": ".subcommands.sessions_command",
    "tools": ".subcommands.tools_command",
}
"""Modules of the commands that are imported on use."""

_LONGEST_MESSAGE = 2_000
"""Most characters of an error message."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of writing to standard output if it is full, broken or, for EBADF, closed from the start."""


class Program(click.Group):
    """The program: runs the command that the first argument names; any other arguments start the agent."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the help text."""
        return sorted((*self.commands, *_COMMANDS))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in _COMMANDS:
            return super().get_command(ctx, cmd_name)
        found: click.Command = getattr(importlib.import_module(_COMMANDS[cmd_name], __package__), cmd_name)
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the agent's own command before arguments that name no command."""
        if args[:1] not in (["--help"], ["--version"]) and (not args or args[0] not in self.list_commands(ctx)):
            self._refuse_misspelt(args)
            args = [launch.name or "", *args]
        return super().parse_args(ctx, args)

    def _refuse_misspelt(self, args: list[str]) -> None:
        """Refuse a prompt that begins with a misspelt command."""
        first = args[0] if args and not args[0].startswith("-") else ""
        near = difflib.get_close_matches(first, list(_COMMANDS), 1, 0.8)
        if near:
            raise click.UsageError(
                f"no command {first!r}; did you mean `tui-agent {near[0]}`? As a prompt: `tui-agent -- {first}`"
            )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the agent's options with the program's: users look for them in `tui-agent --help`."""
        launch.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage of both forms."""
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
    """Run the program and return its exit code.

    A usage or configuration error prints one line on standard error and returns 2.
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
        return _refuse("the current directory no longer exists; change to another one, or name one with --cwd")
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        # Otherwise the interpreter would fail once more when it flushes the rest at its exit.
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
    """Return True if the current directory still exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _in_one_line(error: click.ClickException) -> str:
    """Return the error, with the closest valid option."""
    if isinstance(error, click.NoSuchOption):
        known = [name for parameter in (error.ctx.command.params if error.ctx else []) for name in parameter.opts]
        near = difflib.get_close_matches(error.option_name, known, n=1, cutoff=0.7)
        hint = f" (did you mean {near[0]}?)" if near else ""
        return f"no such option: {error.option_name}{hint}"
    message = error.format_message()
    return message[:1].lower() + message[1:]
