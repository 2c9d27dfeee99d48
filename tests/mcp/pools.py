"""A pool of servers for tests, and what it publishes."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tui_agent.execution import ToolRegistry
from tui_agent.mcp.server_parts import NO_QUESTIONS, ServerParts, ServerQuestions
from tui_agent.mcp.server_pool import ConfiguredServer, ServerPool
from tui_agent.mcp.server_task import ServerTask
from tui_agent.protocol.events import AgentEvent
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.protocol.tool import ToolContext, ToolResult, ToolUpdate
from tui_agent.tools.processes.command_launcher import HelperTree

SERVERS = Path(__file__).with_name("servers")


def hostile(*flags: str, **settings: Any) -> ToolServer:
    """The server written by hand, with some of its flags."""
    values = {"startup_timeout": 60.0, **settings}  # A busy machine takes long to load the SDK.
    return ToolServer(command=sys.executable, args=(str(SERVERS / "hostile.py"), *flags), **values)


class Running:
    """A pool that runs, the tools of an agent, and everything that was published."""

    def __init__(self, pool: ServerPool, events: list[AgentEvent], changed: list[str]) -> None:
        self.pool = pool
        self.events = events
        self.changed = changed
        self.tools = ToolRegistry()
        self.reports: list[ToolUpdate] = []

    def task(self, name: str = "h") -> ServerTask:
        return self.pool.tasks[name]

    async def update(self) -> tuple[str, ...]:
        await self.pool.update(self.tools)
        return self.tools.names

    async def call(self, tool: str, arguments: JsonObject | None = None) -> ToolResult:
        return await self.call_of(f"mcp__h__{tool}", arguments)

    async def call_of(self, tool: str, arguments: JsonObject | None = None) -> ToolResult:
        found = self.tools.find(tool)
        assert found is not None, f"{tool} is not among {self.tools.names}"
        return await found.execute(arguments or {}, ToolContext("call", found.name, report=self.reports.append))

    def published(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.type == kind]


@asynccontextmanager
async def running(
    *servers: ToolServer | tuple[str, ToolServer],
    window: int = 200_000,
    questions: ServerQuestions = NO_QUESTIONS,
    secrets: dict[str, str] | None = None,
    root: Path = Path("/tmp"),
    tokens: Path | None = None,
) -> AsyncGenerator[Running]:
    """Run servers; one without a name is called `h`."""
    events: list[AgentEvent] = []
    changed: list[str] = []
    parts = ServerParts(
        environment={"PATH": os.environ["PATH"]},
        secrets=secrets or {},
        root=root,
        publish=events.append,
        questions=questions,
        new_tree=partial(HelperTree, root),
        tokens=tokens,
    )
    named = [one if isinstance(one, tuple) else ("h", one) for one in servers]
    configured = [ConfiguredServer(name, server, "a test") for name, server in named]
    pool = ServerPool(configured, parts, window=lambda: window, tool_changed=changed.append)
    async with pool.running():
        made = Running(pool, events, changed)
        await made.update()
        yield made


async def until(condition: Callable[[], object] | Callable[[], Awaitable[object]]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(60):
        while True:
            found = condition()
            if await found if isinstance(found, Awaitable) else found:
                return
            await asyncio.sleep(0.01)
