"""`tui-agent tools`, `models` and `plugins`: what a start here has."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

import click

from tui_agent.agent.agent_tool import AGENT_SPEC
from tui_agent.cli.process.controlling_terminal import say, say_error, say_json
from tui_agent.cli.screen_entry import examine_plugins
from tui_agent.execution.contained_calls import try_call
from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.provider import ModelInfo
from tui_agent.protocol.visible_text import escaped
from tui_agent.providers.model_catalog import model_info
from tui_agent.settings import Locations, Settings
from tui_agent.workbench.built_in_tools import built_in_tools
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.model_list import known_profiles, listed_models
from tui_agent.workbench.configuration.named_endpoints import plugin_of, target_of
from tui_agent.workbench.plugins.plugin_entries import GROUPS, Plugin, unknown_references
from tui_agent.workbench.plugins.plugin_loader import load_plugins


@click.group()
def tools() -> None:
    """Show the tools."""


@tools.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array, with schemas.")
def list_tools(as_json: bool) -> None:
    """List the tools, those of plugins included.

    Prints name, effects, whether calls run in parallel, and description. A tool decides on effects and parallel calls
    by the arguments; shown is its decision for a call without them.
    """
    _, loaded = prepare_settings(LaunchOptions.for_command(Path.cwd()))
    rows = [
        {
            "name": tool.name,
            "read_only": try_call(tool.is_read_only, {}) is True,
            "concurrency_safe": try_call(tool.is_concurrency_safe, {}) is True,
            "description": tool.spec.description,
            "input_schema": tool.spec.input_schema,
        }
        for tool in (*built_in_tools(Path.cwd()), *load_plugins(loaded.settings, Path.cwd()).tools)
    ]
    agent = {"name": AGENT_SPEC.name, "read_only": False, "concurrency_safe": True}
    rows.append({**agent, "description": AGENT_SPEC.description, "input_schema": AGENT_SPEC.input_schema})
    if as_json:
        say_json(rows)
        return
    for row in rows:
        traits = ("read-only" if row["read_only"] else "has effects") + (
            ", parallel" if row["concurrency_safe"] else ""
        )
        say(f"{row['name']!s:<12} {traits:<22} {str(row['description']).splitlines()[0]}")


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


@click.group()
def plugins() -> None:
    """Show the plugins of installed packages."""


@plugins.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_plugins(as_json: bool) -> None:
    """List the plugins with package, version, directory, and the reason if a start here does not use one.

    They are loaded as at a start, except those in `plugins.disabled`.
    """
    _, loaded = prepare_settings(LaunchOptions.for_command(Path.cwd()))
    found = examine_plugins(loaded.settings, Path.cwd(), Locations.of_user()).plugins
    if as_json:
        say_json([_record(plugin) for plugin in found])
        return
    rows = [
        (one.entry.kind, one.entry.name, f"{one.entry.distribution} {one.entry.version}", _state(one)) for one in found
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, plugin in zip(rows, found, strict=True):
        words = "  ".join(f"{text:<{width}}" for text, width in zip(row[:3], widths, strict=False))
        say(" ".join(f"{words}  {plugin.entry.location}  {row[3]}".splitlines()))
    if not found:
        say(f"no installed package has an entry point in {', '.join(GROUPS)}")
    for text in unknown_references(loaded.settings):
        say(f"# `plugins.disabled` names {text}, which is not installed")


def _state(plugin: Plugin) -> str:
    if plugin.is_disabled:
        return "off: `plugins.disabled`"
    return f"not used: {plugin.problem}" if plugin.problem else "in use"


def _record(plugin: Plugin) -> dict[str, object]:
    entry = plugin.entry
    return {
        "kind": entry.kind,
        "name": entry.name,
        "package": entry.distribution,
        "version": entry.version,
        "location": str(entry.location),
        "target": entry.target,
        "state": "disabled" if plugin.is_disabled else "not_used" if plugin.problem else "used",
        "reason": plugin.problem,
    }
