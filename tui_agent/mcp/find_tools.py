"""The tool with which the model finds tools of servers whose schemas are too large to be in every request."""

import re
from collections.abc import Callable, Iterable, Sequence

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult, ToolSpec

from .tool_listing import ListedTool

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
        """
        Args:
            tools: returns all tools of servers.
            load: called with the names of the tools that were found.
        """
        self._tools = tools
        self._load = load

    def is_read_only(self, arguments: JsonObject) -> bool:
        """Return True: the search changes nothing."""
        return True

    def summarise(self, arguments: JsonObject) -> str:
        """Return the words."""
        return str(arguments.get("query", ""))

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Return the best matches and load them."""
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
