"""`tui-agent permissions`: permission decisions without running the calls."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from tui_agent.cli.process.controlling_terminal import say, say_json_line
from tui_agent.permissions import SECRET_FILES
from tui_agent.permissions.explain import PermissionDefaults, check_record, explain_record
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.trial import NO_TRIAL, TrialFacts
from tui_agent.settings import Locations
from tui_agent.workbench.built_in_tools import tool_finder
from tui_agent.workbench.configuration.effective_settings import load_effective_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.permission_rules import parse_rules, rule_tool_names
from tui_agent.workbench.configuration.project_trust import folder_trust
from tui_agent.workbench.plugins.plugin_loader import load_plugins


@click.group()
def permissions() -> None:
    """Decide calls without running them."""


_no_trial = click.option("--no-trial", is_flag=True, help="Decide as on a machine where no trial works.")


@permissions.command()
@_no_trial
def check(*, no_trial: bool) -> None:
    """Decide the calls on stdin.

    Reads JSON lines and prints one decision for each, in order.

    \b
    In:  {"tool":"bash","input":{"command":"git status"},"mode":"ask",
          "rules":[["allow","bash(git status:*)"]],"cwd":"/dir"}
    Out: {"decision":"allow","source":"rule","reason":"…","parts":[…],"place":"outside"}

    Rules, mode and cwd are optional. A malformed line gets a decision, too: deny, with source "invalid". No process is
    started. The place of a shell command is outside, trial or nowhere: "allow" with "trial" means that it runs at once,
    and that what it changes is decided afterwards.
    """
    find_tool, defaults = _setup(no_trial=no_trial)
    for line in sys.stdin.buffer:
        try:
            record: object = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        answer = check_record(record, find_tool=find_tool, defaults=defaults)
        say_json_line(json.dumps(answer, separators=(",", ":")))


@permissions.command()
@click.argument("tool")
@click.argument("input_json")
@_no_trial
def explain(tool: str, input_json: str, *, no_trial: bool) -> None:
    """Explain the decision about a call.

    Prints every rule that was checked, in order, and what would change the decision.
    """
    try:
        arguments: object = json.loads(input_json)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise click.UsageError(f"the input is not valid JSON: {reason}") from error
    find_tool, defaults = _setup(no_trial=no_trial)
    say(explain_record({"tool": tool, "input": arguments}, find_tool=find_tool, defaults=defaults))


def _setup(*, no_trial: bool) -> tuple[Callable[[str], Tool | None], PermissionDefaults]:
    """Return a function that finds a tool by its name, and what a start here would decide by."""
    locations = Locations.of_user(os.environ)
    loaded = load_effective_settings(LaunchOptions.for_command(Path.cwd()), locations)
    permissions, settings = loaded.settings.permissions, loaded.settings
    # As if it works: no process is started to test it.
    trial = TrialFacts(setting=settings.sandbox, backend="overlay", network=settings.sandbox_network)
    defaults = PermissionDefaults(
        workspace=Path.cwd(),
        layers=parse_rules(loaded.rules),
        mode=permissions.mode,
        private_paths=(locations.config_dir, locations.state_dir),
        is_trusted=folder_trust(Path.cwd(), locations).is_trusted,
        tool_names=rule_tool_names(),
        trial=NO_TRIAL if no_trial else trial,
        secret_files=SECRET_FILES if permissions.secret_files is None else permissions.secret_files,
    )
    return tool_finder(Path.cwd(), load_plugins(loaded.settings, Path.cwd()).tools), defaults
