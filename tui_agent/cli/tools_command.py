"""`tui-agent tools`: what the model may use."""

from pathlib import Path

import click

from tui_agent.agent.agent_tool import AGENT_SPEC

from .controlling_terminal import say, say_json
from .rules_and_tools import built_in_tools


@click.group()
def tools() -> None:
    """Shows the tools."""


@tools.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="With schemas, as one JSON array.")
def list_tools(as_json: bool) -> None:
    """Lists the tools: name, read-only, concurrency-safe, what it does.

    Both properties are decided for each call; shown is the answer for a call without arguments.
    """
    rows = [
        {
            "name": tool.name,
            "read_only": tool.is_read_only({}),
            "concurrency_safe": tool.is_concurrency_safe({}),
            "description": tool.spec.description,
            "input_schema": tool.spec.input_schema,
        }
        for tool in built_in_tools(Path.cwd())
    ]
    agent = {"name": AGENT_SPEC.name, "read_only": False, "concurrency_safe": True}
    rows.append({**agent, "description": AGENT_SPEC.description, "input_schema": AGENT_SPEC.input_schema})
    if as_json:
        say_json(rows)
        return
    for row in rows:
        words = ("read-only" if row["read_only"] else "has effects") + (", parallel" if row["concurrency_safe"] else "")
        say(f"{row['name']!s:<8} {words:<22} {str(row['description']).splitlines()[0]}")
