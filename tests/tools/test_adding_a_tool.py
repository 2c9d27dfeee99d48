"""Adding a built-in tool takes one class and its line in the registry."""

import ast
from pathlib import Path

import pytest
from pydantic import Field

from tui_agent import Agent, ScriptedProvider, Workspace, call, default_tools, reply
from tui_agent.protocol import ToolContext, ToolResult
from tui_agent.protocol.tool import PathSubject, Subject
from tui_agent.tools import BUILT_IN_TOOLS, Arguments, ToolSetup, TypedTool


class SymbolsArguments(Arguments):
    """The file to list."""

    path: str = Field(description="Python file.")


class SymbolsTool(TypedTool[SymbolsArguments]):
    """Lists the functions of a file."""

    def __init__(self, setup: ToolSetup) -> None:
        super().__init__("symbols", "Lists the functions of a Python file.", SymbolsArguments, read_only=True)
        self._workspace = setup.workspace

    def call_subject(self, args: SymbolsArguments) -> Subject:
        return PathSubject(args.path, "read")

    async def run(self, args: SymbolsArguments, context: ToolContext) -> ToolResult:
        tree = ast.parse(self._workspace.resolve(args.path).read_text())
        return ToolResult.of_text(", ".join(node.name for node in tree.body if isinstance(node, ast.FunctionDef)))


async def test_the_model_can_call_it_and_rules_can_name_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = {**BUILT_IN_TOOLS, "symbols": SymbolsTool}
    monkeypatch.setattr("tui_agent.tools.BUILT_IN_TOOLS", registry)
    (root / "private").mkdir()
    for name in ("shop.py", "private/x.py"):
        (root / name).write_text("def price():\n    ...\n\n\ndef total():\n    ...\n")
    workspace = Workspace(root, spool_dir=root.parent / "spool")
    tools = default_tools(workspace, is_read_only_command=lambda command: False)
    asked = [call("symbols", path="shop.py"), call("symbols", path="private/x.py")]

    agent = Agent(
        ScriptedProvider([reply("Let me look.", *asked), reply("done")]),
        tools=tools,
        rules=["allow symbols(shop.py)", "deny symbols(private/**)"],
        workspace=root,
    )
    await agent.run("Which functions are there?")

    allowed, denied = (message.text for message in agent.history.messages() if message.role == "tool_result")
    assert allowed == "price, total"
    assert "den" in denied
    assert [tool.name for tool in tools] == list(registry)
