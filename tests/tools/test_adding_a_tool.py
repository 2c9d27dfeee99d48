"""Adding a built-in tool takes one class and its line in the registry; its schema is a pydantic class."""

import ast
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from tests.support.table import table
from tui_agent import Agent, ScriptedProvider, Workspace, call, default_tools, reply
from tui_agent.protocol.errors import InvalidArgumentsError, ToolError
from tui_agent.protocol.tool import Accesses, PathSubject, Preview, Subject, ToolContext, ToolResult
from tui_agent.tools import BUILT_IN_TOOLS, ToolSetup
from tui_agent.tools.typed_tool import Arguments, PathText, TypedTool

from .calls import Recorded


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


class GreetArguments(Arguments):
    name: PathText = Field(description="Whom.")
    times: int = 1
    note: str = ""


class GreetTool(TypedTool[GreetArguments]):
    def __init__(self) -> None:
        super().__init__("greet", "Greets somebody.", GreetArguments)

    def call_accesses(self, args: GreetArguments) -> Accesses:
        if args.name == "broken":
            raise ToolError("no such path")
        return Accesses()

    async def call_preview(self, args: GreetArguments) -> Preview:
        if args.name == "broken":
            raise ToolError("no such path")
        return Preview(kind="text", text=args.name)

    async def run(self, args: GreetArguments, context: ToolContext) -> ToolResult:
        return ToolResult.of_text(f"hello {args.name}" * args.times)


tool = GreetTool()


@table(
    ("arguments", "place"),
    [({}, "name"), ({"name": "x", "nmae": 1}, "nmae"), ({"name": "x", "times": [1]}, "times"), ({"name": ""}, "name")],
)
async def test_invalid_arguments_are_an_error_that_names_the_field(arguments: Any, place: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=f"invalid arguments for greet: {place}: "):
        await tool.execute(arguments, Recorded().context)


@table("arguments", [{"name": "\ud800"}, {"name": "a\0b"}, {"name": "a", "note": "x\udcff"}])
def test_text_that_no_system_call_accepts_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentsError, match=r"surrogate|NUL|unicode"):
        tool.parse(arguments)


async def test_errors_of_typed_methods_become_unknown_or_a_message() -> None:
    assert tool.accesses({"name": "broken"}) is None
    with pytest.raises(ToolError, match="no such path"):
        await tool.preview({"name": "broken"})
    assert await tool.preview({"name": "x"}) == Preview(kind="text", text="x")
