"""The tool `agent {task, context?, tools?}`: the model has a part of its work done by a sub-agent (interface §6)."""

from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.tool import Timeout, ToolContext, ToolResult, ToolSpec
from tui_agent.protocol.value_checks import expect_kind

from .delegation import AgentBoundTool, delegate, outcome_text
from .loop import AgentLoop

DESCRIPTION = """\
Delegates a task to a sub-agent and returns its answer. Use it for work of many steps of which you only need the \
outcome, such as a search through a large code base. Several calls in one response run in parallel. The sub-agent has \
your tools and the same permissions. With context "fresh" (the default) it knows only the task: include everything it \
needs to know, and say what to return. With "fork" it also knows this conversation."""

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "minLength": 1, "description": "The task, and what to report back."},
        "context": {
            "type": "string",
            "enum": ["fresh", "fork"],
            "description": "Context of the sub-agent: only the task, or also this conversation. Default: fresh.",
        },
        "tools": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Names of the tools it may use. Default: all of yours.",
        },
    },
    "required": ["task"],
    "additionalProperties": False,
}


AGENT_SPEC = ToolSpec(name="agent", description=DESCRIPTION, input_schema=SCHEMA)
"""The tool's specification for the model."""


class AgentTool(AgentBoundTool):
    """Runs sub-agents of one agent. Its calls may run beside each other and have no time limit (C24)."""

    ends_calls_of_its_own = True

    def __init__(self, parent: AgentLoop) -> None:
        """
        Args:
            parent: for whom they work; it is given the tool by `add_tool`.

        Raises:
            ConfigurationError: `parent` is not an AgentLoop.
        """
        expect_kind("AgentTool.parent", parent, AgentLoop, "an AgentLoop")
        self.spec = AGENT_SPEC
        self._parent = parent

    def bound_to(self, agent: AgentLoop) -> "AgentTool":
        """The tool for a sub-agent, so that it can have sub-agents of its own."""
        return AgentTool(agent)

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        """Sub-agents work side by side; what they touch, each asks for itself."""
        return True

    def timeout(self, arguments: JsonObject) -> Timeout:
        """None: its steps and calls have their own limits."""
        return None

    def summarise(self, arguments: JsonObject) -> str:
        """The task's first line."""
        return str(arguments.get("task", "")).strip().partition("\n")[0]

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Runs one sub-agent to its end; one that does not finish is an error with what it had until then (P62).

        Raises:
            ToolError: there can be no such sub-agent.
        """
        try:
            report = await delegate(
                self._parent,
                arguments["task"],
                context=arguments.get("context", "fresh"),
                tools=arguments.get("tools"),
                call_id=context.call_id,
                cancellation=context.cancellation,
            )
        except ConfigurationError as error:
            raise ToolError(str(error)) from error
        return _result_of(report)


def _result_of(report: AgentRunReport) -> ToolResult:
    text = outcome_text(report)
    details = {"steps": report.step_count, "tool_calls": report.tool_call_count, "reason": report.reason}
    failed = report.reason != "done" or not report.final_text.strip()
    return ToolResult.of_text(text, is_error=failed, details=details).model_copy(update={"child_run_id": report.id})
