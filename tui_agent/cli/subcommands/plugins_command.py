"""`tui-agent plugins`: the tools, providers, hooks and themes that installed packages add."""

from pathlib import Path

import click

from tui_agent.cli.interactive import examine_plugins
from tui_agent.cli.process.controlling_terminal import say, say_json
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.plugins.plugin_entries import GROUPS, Plugin, unknown_references


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
