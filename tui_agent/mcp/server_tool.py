"""A tool of a server, as the agent sees it."""

import json
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Timeout, Tool, ToolContext, ToolResult, ToolSpec

from .tool_listing import ListedTool

CallTool: TypeAlias = Callable[[ListedTool, JsonObject, ToolContext], Awaitable[ToolResult]]


class ServerTool(Tool):
    """A tool of a server. Whatever the server claims about it, each call counts as one that changes something."""

    def __init__(self, listed: ListedTool, call: CallTool, seconds: float) -> None:
        """
        Args:
            listed: the tool, checked.
            call: makes the call.
            seconds: time limit of a call.
        """
        self.spec = ToolSpec(name=listed.name, description=listed.description, input_schema=listed.schema)
        self.listed = listed
        """The tool in the server's list."""
        self._call = call
        self._seconds = seconds

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Make the call."""
        return await self._call(self.listed, arguments, context)

    def timeout(self, arguments: JsonObject) -> Timeout:
        """Return the time limit of the server."""
        return self._seconds

    def summarise(self, arguments: JsonObject) -> str:
        """Return the arguments in one line."""
        if len(arguments) == 1 and isinstance(only := next(iter(arguments.values())), str):
            return only
        return json.dumps(arguments, ensure_ascii=False, default=str) if arguments else ""
