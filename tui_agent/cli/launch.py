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

from .choices import OneOf, StrategyName
from .controlling_terminal import say_error
from .launch_options import PICK_SESSION, LaunchOptions
from .shortage import FAILED, memory_problem


def _option(*names: str, **settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(*names, **settings)


_MODES = tuple(mode.value for mode in PermissionMode)


@click.command(name="run", hidden=True)
@click.argument("prompt", required=False)
@_option(
    "-p", "--print", "print_mode", is_flag=True, help="Headless: one run, the final text on stdout; - reads stdin."
)
@_option("--demo", is_flag=True, help="The built-in offline model: no key, no network.")
@_option("-c", "--continue", "continue_last", is_flag=True, help="Go on with this directory's last session.")
@_option(
    "-r",
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value=PICK_SESSION,
    help="Go on with that session; no ID: choose.",
)
@_option("--session", "session_id", metavar="ID", help="Name the new session.")
@_option("--no-session", is_flag=True, help="Keep nothing on disk; with --resume nothing more.")
@_option("--model", metavar="NAME", help="Model to ask.")
@_option("--base-url", metavar="URL", help="Endpoint of a Messages API.")
@_option("--permission-mode", type=OneOf(_MODES), help="What happens to calls that no rule decides.")
@_option("--allow", multiple=True, metavar="RULE", help="Allow calls, such as 'bash(git status:*)'. Repeatable.")
@_option("--ask", multiple=True, metavar="RULE", help="Always ask before such calls. Repeatable.")
@_option("--deny", multiple=True, metavar="RULE", help="Refuse such calls. Repeatable.")
@_option("--strategy", type=StrategyName(), help="When calls of one answer run.")
@_option("--max-steps", type=click.IntRange(min=1), metavar="N", help="Most steps of one run.")
@_option(
    "--tool-timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Time for one tool call."
)
@_option("--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Directory to work in.")
@_option("--system", metavar="TEXT", help="Replaces the built-in system prompt.")
@_option("--append-system", metavar="TEXT", help="Text behind the system prompt.")
@_option("--theme", metavar="NAME", help="Theme of the screen.")
@_option(
    "--output-format", type=OneOf(("text", "json", "stream-json")), help="With -p: what is written. Default: text."
)
@_option("--input-format", type=OneOf(("text", "stream-json")), help="With -p: what stdin holds. Default: text.")
@_option("--include-deltas", is_flag=True, help="With stream-json: also deltas and output as they come.")
@_option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Record everything to a new file.")
@_option("--replay", type=click.Path(path_type=Path), metavar="FILE", help="Watch a recording: no key, no network.")
@_option("--trust", is_flag=True, help="Apply this folder's own settings for this run, but for its allow rules.")
@_option("--verbose", is_flag=True, help="Write a debug log.")
@click.version_option(__version__, prog_name="tui-agent", message="%(prog)s %(version)s")
def launch(**values: Any) -> int:
    """Starts the agent in the current directory; PROMPT, if given, is sent at once."""
    if values["replay"] is not None:
        _refuse_beside_replay(values)
    options = _options_of(values)
    if words := memory_problem():
        say_error(f"tui-agent: {words}")
        return FAILED
    if values["theme"]:
        from .theme_validation import refuse_unknown_theme

        refuse_unknown_theme(values["theme"], Locations.of_user(os.environ))
    if values["replay"] is not None:
        from .replay_option import run_replay

        return run_replay(values["replay"], values["theme"])
    if options.print_mode:
        from .print_mode import run_print_mode

        return run_print_mode(options)
    from .interactive import run_interactive

    return run_interactive(options)


def _refuse_beside_replay(values: dict[str, Any]) -> None:
    """A recording is watched as it is; what would start or change an agent makes no sense beside it."""
    for name, value in values.items():
        if name not in ("replay", "theme") and value not in (None, False, ()):
            given = {"print_mode": "-p", "continue_last": "--continue", "session_id": "--session", "prompt": "a prompt"}
            words = given.get(name, f"--{name.replace('_', '-')}")
            raise click.UsageError(f"--replay shows a recording as it is; it excludes {words}")


def _options_of(values: dict[str, Any]) -> LaunchOptions:
    """The options as they were meant; combinations that make no sense are usage errors."""
    print_mode = bool(values["print_mode"])
    for name in ("output_format", "input_format", "include_deltas"):
        if values[name] and not print_mode:
            raise click.UsageError(f"--{name.replace('_', '-')} goes with -p")
    if values["continue_last"] and values["resume"] is not None:
        raise click.UsageError("--continue and --resume exclude each other")
    if values["session_id"] and (values["no_session"] or values["continue_last"] or values["resume"] is not None):
        raise click.UsageError("--session names a new session; it excludes --no-session, --continue and --resume")
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
    """The options that are settings, nested like the settings file."""
    plain = ("model", "base_url", "strategy", "max_steps", "tool_timeout", "append_system")
    chosen: JsonObject = {name: values[name] for name in plain if values[name] is not None}
    if values["permission_mode"]:
        chosen["permissions"] = {"mode": values["permission_mode"]}
    if values["theme"]:
        chosen["ui"] = {"theme": values["theme"]}
    return chosen


def _rules_of(values: dict[str, Any]) -> tuple[tuple[Verdict, str], ...]:
    """The rules: denials first, then questions, then allowances, so that no order of options loosens another."""
    verdicts: tuple[Verdict, ...] = ("deny", "ask", "allow")
    return tuple((verdict, text) for verdict in verdicts for text in values[verdict])
