"""`tui-agent models`: lists the models that can be chosen here."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

import click

from tui_agent.cli.process.controlling_terminal import say, say_error, say_json
from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.provider import ModelInfo
from tui_agent.protocol.visible_text import escaped
from tui_agent.providers.model_catalog import model_info
from tui_agent.settings import Settings
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.model_list import known_profiles, listed_models
from tui_agent.workbench.configuration.named_endpoints import plugin_of, target_of
from tui_agent.workbench.plugins.plugin_loader import load_plugins


@click.group()
def models() -> None:
    """Show the models of the configured endpoints."""


@models.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_models(as_json: bool) -> None:
    """List the models with window and price, grouped by endpoint; ● is the model of a start here.

    The endpoint of this model is asked for the models that it lists.
    """
    # Imports the engine, which no other command of this group needs.
    from tui_agent.workbench.session_models import ask_for_models

    _, loaded = prepare_settings(LaunchOptions.for_command(Path.cwd()))
    settings = loaded.settings
    offered: Mapping[str, Sequence[str]] = {}
    try:
        offered = asyncio.run(ask_for_models(settings))
    except ProviderError as error:
        say_error(f"{error.summary}. The configured models are listed.")
    found = listed_models(settings, _current(settings), offered)
    if as_json:
        say_json([asdict(model) for model in found])
        return
    width = max(len(escaped(model.name)) for model in found)
    for provider, group in groupby(found, key=lambda model: model.provider):
        say(escaped(provider))
        for model in group:
            mark = "●" if model.is_current else " "
            say(f"  {mark} {escaped(model.name):<{width}}  {model.window_text:>16}  {model.price}")
    if rest := known_profiles(settings):
        say(f"\nKnown without configuration, as PROVIDER/MODEL: {', '.join(rest)}")


def _current(settings: Settings) -> ModelInfo:
    """Return the facts about the model of a start here."""
    if (plugin := plugin_of(settings, os.environ)) is not None:
        return load_plugins(settings, Path.cwd()).provider(plugin, settings.model).model
    target = target_of(settings, os.environ)
    return model_info(settings.model) if target is None else target.info
