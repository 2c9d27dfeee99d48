"""`tui-agent config`: the settings, the origin of each value, and their check."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
from pydantic_core import to_jsonable_python

from tui_agent.cli.interactive import wrong_key_settings, wrong_theme_setting
from tui_agent.cli.process.controlling_terminal import say, say_json, say_problem
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.settings import LoadedSettings, Locations, key_names, settings_mistakes, value_of
from tui_agent.workbench.configuration.definition_files import file_problems, own_definitions, project_definitions
from tui_agent.workbench.configuration.effective_settings import load_effective_settings
from tui_agent.workbench.configuration.found_hooks import own_hooks, project_hooks
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.permission_rules import parse_rules, shadowed_rules
from tui_agent.workbench.configuration.project_trust import (
    folder_trust,
    server_file_problems,
    trust_for,
)

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
