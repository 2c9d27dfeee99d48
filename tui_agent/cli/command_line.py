"""The command line: the options of the agent, dispatch to the sub-commands, and usage errors in one line.

Imports nothing heavy, so that `--version` is fast; each command is imported when it is used.
"""

import difflib
import errno
import importlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from tui_agent import __version__
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.permissions import PermissionMode, Verdict
from tui_agent.workbench.configuration.launch_options import PICK_SESSION, LaunchExtras, LaunchOptions

from .command_words import ModelName, OneOf, SessionId, StrategyName, ThemeName, as_prompt, command_of
from .process.controlling_terminal import say_problem
from .process.shortage import FAILED, memory_problem, shortage_in

USAGE_ERROR = 2
INTERRUPTED = 130

_COMMANDS = {
    "acp": ("front_end", "Serve an editor by the Agent Client Protocol, on standard input and output."),
    "completion": ("installation", "Print the completion script of SHELL: bash, zsh or fish."),
    "config": ("settings", "Show and check the settings."),
    "doctor": ("installation", "Check what works here."),
    "fleet": ("fleet", "Run one prompt over many repositories."),
    "hooks": ("hooks", "List and try hooks."),
    "login": ("installation", "Show the key that requests are sent with, and how to set one."),
    "mcp": ("mcp", "Manage tool servers (MCP)."),
    "models": ("inventory", "Show the models of the configured endpoints."),
    "permissions": ("settings", "Decide calls without running them."),
    "plugins": ("inventory", "Show the plugins of installed packages."),
    "serve": ("front_end", "Show the app in a browser."),
    "sessions": ("session", "Manage stored sessions."),
    "stats": ("session", "Show tokens and cost of all sessions by day, model and folder."),
    "tools": ("inventory", "Show the tools."),
    "update-check": ("installation", "Ask the package index for a newer version."),
}
"""Module of each sub-command, and the first sentence of its help, so that `--help` imports none of them."""

EFFORTS = ("default", "off", "low", "medium", "high", "xhigh", "max")
"""Values of `effort`."""

_MODES = tuple(mode.value for mode in PermissionMode)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of writing to standard output if it is full, broken or, for EBADF, closed from the start."""


# --- the agent's own command ------------------------------------------------------------------------------------------


def _option(*names: str, **settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(*names, **settings)


_version = click.version_option(__version__, "-V", "--version", prog_name="tui-agent", message="%(prog)s %(version)s")


@click.command(name="run", hidden=True)
@click.argument("prompt", nargs=-1)
@_option(
    "-p",
    "--print",
    "print_mode",
    is_flag=True,
    help="Run once without a screen and print the final text. Piped text follows PROMPT, or replaces -.",
)
@_option("--plain", is_flag=True, help="Work in lines of plain text, without a screen: for screen readers and logs.")
@_option("--demo", is_flag=True, help="Use the built-in offline model: no key, no network.")
@_option("-c", "--continue", "continue_last", is_flag=True, help="Continue the last session of this directory.")
@_option(
    "-r",
    "--resume",
    metavar="[ID]",
    type=SessionId(),
    is_flag=False,
    flag_value=PICK_SESSION,
    help="Resume a session. Without ID, choose one.",
)
@_option("--session", "session_id", metavar="ID", help="Use this id for the new session.")
@_option("--name", "title", metavar="TITLE", help="Title of the session, in its lists.")
@_option("--no-session", is_flag=True, help="Save no session; with --resume, save nothing new.")
@_option("--model", metavar="NAME", type=ModelName(), help="Model to use, or PROVIDER/NAME.")
@_option("--effort", type=OneOf(EFFORTS), help="Amount of thinking.")
@_option("--base-url", metavar="URL", help="Endpoint of the Messages API.")
@_option("--permission-mode", type=OneOf(_MODES), help="Decision for calls and changes that no rule matches.")
@_option("--allow", multiple=True, metavar="RULE", help="Allow matching calls, as in 'bash(git status:*)'. Repeatable.")
@_option("--ask", multiple=True, metavar="RULE", help="Ask before matching calls. Repeatable.")
@_option("--deny", multiple=True, metavar="RULE", help="Deny matching calls. Repeatable.")
@_option(
    "--tools",
    multiple=True,
    metavar="NAMES",
    help="Offer only these tools to the model: names with commas, * for any text. Repeatable; empty for none.",
)
@_option("--strategy", type=StrategyName(), help="Execution order of the calls of one response.")
@_option("--max-steps", type=click.IntRange(min=1), metavar="N", help="Step limit of one run.")
@_option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    metavar="DOLLARS",
    help="End a run after the step that reaches this cost, if the price of the model is known.",
)
@_option(
    "--tool-timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time limit of a tool call.",
)
@_option("--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Directory to work in.")
@_option(
    "--add-dir",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Read and change files of this folder as well, under the rules of the workspace. Repeatable.",
)
@_option(
    "--worktree",
    metavar="[NAME]",
    is_flag=False,
    flag_value="",
    help="Work in a git worktree of its own; at the end keep, merge or remove it.",
)
@_option("--system", metavar="TEXT", help="Replace the built-in system prompt.")
@_option("--append-system", metavar="TEXT", help="Append to the system prompt.")
@_option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal, for its own selection.")
@_option("--theme", metavar="NAME", type=ThemeName(), help="Theme of the screen.")
@_option(
    "--output-format", type=OneOf(("text", "json", "stream-json")), help="With -p: format of the output. Default: text."
)
@_option("--input-format", type=OneOf(("text", "stream-json")), help="With -p: format of stdin. Default: text.")
@_option("--include-deltas", is_flag=True, help="With stream-json: also write deltas and live output.")
@_option(
    "--json-schema",
    "answer_schema",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With -p: the final answer is JSON that matches this schema.",
)
@_option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Copy the session to a new file.")
@_option("--replay", metavar="ID|FILE", help="Replay a session, from a file or by its id: no key, no network.")
@_option("--mcp-config", type=click.Path(path_type=Path), metavar="FILE", help="Start the tool servers of this file.")
@_option(
    "--trust", is_flag=True, help="Apply this folder's own settings to this run, except its allow rules and servers."
)
@_option(
    "--safe",
    "is_safe",
    is_flag=True,
    help="Use no settings, hooks, tool servers, skills, instructions or plugins, yours or the folder's.",
)
@_option("--verbose", is_flag=True, help="Write a debug log.")
@_version
def launch(**values: Any) -> int:
    """Start the agent in the current directory, and send PROMPT if given."""
    if values["replay"] is not None:
        _refuse_beside_replay(values)
    options = launch_options(values)
    # Before anything is opened: a library that runs out of memory may end the process without a word.
    if problem := memory_problem():
        say_problem(problem)
        return FAILED
    if values["theme"]:
        from .screen_entry import refuse_unknown_theme

        refuse_unknown_theme(values["theme"], options)
    if values["replay"] is not None:
        from .screen_entry import run_replay

        return run_replay(values["replay"], options)
    if values["worktree"] is not None:
        from .session_worktree import run_in_worktree

        return run_in_worktree(options, values["worktree"], _run)
    return _run(options)


def _run(options: LaunchOptions) -> int:
    if options.print_mode or options.plain:
        from .print_mode import run_plain_mode, run_print_mode

        return run_plain_mode(options) if options.plain else run_print_mode(options)
    from .screen_entry import run_interactive

    return run_interactive(options, _examine)


def _examine(folder: Path) -> str:
    """Return the report of `doctor` for a folder, for the app. Blocks."""
    from .installation_checks import examined

    return examined(folder)


def _refuse_beside_replay(values: dict[str, Any]) -> None:
    """Refuse options that start or change an agent: a replay has none."""
    for name, value in values.items():
        if name not in ("replay", "theme") and value not in (None, False, ()):
            named = {"print_mode": "-p", "continue_last": "--continue", "session_id": "--session", "prompt": "a prompt"}
            named |= {"folders": "--add-dir", "title": "--name", "answer_schema": "--json-schema", "is_safe": "--safe"}
            option = named.get(name, f"--{name.replace('_', '-')}")
            raise click.UsageError(f"--replay plays a session as it was; it cannot be combined with {option}")


def launch_options(given: dict[str, Any]) -> LaunchOptions:
    """Return the launch options; values that are not given are defaults.

    Raises:
        click.UsageError: a value is wrong, or the combination makes no sense.
    """
    values: dict[str, Any] = {one.name or "": () if one.multiple else None for one in launch.params}
    values |= given
    print_mode = bool(values["print_mode"])
    for name in ("output_format", "input_format", "include_deltas", "answer_schema"):
        if values[name] and not print_mode:
            option = "json-schema" if name == "answer_schema" else name.replace("_", "-")
            raise click.UsageError(f"--{option} needs -p")
    if values["is_safe"] and values["trust"]:
        raise click.UsageError("--safe uses nothing of this folder, and --trust its settings; they cannot be combined")
    if print_mode and values["plain"]:
        raise click.UsageError("-p runs once and --plain is a conversation; they cannot be combined")
    if values["continue_last"] and values["resume"] is not None:
        raise click.UsageError("--continue and --resume cannot be combined")
    if values["session_id"] and (values["no_session"] or values["continue_last"] or values["resume"] is not None):
        raise click.UsageError(
            "--session names a new session; it cannot be combined with --no-session, --continue or --resume"
        )
    if (print_mode or values["plain"]) and values["resume"] == PICK_SESSION:
        raise click.UsageError(f"--resume needs an ID with {'-p' if print_mode else '--plain'}")
    plain = "plain" if values["plain"] else "text"
    return LaunchOptions(
        prompt=" ".join(values["prompt"] or ()) or None,
        demo=values["demo"],
        cwd=(values["cwd"] or Path.cwd()).resolve(),
        settings=_settings_of(values),
        rules=_rules_of(values),
        system=values["system"],
        continue_last=values["continue_last"],
        resume=values["resume"],
        session_id=values["session_id"],
        keep_session=not values["no_session"],
        print_mode=print_mode,
        output_format=values["output_format"] or plain,
        input_format=values["input_format"] or plain,
        include_deltas=values["include_deltas"],
        trust=values["trust"],
        verbose=values["verbose"],
        extras=LaunchExtras(
            record=values["record"],
            title=_title_of(values["title"]),
            tools=_names_of(values["tools"] or ()),
            is_safe=bool(values["is_safe"]),
            answer_schema=None if values["answer_schema"] is None else _schema_in(values["answer_schema"]),
        ),
        mcp_config=values["mcp_config"],
        folders=tuple(folder.resolve() for folder in values["folders"]),
    )


def _settings_of(values: dict[str, Any]) -> JsonObject:
    """Return the options that are settings, nested like the settings file."""
    plain = ("model", "effort", "base_url", "strategy", "max_steps", "tool_timeout", "append_system")
    chosen: JsonObject = {name: values[name] for name in plain if values[name] is not None}
    if values["permission_mode"]:
        chosen["permissions"] = {"mode": values["permission_mode"]}
    if values["max_cost"] is not None:
        chosen["budget"] = {"cost_usd": values["max_cost"]}
    screen: JsonObject = {"theme": values["theme"]} if values["theme"] else {}
    if values["no_mouse"]:
        screen["mouse"] = False
    if screen:
        chosen["ui"] = screen
    return chosen


def _rules_of(values: dict[str, Any]) -> tuple[tuple[Verdict, str], ...]:
    """Return the rules, deny before ask before allow, so that the order of options never loosens a rule."""
    verdicts: tuple[Verdict, ...] = ("deny", "ask", "allow")
    return tuple((verdict, text) for verdict in verdicts for text in values[verdict])


def _title_of(given: str | None) -> str:
    title = " ".join((given or "").split())
    if given is not None and not title:
        raise click.UsageError("--name: a session's title cannot be empty")
    return title


def _schema_in(path: Path) -> JsonObject:
    try:
        # A file, or a pipe such as that of `<(…)`.
        schema: object = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise click.UsageError(f"--json-schema: {path} cannot be read: {error}") from error
    if not is_object(schema):
        raise click.UsageError(f"--json-schema: {path} is not an object")
    return schema


def _names_of(given: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names and patterns of `--tools`; None without the option."""
    return tuple(name.strip() for text in given for name in text.split(",") if name.strip()) if given else None


# --- the program ------------------------------------------------------------------------------------------------------


class Program(click.Group):
    """The program: runs the command that the first argument names; any other arguments start the agent."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the help text."""
        return sorted((*self.commands, *_COMMANDS))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in _COMMANDS:
            return super().get_command(ctx, cmd_name)
        module = importlib.import_module(f".subcommands.{_COMMANDS[cmd_name][0]}_commands", __package__)
        found: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the agent's own command before arguments that name no command."""
        # A shell that completes the first word parses the words before it: none.
        if not ctx.resilient_parsing:
            args = command_of(args, _COMMANDS, launch.name or "")
        elif args and args[0] not in _COMMANDS:
            args = [launch.name or "", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Return the commands and options for the first argument, for a shell; imports no command."""
        names = [name for name in self.list_commands(ctx) if name != launch.name and name.startswith(incomplete)]
        return [*map(CompletionItem, names), *launch.shell_complete(ctx, incomplete)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the agent's options with the program's: users look for them in `tui-agent --help`."""
        launch.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sub-commands; imports none of them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted((name, text) for name, (_, text) in _COMMANDS.items()))

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage of both forms."""
        formatter.write_usage("tui-agent", "[OPTIONS] [PROMPT …]")
        formatter.write_usage("tui-agent", "COMMAND …")


@click.group(cls=Program, add_help_option=True, context_settings={"help_option_names": ["-h", "--help"]})
@_version
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
        return _refuse(f"{_in_one_line(error).rstrip('.')}{as_prompt(arguments, _COMMANDS)}")
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
        say_problem(message)
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
        # Of the command that was named, and not of the program.
        known = [name for parameter in (error.ctx.command.params if error.ctx else []) for name in parameter.opts]
        near = difflib.get_close_matches(error.option_name, known, n=1, cutoff=0.7)
        hint = f" (did you mean {near[0]}?)" if near else ""
        return f"no such option: {error.option_name}{hint}"
    message = error.format_message()
    return message[:1].lower() + message[1:]
