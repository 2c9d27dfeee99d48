"""The tools for planning: the model's task list, and the plan that it hands to the user in plan mode."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.server_question import FieldChoice, FormField, ServerQuestion
from tui_agent.protocol.tool import Accesses, ToolContext, ToolResult
from tui_agent.protocol.tool_result import ACCEPTED_PLAN, FINAL_TEXT

from .typed_tool import Arguments, TypedTool

_TODO_DESCRIPTION = """Updates your task list, which the user sees. Use it for work that takes several steps.
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
        super().__init__("todo", _TODO_DESCRIPTION, TodoArguments, read_only=True)

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


_PLAN_DESCRIPTION = """Shows the user your plan and returns their decision.
You are in plan mode: nothing that you change is kept. Explore as far as you need to, with `ask_user` for decisions \
that only the user can make, and then end with this tool instead of a text. The plan is Markdown: what changes and \
why, the files, how it is tested. Write the steps of the work as one numbered list: they become your task list. The \
user may edit the plan, accept it and leave plan mode, decline it, or say what to change."""

_STEP = re.compile(r"^(?:\d{1,3}[.)]|[-*] \[[ xX]\])\s+(?P<text>\S.*)$", re.MULTILINE)
_MOST_STEPS = 100
_LONGEST_STEP = 500
_MARKUP = re.compile(r"\*\*|__|`")
_MODES = {
    PermissionMode.ASK: "Ask before anything changes that no rule allows",
    PermissionMode.ACCEPT_EDITS: "Keep changes of files in the workspace; ask about the rest",
}


class PresentPlanArguments(Arguments):
    """Arguments of the tool."""

    plan: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=50_000)] = Field(
        description="The plan in Markdown, complete in itself."
    )


class PresentPlanTool(TypedTool[PresentPlanArguments]):
    """Tool that returns the user's decision on a plan. It changes nothing but the mode, and that only by their yes."""

    touches = Accesses()
    # The user may edit for as long as they like.
    time_limit = None
    for_main_agent = True

    def __init__(self, mode: Callable[[], PermissionMode], change_mode: Callable[[PermissionMode], object]) -> None:
        super().__init__("present_plan", _PLAN_DESCRIPTION, PresentPlanArguments, read_only=True)
        self._mode = mode
        self._change_mode = change_mode

    @property
    def is_offered(self) -> bool:
        return self._mode() is PermissionMode.PLAN

    def call_summary(self, args: PresentPlanArguments) -> str:
        return args.plan.splitlines()[0].lstrip("# ")

    def call_question(self, args: PresentPlanArguments) -> ServerQuestion:
        choices = tuple(FieldChoice(value=mode.value, label=mode.words, description=_MODES[mode]) for mode in _MODES)
        fields = (
            FormField(name="mode", kind="choice", title="Accept this plan?", choices=choices, default="ask"),
            FormField(name="plan", title="The plan, as edited"),
        )
        return ServerQuestion(server="", kind="plan", message=args.plan, fields=fields)

    async def run(self, args: PresentPlanArguments, context: ToolContext) -> ToolResult:
        answers = context.answers
        # An emptied field means the plan as it was.
        text = args.plan if answers is None else str(answers.get("plan") or args.plan).strip() or args.plan
        context.emit("plan.proposed", {"plan_id": context.call_id, "text": text})
        if answers is None:
            details: JsonObject = {"outcome": "no one can answer", FINAL_TEXT: text}
            words = "No one can answer here. The plan is the result of this run."
            return ToolResult.of_text(words, details=details).model_copy(update={"terminate": True})
        mode = PermissionMode(str(answers.get("mode") or PermissionMode.ASK.value))
        # The user may have chosen another mode while the question was open.
        if self._mode() is PermissionMode.PLAN:
            self._change_mode(mode)
        context.emit("plan.resolved", {"plan_id": context.call_id, "accepted": True})
        steps = steps_of(text)
        if steps:
            context.emit("todo.updated", {"items": [{"text": step, "status": "pending"} for step in steps]})
        head = f"The user accepted the plan. The permission mode is now: {self._mode().words}. Carry it out."
        if steps:
            head += " Its steps are your task list: keep their states up to date with `todo`."
        changed = "The user edited it; this is the plan now" if text != args.plan else "The plan"
        details = {"outcome": f"accepted · {self._mode().words}", ACCEPTED_PLAN: text}
        return ToolResult.of_text(f"{head}\n\n{changed}:\n\n{text}", details=details)


def steps_of(plan: str) -> list[str]:
    """Return the numbered items of a plan, and those with a box, as plain text."""
    found = [_MARKUP.sub("", match["text"]).strip() for match in _STEP.finditer(plan)]
    return [step[:_LONGEST_STEP] for step in found if step][:_MOST_STEPS]
