"""The todo tool: the model's task list, which the user sees."""

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, ToolContext, ToolResult

from .typed_tool import Arguments, TypedTool

_DESCRIPTION = """Updates your task list, which the user sees. Use it for work that takes several steps.
Each call replaces the whole list. Mark an item in_progress when you start it and done as soon as it is finished; \
only one item is in progress at a time."""

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}


class TodoEntry(Arguments):
    """One task."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)] = Field(
        description="The task, in one sentence."
    )
    status: Literal["pending", "in_progress", "done"] = Field(description="State of the task.")


class TodoArguments(Arguments):
    """Arguments of the todo tool."""

    items: tuple[TodoEntry, ...] = Field(max_length=100, description="All tasks, in order; they replace the list.")


class TodoTool(TypedTool[TodoArguments]):
    """Tool that emits the list as `todo.updated`; it changes nothing else, so it never needs permission."""

    touches = Accesses()

    def __init__(self) -> None:
        super().__init__("todo", _DESCRIPTION, TodoArguments, read_only=True)

    def call_summary(self, args: TodoArguments) -> str:
        now = next((entry.text for entry in args.items if entry.status == "in_progress"), "")
        done = sum(entry.status == "done" for entry in args.items)
        return f"{done} of {len(args.items)} done{f': {now}' if now else ''}"

    async def run(self, args: TodoArguments, context: ToolContext) -> ToolResult:
        items = [entry.model_dump() for entry in args.items]
        data: JsonObject = {"items": items}
        context.emit("todo.updated", data)
        counts = Counter(entry.status for entry in args.items)
        outcome = f"{counts['done']} of {len(items)} done"
        head = f"{counts['done']} done, {counts['in_progress']} in progress, {counts['pending']} pending"
        lines = [f"{_MARKS[entry.status]} {entry.text}" for entry in args.items]
        return ToolResult.of_text("\n".join([f"List updated: {head}.", *lines]), details={"outcome": outcome, **data})
