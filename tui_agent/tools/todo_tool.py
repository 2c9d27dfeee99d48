"""The todo tool: the model's list of what is to do, kept where the person can see it."""

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, ToolContext, ToolResult

from .typed_tool import Arguments, TypedTool

_DESCRIPTION = """Keeps your list of what is to do, for work of several steps; the user sees it.
Each call replaces the whole list. Mark one item in_progress before you begin it, and done as soon as it is."""

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}


class TodoEntry(Arguments):
    """One thing to do."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)] = Field(
        description="What is to do, in one sentence."
    )
    status: Literal["pending", "in_progress", "done"] = Field(description="How far it is.")


class TodoArguments(Arguments):
    """The whole list."""

    items: tuple[TodoEntry, ...] = Field(max_length=100, description="Everything to do, in order; replaces the list.")


class TodoTool(TypedTool[TodoArguments]):
    """Tells the list as `todo.updated`; nothing else changes, so it never needs permission."""

    def __init__(self) -> None:
        super().__init__("todo", _DESCRIPTION, TodoArguments, read_only=True)

    def call_accesses(self, args: TodoArguments) -> Accesses:
        return Accesses()

    def call_summary(self, args: TodoArguments) -> str:
        now = next((entry.text for entry in args.items if entry.status == "in_progress"), "")
        done = sum(entry.status == "done" for entry in args.items)
        return f"{done} of {len(args.items)} done{f': {now}' if now else ''}"

    async def run(self, args: TodoArguments, context: ToolContext) -> ToolResult:
        items = [entry.model_dump() for entry in args.items]
        data: JsonObject = {"items": items}
        context.emit("todo.updated", data)
        counts = Counter(entry.status for entry in args.items)
        head = f"{counts['done']} done, {counts['in_progress']} in progress, {counts['pending']} pending"
        lines = [f"{_MARKS[entry.status]} {entry.text}" for entry in args.items]
        return ToolResult.of_text("\n".join([f"The list is: {head}.", *lines]), details=data)
