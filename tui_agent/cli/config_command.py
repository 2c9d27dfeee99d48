"""`tui-agent config`: what is set, by which layer, and whether it is right."""

import json
import os
from dataclasses import replace
from pathlib import Path

import click
from pydantic_core import to_jsonable_python

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.settings import LoadedSettings, Locations, key_names, load_settings, value_of

from .controlling_terminal import say, say_json
from .project_trust import folder_trust, trust_for, trust_request_for
from .rules_and_tools import parse_rules


@click.group()
def config() -> None:
    """Shows and checks the settings."""


@config.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def show(as_json: bool) -> None:
    """Shows the merged settings with the layer each value came from."""
    loaded = _load()
    rows = {
        key: to_jsonable_python(value_of(loaded.settings, key)) for key in key_names() if key != "permissions.rules"
    }
    rules = [{"rule": [rule.verdict, rule.text], "origin": rule.origin} for rule in loaded.rules]
    if as_json:
        origins = {key: loaded.origins.get(key, "default") for key in rows}
        say_json({"values": rows, "origins": origins, "rules": rules, "ignored": list(loaded.ignored)})
        return
    width = max(len(key) for key in rows)
    for key, value in rows.items():
        say(f"{key:<{width}} = {json.dumps(value):<24} # {loaded.origins.get(key, 'default')}")
    for rule in loaded.rules:
        say(f"{rule.verdict} {rule.text}  # {rule.origin}")
    for words in loaded.ignored:
        say(f"# {words}")


@config.command()
def path() -> None:
    """Shows where the files are."""
    places = Locations.of_user(os.environ)
    for label, place in (
        ("settings", places.user_file),
        ("themes", places.user_themes_dir),
        ("sessions", places.sessions_dir),
        ("logs", places.log_dir),
    ):
        say(f"{label:<9} {place}")


@config.command()
def check() -> None:
    """Checks the settings; an error names file, line and the nearest key, and the exit code is 2."""
    loaded = _load()
    files = ", ".join(str(file) for file in loaded.files) or "no file"
    say(f"settings are fine ({files})")
    for words in loaded.ignored:
        say(words)
    try:
        trust_request_for(Path.cwd(), Locations.of_user(os.environ))
    except ConfigurationError as error:
        # The question about a folder is not asked while its settings cannot be read.
        say(f"this folder cannot be trusted before its settings are right: {error}")
    from .theme_validation import (
        wrong_theme_setting,  # The import takes a tenth of a second; other commands do not need it.
    )

    if words := wrong_theme_setting(loaded, Locations.of_user(os.environ)):
        say(words)


def _load() -> LoadedSettings:
    locations = Locations.of_user(os.environ)
    loaded = load_settings(locations, project=Path.cwd(), trust=trust_for(Path.cwd(), locations))
    parse_rules(loaded.rules)
    left_out = folder_trust(Path.cwd(), locations).left_out
    return replace(loaded, ignored=(*loaded.unknown_variables, *loaded.ignored, *left_out))
