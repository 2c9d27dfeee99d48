"""`tui-agent config`: the settings, the origin of each value, and their check."""

import json
import os
from dataclasses import replace
from pathlib import Path

import click
from pydantic_core import to_jsonable_python

from tui_agent.cli.process.controlling_terminal import say, say_json
from tui_agent.cli.screen_parts import wrong_key_settings, wrong_theme_setting
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.settings import LoadedSettings, Locations, key_names, load_settings, value_of
from tui_agent.workbench.configuration.definition_files import file_problems, own_definitions, project_definitions
from tui_agent.workbench.configuration.found_hooks import own_hooks, project_hooks, with_file_rules
from tui_agent.workbench.configuration.permission_rules import parse_rules, shadowed_rules
from tui_agent.workbench.configuration.project_trust import (
    folder_trust,
    server_file_problems,
    trust_for,
    trust_request_for,
)


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
    locations = Locations.of_user(os.environ)
    for label, stored in (
        ("settings", locations.user_file),
        ("themes", locations.user_themes_dir),
        ("sessions", locations.sessions_dir),
        ("logs", locations.log_dir),
    ):
        say(f"{label:<9} {stored}")


@config.command()
def check() -> None:
    """Check the settings.

    An error names the file, the line and the closest valid key; the exit code is then 2.
    """
    loaded = _load()
    warnings = list(loaded.ignored)
    if loaded.settings.permissions.rule_resolution == "first_match":
        warnings.extend(shadowed_rules(parse_rules(loaded.rules)))
    warnings.extend(server_file_problems(Path.cwd()))
    try:
        trust_request_for(Path.cwd(), Locations.of_user(os.environ))
    except ConfigurationError as error:
        # Without this warning the user would wait in vain for the question about this folder.
        warnings.append(f"this folder can be trusted only after its settings are corrected: {error}")
    if problem := wrong_theme_setting(loaded, Locations.of_user(os.environ), Path.cwd()):
        warnings.append(problem)
    warnings.extend(wrong_key_settings(loaded))
    if loaded.settings.hook_files:
        for found in (own_hooks(Path.cwd()), project_hooks(Path.cwd())):
            warnings.extend(f"hook not used: {problem}" for problem in (*found.problems, *found.links))
            warnings.extend(problem for file in found.files for problem in (*file.rule_problems, *file.unread))
    locations = Locations.of_user(os.environ)
    warnings.extend(file_problems((*own_definitions(locations), *project_definitions(Path.cwd(), locations))))
    files = ", ".join(str(file) for file in loaded.files) or "no file"
    say(f"settings are valid ({files})" + (", with warnings:" if warnings else ""))
    for warning in warnings:
        say(warning)


def _origin(loaded: LoadedSettings, key: str) -> str:
    """Return the origin of a value; of a table, that of its first value."""
    table = (origin for one, origin in loaded.origins.items() if one.startswith(f"{key}."))
    return loaded.origins.get(key) or next(table, "default")


def _load() -> LoadedSettings:
    locations = Locations.of_user(os.environ)
    loaded = load_settings(locations, project=Path.cwd(), trust=trust_for(Path.cwd(), locations))
    loaded = with_file_rules(loaded, Path.cwd())
    parse_rules(loaded.rules)
    left_out = folder_trust(Path.cwd(), locations).left_out
    return replace(loaded, ignored=(*loaded.unknown_variables, *loaded.ignored, *left_out))
