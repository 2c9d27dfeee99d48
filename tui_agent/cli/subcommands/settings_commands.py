"""`tui-agent config` and `permissions`: the settings, their check, and what they decide about calls."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import click
from pydantic_core import to_jsonable_python

from tui_agent.cli.process.controlling_terminal import say, say_json, say_json_line, say_problem
from tui_agent.cli.screen_entry import wrong_key_settings, wrong_theme_setting
from tui_agent.permissions import SECRET_FILES
from tui_agent.permissions.explain import PermissionDefaults, check_record, explain_record
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.trial import NO_TRIAL, TrialFacts
from tui_agent.settings import LoadedSettings, Locations, key_names, settings_mistakes, value_of
from tui_agent.workbench.built_in_tools import tool_finder
from tui_agent.workbench.configuration.effective_settings import load_effective_settings
from tui_agent.workbench.configuration.found_files import (
    file_problems,
    own_definitions,
    own_hooks,
    project_definitions,
    project_hooks,
)
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.permission_rules import parse_rules, rule_tool_names, shadowed_rules
from tui_agent.workbench.configuration.project_trust import (
    folder_trust,
    server_file_problems,
    trust_for,
)
from tui_agent.workbench.plugins.plugin_loader import load_plugins

_MOST_ERRORS = 50
"""Most mistakes that are listed."""


@click.group()
def config() -> None:
    """Show and check the settings."""


@config.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(as_json: bool) -> None:
    """Show the merged settings with the origin of each value."""
    loaded = _load()
    rows = {
        key: to_jsonable_python(value_of(loaded.settings, key)) for key in key_names() if key != "permissions.rules"
    }
    del rows["mcp"]  # Variables and headers may contain secrets.
    rows |= {f"mcp.{name}": server.shown for name, server in loaded.settings.mcp.items()}
    rules = [{"rule": [rule.verdict, rule.text], "origin": rule.origin} for rule in loaded.rules]
    if as_json:
        origins = {key: _origin(loaded, key) for key in rows}
        say_json({"values": rows, "origins": origins, "rules": rules, "ignored": list(loaded.ignored)})
        return
    width = max(len(key) for key in rows)
    for key, value in rows.items():
        say(f"{key:<{width}} = {json.dumps(value):<24} # {_origin(loaded, key)}")
    for rule in loaded.rules:
        say(f"{rule.verdict} {rule.text}  # {rule.origin}")
    for text in loaded.ignored:
        say(f"# {text}")


@config.command()
def path() -> None:
    """Show where settings, themes, sessions and logs are stored."""
    locations = Locations.of_user()
    for label, stored in (
        ("settings", locations.user_file),
        ("themes", locations.user_themes_dir),
        ("sessions", locations.sessions_dir),
        ("logs", locations.log_dir),
    ):
        say(f"{label:<9} {stored}")


@config.command()
def check() -> int:
    """Check the settings, and every file that tui-agent reads here.

    Lists all mistakes, each with its file, its line and the closest valid key. Exit code 2: some settings are wrong;
    what is only not used is a warning.
    """
    locations, here = Locations.of_user(), Path.cwd()
    errors, warnings = _mistakes(locations, here)
    loaded = None
    # Settings with mistakes cannot be merged, and would only repeat them.
    if not errors:
        loaded = _load()
        warnings = [*loaded.ignored, *warnings]
        if loaded.settings.permissions.rule_resolution == "first_match":
            warnings.extend(shadowed_rules(parse_rules(loaded.rules)))
    warnings.extend(_file_warnings(locations, here, hooks=loaded is None or loaded.settings.hook_files))
    if loaded is not None:
        if problem := wrong_theme_setting(loaded, locations, here):
            warnings.append(problem)
        warnings.extend(wrong_key_settings(loaded))
        files = ", ".join(str(file) for file in loaded.files) or "no file"
        say(f"settings are valid ({files})" + (", with warnings:" if warnings else ""))
    for error in errors[:_MOST_ERRORS]:
        say_problem(error)
    if len(errors) > _MOST_ERRORS:
        say_problem(f"and {len(errors) - _MOST_ERRORS} more mistakes")
    for warning in warnings:
        say(warning)
    return 2 if errors else 0


def _mistakes(locations: Locations, here: Path) -> tuple[list[str], list[str]]:
    """Return what makes a start fail, and what a project that is not trusted has to correct first."""
    errors, of_project, rules = settings_mistakes(locations, here, os.environ)
    is_trusted = trust_for(here, locations) is not None
    for rule in rules:
        try:
            parse_rules([rule])
        except ConfigurationError as error:
            (of_project if rule.layer == "project" else errors).append(str(error))
    if is_trusted:
        return [*errors, *of_project], []
    # Without this warning the user would wait in vain for the question about this folder.
    return errors, [f"this folder can be trusted only after its settings are corrected: {text}" for text in of_project]


def _file_warnings(locations: Locations, here: Path, *, hooks: bool) -> Iterator[str]:
    """Yield a message about each part of other files that is not used."""
    try:
        yield from server_file_problems(here)
    except ConfigurationError as error:
        yield str(error)
    if hooks:
        for found in (own_hooks(here), project_hooks(here)):
            yield from (f"hook not used: {problem}" for problem in (*found.problems, *found.links))
            yield from (problem for file in found.files for problem in (*file.rule_problems, *file.unread))
    yield from file_problems((*own_definitions(locations), *project_definitions(here, locations)))


def _origin(loaded: LoadedSettings, key: str) -> str:
    """Return the origin of a value; of a table, that of its first value."""
    table = (origin for one, origin in loaded.origins.items() if one.startswith(f"{key}."))
    return loaded.origins.get(key) or next(table, "default")


def _load() -> LoadedSettings:
    locations = Locations.of_user()
    loaded = load_effective_settings(LaunchOptions.for_command(Path.cwd()), locations)
    parse_rules(loaded.rules)
    left_out = folder_trust(Path.cwd(), locations).left_out
    return replace(loaded, ignored=(*loaded.unknown_variables, *loaded.ignored, *left_out))


@click.group()
def permissions() -> None:
    """Decide calls without running them."""


_no_trial = click.option("--no-trial", is_flag=True, help="Decide as on a machine where no trial works.")


@permissions.command(name="check")
@_no_trial
def check_calls(*, no_trial: bool) -> None:
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
    locations = Locations.of_user()
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
