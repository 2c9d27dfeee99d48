"""All servers of a session, and their tools among those of the agent; too many are searched by `find_tools`."""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import AgentEvent, McpStatus, Noticed, Warned
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.protocol.tool import Timeout, Tool, ToolContext, ToolResult, ToolSpec

from .server_parts import ServerParts
from .server_task import ServerTask
from .tool_listing import PREFIX, ListedTool

CallTool: TypeAlias = Callable[[ListedTool, JsonObject, ToolContext], Awaitable[ToolResult]]


class ServerTool(Tool):
    """A tool of a server. Whatever the server claims about it, each call counts as one that changes something."""

    def __init__(self, listed: ListedTool, call: CallTool, seconds: float) -> None:
        self.spec = ToolSpec(name=listed.name, description=listed.description, input_schema=listed.schema)
        self.listed = listed
        """The tool in the server's list."""
        self._call = call
        self._seconds = seconds

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        return await self._call(self.listed, arguments, context)

    def timeout(self, arguments: JsonObject) -> Timeout:
        return self._seconds

    def summarise(self, arguments: JsonObject) -> str:
        if len(arguments) == 1 and isinstance(only := next(iter(arguments.values())), str):
            return only
        return json.dumps(arguments, ensure_ascii=False, default=str) if arguments else ""


MOST_FOUND = 10

_SPEC = ToolSpec(
    name="find_tools",
    description=(
        "Search the tools of the connected MCP servers, which are too many to list, by words in their names and "
        "descriptions. The tools it returns can be called from the next response on."
    ),
    input_schema={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "Words, such as: create issue."}},
        "required": ["query"],
    },
)


class FindTools(Tool):
    """Finds tools and loads their schemas. Only tui-agent's own lists are searched; nothing is called."""

    spec = _SPEC

    def __init__(self, tools: Callable[[], Sequence[ListedTool]], load: Callable[[Iterable[str]], object]) -> None:
        self._tools = tools
        self._load = load

    def is_read_only(self, arguments: JsonObject) -> bool:
        return True

    def summarise(self, arguments: JsonObject) -> str:
        return str(arguments.get("query", ""))

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        words = set(re.findall(r"\w+", str(arguments["query"]).casefold()))
        if not words:
            raise ToolError("The query has no words.")
        scored = [(_score(tool, words), tool) for tool in self._tools()]
        found = [tool for score, tool in sorted(scored, key=lambda one: (-one[0], one[1].name)) if score][:MOST_FOUND]
        if not found:
            servers = ", ".join(sorted({tool.server for _, tool in scored}))
            return ToolResult.of_text(f"No tool matches. The servers are {servers}.")
        self._load(tool.name for tool in found)
        lines = [f"{tool.name}: {tool.description[:200]}" for tool in found]
        return ToolResult.of_text("\n".join(["You can call these tools from your next response on:", *lines]))


def _score(tool: ListedTool, words: set[str]) -> int:
    name, description = tool.name.casefold(), tool.description.casefold()
    return sum(3 * (word in name) + (word in description) for word in words)


CHARACTERS_PER_TOKEN = 4
FIRST_WAIT = 10.0
"""Seconds that the first request waits for a server whose settings do not say how long it may take."""
LARGEST_SHARE = 0.1
"""Share of the context window that schemas of servers may take; beyond it they are loaded on demand."""


class Tools(Protocol):
    """The tools of an agent."""

    def add(self, tool: Tool) -> object:
        """Add a tool."""
        ...

    def remove(self, name: str) -> None:
        """Remove a tool."""
        ...

    def find(self, name: str) -> Tool | None:
        """Return the tool of this name; None if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class ConfiguredServer:
    """A server of the settings."""

    name: str
    server: ToolServer
    origin: str
    """File, with its line if known, that configures it."""


class ServerPool:
    """The servers of a session. They start in the background; `update` brings their tools to the agent."""

    def __init__(
        self,
        servers: Iterable[ConfiguredServer],
        parts: ServerParts,
        *,
        window: Callable[[], int],
        tool_changed: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Store the servers, those that are not enabled included; start none.

        `window` returns the tokens of the model's context window; `tool_changed` is called with the name of a tool
        whose description or schema changed.
        """
        self.configured = tuple(servers)
        self.tasks: Mapping[str, ServerTask] = {
            one.name: ServerTask(one.name, one.server, one.origin, parts)
            for one in self.configured
            if one.server.enabled
        }
        """The servers that run, by name."""
        self._publish = parts.publish
        self._window = window
        self._tool_changed = tool_changed
        self._given: dict[str, ServerTool] = {}
        self._loaded: set[str] = set()
        self._seen: dict[str, str] = {}
        self._listed: set[str] = set()
        self._has_finder = False
        self._finder = FindTools(self._all_tools, self._loaded.update)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["ServerPool"]:
        """Start the servers, and stop them in the end."""
        try:
            async with asyncio.TaskGroup() as group:
                for task in self.tasks.values():
                    self._publish(McpStatus(server=task.name, state="connecting"))
                owners = [group.create_task(task.run()) for task in self.tasks.values()]
                try:
                    yield self
                finally:
                    for task, owner in zip(self.tasks.values(), owners, strict=True):
                        task.stop()
                        owner.cancel()
        except BaseExceptionGroup as group:
            # The owners never fail, so this is an error of the caller, which expects no group.
            raise group.exceptions[0] from None

    async def settled(self) -> None:
        """Wait until each server is ready or has failed, no longer than `FIRST_WAIT` or the `startup_timeout` that its
        settings choose, from the start. One that still starts is reported."""
        for task in self.tasks.values():
            is_chosen = "startup_timeout" in task.server.model_fields_set
            left = task.began + (task.server.startup_timeout if is_chosen else FIRST_WAIT) - time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(left, 0.0)):
                    await task.settled.wait()
            task.note_waiting()

    async def update(self, tools: Tools) -> None:
        """Wait for `settled`, give the agent the tools that the servers offer now, and remove those that are gone.

        If all tools together are too many, the agent gets `find_tools` and those that were found with it.
        """
        await self.settled()
        self._note_changes()
        wanted: dict[str, ListedTool] = {tool.name: tool for tool in self._all_tools()}
        deferred = self._is_deferred(wanted.values())
        if deferred:
            wanted = {name: tool for name, tool in wanted.items() if name in self._loaded}
        for name in [name for name, given in self._given.items() if wanted.get(name) != given.listed]:
            del self._given[name]
            tools.remove(name)
        for name, listed in wanted.items():
            # A tool of the agent's own keeps its name.
            if name not in self._given and tools.find(name) is None:
                task = self.tasks[listed.server]
                self._given[name] = ServerTool(listed, task.call, task.server.timeout)
                tools.add(self._given[name])
        # Not looked up: a run with other tools hides it.
        if deferred and not self._has_finder:
            tools.add(self._finder)
        elif not deferred and self._has_finder:
            tools.remove(self._finder.name)
        self._has_finder = deferred

    def withdraw(self, tools: Tools) -> None:
        """Remove everything that `update` added."""
        for name in (*self._given, *([self._finder.name] if self._has_finder else [])):
            tools.remove(name)
        self._given.clear()
        self._has_finder = False

    def _all_tools(self) -> Sequence[ListedTool]:
        return [tool for name in sorted(self.tasks) for tool in self.tasks[name].tools]

    def _is_deferred(self, tools: Iterable[ListedTool]) -> bool:
        size = sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.schema)) for tool in tools)
        return size / CHARACTERS_PER_TOKEN > LARGEST_SHARE * self._window()

    def _note_changes(self) -> None:
        """Publish which tools came, went or changed since a server's first list."""
        for name, task in self.tasks.items():
            if task.state not in ("ready", "degraded"):
                continue
            now = {tool.name: tool.digest for tool in task.tools}
            mine = {tool for tool in self._seen if tool.startswith(f"{PREFIX}{name}__")}
            if name in self._listed:
                changed = [tool for tool in mine & now.keys() if now[tool] != self._seen[tool]]
                self._report_changes(name, sorted(now.keys() - mine), sorted(mine - now.keys()), sorted(changed))
            self._listed.add(name)
            # Tools that went stay known: one that comes back must be the same.
            self._seen.update(now)

    def _report_changes(self, server: str, new: list[str], gone: list[str], changed: list[str]) -> None:
        events: list[AgentEvent] = []
        if new:
            events.append(Noticed(code="tool_added", text=f"Server {server} offers new tools: {', '.join(new)}."))
        if changed:
            text = (
                f"Server {server} changed what it says about {', '.join(changed)}. What you allowed for this session "
                "asks again."
            )
            events.append(Warned(code="tool_changed", text=text))
        gone = [tool for tool in gone if tool in self._given]
        if gone:
            events.append(Noticed(code="tool_removed", text=f"Server {server} no longer offers {', '.join(gone)}."))
        for tool in changed:
            self._tool_changed(tool)
        for event in events:
            self._publish(event)


class KeptServers:
    """Keeps a pool open in a task of its own, in the event loop of the run that uses it."""

    def __init__(
        self,
        servers: Sequence[ConfiguredServer],
        parts: Callable[[], ServerParts],
        *,
        window: Callable[[], int],
        tool_changed: Callable[[str], object],
    ) -> None:
        """Store the arguments, as of `ServerPool`; `parts` is called at each start."""
        self._servers = servers
        self._parts = parts
        self._window = window
        self._tool_changed = tool_changed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool: ServerPool | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._over = asyncio.Event()

    async def update(self, tools: Tools) -> None:
        """Give the agent the tools that the servers offer now; the first time, start the servers."""
        loop = asyncio.get_running_loop()
        if self._pool is None or self._loop is not loop:
            if self._pool is not None:
                # Its loop has ended, and the servers with it.
                self._pool.withdraw(tools)
            pool = ServerPool(self._servers, self._parts(), window=self._window, tool_changed=self._tool_changed)
            started, self._over = asyncio.Event(), asyncio.Event()
            # Entered by hand because the servers outlive this run. Its one task never raises.
            self._tasks = await asyncio.TaskGroup().__aenter__()
            self._tasks.create_task(_keep(pool, started, self._over))
            await started.wait()
            self._loop, self._pool = loop, pool
        await self._pool.update(tools)

    async def close(self) -> None:
        """Stop the servers if they run in this event loop."""
        if self._tasks is None or self._loop is not asyncio.get_running_loop():
            return
        tasks, self._tasks, self._loop = self._tasks, None, None
        self._over.set()
        await tasks.__aexit__(None, None, None)


async def _keep(pool: ServerPool, started: asyncio.Event, over: asyncio.Event) -> None:
    async with pool.running():
        started.set()
        await over.wait()
