"""Typed tools: the pydantic class is the schema, and invalid arguments never make a predicate raise."""

from typing import Any

import pytest
from pydantic import Field

from tests.support.table import table
from tests.tools.calls import Recorded
from tui_agent.protocol.errors import InvalidArgumentsError, ToolError
from tui_agent.protocol.tool import Accesses, PathSubject, Preview, Subject, Timeout, ToolContext, ToolResult
from tui_agent.tools.typed_tool import Arguments, PathText, TypedTool


class GreetArguments(Arguments):
    name: PathText = Field(description="Whom.")
    times: int = 1
    note: str = ""


class GreetTool(TypedTool[GreetArguments]):
    def __init__(self) -> None:
        super().__init__("greet", "Greets somebody.", GreetArguments)

    def call_is_read_only(self, args: GreetArguments) -> bool:
        return args.name == "reader"

    def call_accesses(self, args: GreetArguments) -> Accesses:
        if args.name == "broken":
            raise ToolError("no such path")
        return Accesses()

    def call_subject(self, args: GreetArguments) -> Subject:
        return PathSubject(args.name, "read")

    def call_timeout(self, args: GreetArguments) -> Timeout:
        return 3.0

    def call_summary(self, args: GreetArguments) -> str:
        return f"{args.name}\n{args.times}"

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
