"""Small real tools with the names and subjects of the built-in ones, for tests of rooms that may not import `tools`."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tui_agent.permissions import is_read_only_command
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import (
    CommandSubject,
    PathSubject,
    Subject,
    Tool,
    ToolContext,
    ToolResult,
    ToolSpec,
    UrlSubject,
)

Intent = Literal["read", "write", "search"]


class _CommandArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    command: str
    sandbox: bool = True
    run_in_background: bool = False


class _PathArguments(BaseModel):
    path: str = "."


class _SampleTool(Tool):
    """Tool that only reports its subject."""

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(name=name, description=f"the {name} tool", input_schema={"type": "object"})

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult.of_text(f"{self.name} ran")


class SampleBash(_SampleTool):
    """Tool that runs nothing; its subject is its command."""

    arguments_model = _CommandArguments

    def __init__(self, root: Path) -> None:
        super().__init__("bash")
        self._root = root

    def is_read_only(self, arguments: JsonObject) -> bool:
        return is_read_only_command(arguments["command"], self._root)

    def subject(self, arguments: JsonObject) -> Subject:
        leaves, in_background = not arguments.get("sandbox", True), arguments.get("run_in_background", False)
        return CommandSubject(arguments["command"], leaves_sandbox=leaves, in_background=in_background)


class SampleFileTool(_SampleTool):
    """Tool that touches nothing; its subject is its path."""

    arguments_model = _PathArguments

    def __init__(self, name: str, intent: Intent) -> None:
        super().__init__(name)
        self._intent: Intent = intent

    def is_read_only(self, arguments: JsonObject) -> bool:
        return self._intent != "write"

    def subject(self, arguments: JsonObject) -> Subject:
        return PathSubject(arguments.get("path", "."), self._intent)


class SampleFetch(_SampleTool):
    """Tool that fetches nothing; its subject is its address."""

    def is_read_only(self, arguments: JsonObject) -> bool:
        return True

    def subject(self, arguments: JsonObject) -> Subject:
        return UrlSubject(arguments["url"])


class SamplePlainTool(_SampleTool):
    """Tool without a subject."""

    def __init__(self, name: str, *, read_only: bool = False) -> None:
        super().__init__(name)
        self._read_only = read_only

    def is_read_only(self, arguments: JsonObject) -> bool:
        return self._read_only


def sample_tools(root: Path) -> dict[str, Tool]:
    """Return the tools by name: bash, read, grep, glob, write, edit, fetch, todo."""
    intents: dict[str, Intent] = {
        "read": "read",
        "grep": "search",
        "glob": "search",
        "write": "write",
        "edit": "write",
    }
    files: list[Tool] = [SampleFileTool(name, intent) for name, intent in intents.items()]
    others: list[Tool] = [SampleBash(root), SampleFetch("fetch"), SamplePlainTool("todo", read_only=True)]
    return {tool.name: tool for tool in (*files, *others)}
