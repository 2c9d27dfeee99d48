"""Tool servers that a front end adds to an open session, beside those of the settings."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from tui_agent.agent.loop_config import UpdateTools
from tui_agent.execution import ToolRegistry
from tui_agent.mcp.server_config import key_variable
from tui_agent.mcp.server_pool import ConfiguredServer
from tui_agent.protocol.tool_server import ToolServer
from tui_agent.settings import Locations

from .tool_servers import open_servers, server_parts
from .workbench import Workbench


async def add_servers(
    bench: Workbench, servers: Mapping[str, ToolServer], tasks: asyncio.TaskGroup, over: asyncio.Event
) -> Sequence[str]:
    """Start servers that run in a task of their own until an event, and return messages about those not used."""
    notes: list[str] = []
    used: list[ConfiguredServer] = []
    for name, server in servers.items():
        if name in bench.servers.tasks:
            notes.append(f"The editor's tool server {name} is not used, because you have one of this name.")
        elif (variable := key_variable(server)) is not None:
            notes.append(f"The editor's tool server {name} is not used: no such server gets {variable}.")
        else:
            used.append(ConfiguredServer(name, server, "the editor"))
    if used:
        started = asyncio.Event()
        tasks.create_task(_keep(bench, tuple(used), started, over))
        await started.wait()
    return notes


async def _keep(
    bench: Workbench, servers: tuple[ConfiguredServer, ...], started: asyncio.Event, over: asyncio.Event
) -> None:
    """Run servers until an event, and let the agent use their tools."""
    parts = server_parts(bench.options.cwd, bench.events, Locations.of_user())
    # Their schemas are never loaded on demand: only one list of servers can be.
    async with open_servers(servers, parts, bench.policy, lambda: sys.maxsize) as pool:
        if pool is not None:
            config = bench.agent.config
            before = config.update_tools
            config.update_tools = pool.update if before is None else partial(_update_both, before, pool.update)
            bench.servers.join(pool)
        started.set()
        await over.wait()


async def _update_both(first: UpdateTools, second: UpdateTools, tools: ToolRegistry) -> None:
    await first(tools)
    await second(tools)
