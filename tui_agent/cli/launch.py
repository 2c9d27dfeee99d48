"""The agent's own command: the full-screen app, or with `-p` one headless run."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tui_agent import __version__
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import PermissionMode, Verdict
from tui_agent.settings import Locations

from .controlling_terminal import say_error
from .launch_options import PICK_SESSION, LaunchOptions, OneOf, StrategyName
from .shortage import FAILED, memory_problem


def _option(*names: str, **settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(*names, **settings)


_MODES = tuple(mode.value for mode in PermissionMode)


@click.command(name="run", hidden=True)
@click.argument("prompt", required=False)
@_option(
    "-p",
    "--print",
    "print_mode",
    is_flag=True,
    help="Run once without a screen and print the final text. Use - as PROMPT to read stdin.",
)
@_option("--demo", is_flag=True, help="Use the built-in offline model: no key, no network.")
@_option("-c", "--continue", "continue_last", is_flag=True, help="Continue the last session of this directory.")
@_option(
    "-r",
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value=PICK_SESSION,
    help="Resume a session. Without ID, choose one.",
)
@_option("--session", "session_id", metavar="ID", help="Use this id for the new session.")
@_option("--no-session", is_flag=True, help="Save no session; with --resume, save nothing new.")
@_option("--model", metavar="NAME", help="Model to use.")
@_option("--base-url", metavar="URL", help="Endpoint of the Messages API.")
@_option("--permission-mode", type=OneOf(_MODES), help="Decision for calls that no rule matches.")
@_option("--allow", multiple=True, metavar="RULE", help="Allow matching calls, as in 'bash(git status:*)'. Repeatable.")
@_option("--ask", multiple=True, metavar="RULE", help="Ask before matching calls. Repeatable.")
@_option("--deny", multiple=True, metavar="RULE", help="Deny matching calls. Repeatable.")
@_option("--strategy", type=StrategyName(), help="Execution order of the calls of one response.")
@_option("--max-steps", type=click.IntRange(min=1), metavar="N", help="Step limit of one run.")
@_option(
    "--tool-timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time limit of a tool call.",
)
@_option("--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Directory to work in.")
@_option("--system", metavar="TEXT", help="Replace the built-in system prompt.")
@_option("--append-system", metavar="TEXT", help="Append to the system prompt.")
@_option("--theme", metavar="NAME", help="Theme of the screen.")
@_option(
    "--output-format", type=OneOf(("text", "json", "stream-json")), help="With -p: format of the output. Default: text."
)
@_option("--input-format", type=OneOf(("text", "stream-json")), help="With -p: format of stdin. Default: text.")
@_option("--include-deltas", is_flag=True, help="With stream-json: also write deltas and live output.")
@_option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Record to a new file, for --replay.")
@_option("--replay", type=click.Path(path_type=Path), metavar="FILE", help="Play a recording: no key, no network.")
@_option("--trust", is_flag=True, help="Apply this folder's own settings to this run, except its allow rules.")
@_option("--verbose", is_flag=True, help="Write a debug log.")
@click.version_option(__version__, prog_name="tui-agent", message="%(prog)s %(version)s")
def launch(**values: Any) -> int:
    """Start the agent in the current directory, and send PROMPT if given."""
    if values["replay"] is not None:
        _refuse_beside_replay(values)
    options = _options_of(values)
    if problem := memory_problem():
        say_error(f"tui-agent: {problem}")
        return FAILED
    if values["theme"]:
        from .effective_settings import refuse_unknown_theme

        refuse_unknown_theme(values["theme"], Locations.of_user(os.environ))
    if values["replay"] is not None:
        from .recordings import run_replay

        return run_replay(values["replay"], values["theme"])
    if options.print_mode:
        from .engine_host import run_print_mode

        return run_print_mode(options)
    from .interactive import run_interactive

    return run_interactive(options)


def _refuse_beside_replay(values: dict[str, Any]) -> None:
    """Refuse options that start or change an agent: a recording plays without one."""
    for name, value in values.items():
        if name not in ("replay", "theme") and value not in (None, False, ()):
            named = {"print_mode": "-p", "continue_last": "--continue", "session_id": "--session", "prompt": "a prompt"}
            option = named.get(name, f"--{name.replace('_', '-')}")
            raise click.UsageError(f"--replay plays a recording as it is; it cannot be combined with {option}")


def _options_of(values: dict[str, Any]) -> LaunchOptions:
    """Return the launch options; refuse combinations that make no sense."""
    print_mode = bool(values["print_mode"])
    for name in ("output_format", "input_format", "include_deltas"):
        if values[name] and not print_mode:
            raise click.UsageError(f"--{name.replace('_', '-')} needs -p")
    if values["continue_last"] and values["resume"] is not None:
        raise click.UsageError("--continue and --resume cannot be combined")
    if values["session_id"] and (values["no_session"] or values["continue_last"] or values["resume"] is not None):
        raise click.UsageError(
            "--session names a new session; it cannot be combined with --no-session, --continue or --resume"
        )
    if print_mode and values["resume"] == PICK_SESSION:
        raise click.UsageError("--resume needs an ID with -p")
    return LaunchOptions(
        prompt=values["prompt"],
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
        output_format=values["output_format"] or "text",
        input_format=values["input_format"] or "text",
        include_deltas=values["include_deltas"],
        trust=values["trust"],
        verbose=values["verbose"],
        record=values["record"],
    )


def _settings_of(values: dict[str, Any]) -> JsonObject:
    """Return the options that are settings, nested like the settings file."""
    plain = ("model", "base_url", "strategy", "max_steps", "tool_timeout", "append_system")
    chosen: JsonObject = {name: values[name] for name in plain if values[name] is not None}
    if values["permission_mode"]:
        chosen["permissions"] = {"mode": values["permission_mode"]}
    if values["theme"]:
        chosen["ui"] = {"theme": values["theme"]}
    return chosen


def _rules_of(values: dict[str, Any]) -> tuple[tuple[Verdict, str], ...]:
    """Return the rules, deny before ask before allow, so that the order of options never loosens a rule."""
    verdicts: tuple[Verdict, ...] = ("deny", "ask", "allow")
    return tuple((verdict, text) for verdict in verdicts for text in values[verdict])
