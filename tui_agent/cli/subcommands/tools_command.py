"""`tui-agent tools`: the tools that the model can call."""

from pathlib import Path

import click

from tui_agent.agent.agent_tool import AGENT_SPEC
from tui_agent.cli.process.controlling_terminal import say, say_json
from tui_agent.execution.contained_calls import try_call
from tui_agent.workbench.built_in_tools import built_in_tools
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
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
