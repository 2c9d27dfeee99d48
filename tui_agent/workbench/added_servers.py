"""Tool servers that a front end adds to an open session, beside those of the settings."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.agent.loop_config import UpdateTools
from tui_agent.execution import ToolRegistry
from tui_agent.protocol.prompt_command import PromptCommand
from tui_agent.protocol.tool_server import ToolServer

from .build_engine import Engine
from .configuration.launch_options import LaunchOptions
from .session_servers import SessionServers

if TYPE_CHECKING:
    # Imported at run time only once a front end adds servers.
    from tui_agent.mcp.server_pool import ConfiguredServer


class AddedServers:
    """Starts servers of a front end, and keeps them until the session is closed."""

    def __init__(self, engine: Engine, options: LaunchOptions, tasks: asyncio.TaskGroup) -> None:
        self.servers: list[SessionServers] = []
        """The servers that run."""
        self._engine = engine
        self._options = options
        self._tasks = tasks
        self._over = asyncio.Event()

    @property
    def treatment(self) -> str:
        """Treatment of an editor's servers by the settings: `ask`, `allow` or `deny`."""
        return self._engine.loaded.settings.permissions.editor_servers

    @property
    def commands(self) -> Sequence[PromptCommand]:
        """Their prompts."""
        return tuple(command for servers in self.servers for command in servers.commands)

    def close(self) -> None:
        """Stop them."""
        self._over.set()

    async def start(self, servers: Mapping[str, ToolServer]) -> Sequence[str]:
        """Start servers, and return messages about those that are not used."""
        from tui_agent.mcp.server_config import key_variable
        from tui_agent.mcp.server_pool import ConfiguredServer

        known = self._engine.servers
        taken: set[str] = set() if known is None else set(known.tasks)
        notes: list[str] = []
        used: list[ConfiguredServer] = []
        for name, server in servers.items():
            if name in taken:
                notes.append(f"The editor's tool server {name} is not used, because you have one of this name.")
            elif (variable := key_variable(server)) is not None:
                notes.append(f"The editor's tool server {name} is not used: no such server gets {variable}.")
            else:
                used.append(ConfiguredServer(name, server, "the editor"))
        if used:
            started = asyncio.Event()
            self._tasks.create_task(self._keep(tuple(used), started))
            await started.wait()
        return notes

    async def _keep(self, servers: "tuple[ConfiguredServer, ...]", started: asyncio.Event) -> None:
        """Run servers until the session is closed, and let the agent use their tools."""
        from .tool_servers import open_servers, server_parts

        engine = self._engine
        parts = server_parts(self._options.cwd, engine.bus, engine.locations)
        # Their schemas are never loaded on demand: only one list of servers can be.
        async with open_servers(servers, parts, engine.policy, lambda: sys.maxsize) as pool:
            if pool is not None:
                before = engine.loop.config.update_tools
                both = pool.update if before is None else partial(_update_both, before, pool.update)
                engine.loop.config.update_tools = both
                self.servers.append(SessionServers(pool, engine.definitions.knows))
            started.set()
            await self._over.wait()


async def _update_both(first: UpdateTools, second: UpdateTools, tools: ToolRegistry) -> None:
    await first(tools)
    await second(tools)
