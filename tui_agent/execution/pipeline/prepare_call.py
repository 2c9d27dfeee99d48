"""Stages 1 to 3: parse a call, find its tool, and validate its arguments."""

from tui_agent.execution.contained_calls import Crash, copy_of, try_call
from tui_agent.execution.execution_services import ExecutionServices
from tui_agent.execution.outcomes import crashed, invalid, not_found, output_limit
from tui_agent.execution.validation import checked_arguments
from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.value_checks import is_duration

from .call_state import PreparedCall, RefusedCall


def prepare(services: ExecutionServices, call: ToolCall) -> PreparedCall | RefusedCall:
    """Parse a call (stage 1), find its tool (stage 2) and validate its arguments (stage 3)."""
    if call.cut:
        return RefusedCall(output_limit(), call.arguments)
    if call.malformed is not None and services.options.malformed_args == "error":
        return RefusedCall(invalid(f"Invalid arguments for {call.name}: {call.malformed}"), call.arguments)
    # The message keeps its own: tools, hooks and the user may change those of the call.
    return find_and_validate(services, call.name, copy_of(call.arguments))


def find_and_validate(services: ExecutionServices, name: str, arguments: JsonObject) -> PreparedCall | RefusedCall:
    """Find a tool (stage 2) and validate arguments for it (stage 3)."""
    tool = services.registry.find(name)
    if tool is not None:
        return validate(services, tool, arguments)
    explain = services.options.unknown_tool == "explain"
    nearest = services.registry.nearest(name) if explain else ()
    return RefusedCall(not_found(name, services.registry.names, nearest, explain=explain), arguments)


def validate(services: ExecutionServices, tool: Tool, arguments: JsonObject) -> PreparedCall | RefusedCall:
    """Validate arguments (stage 3) and only then ask the tool about the call: predicates may rely on valid ones."""
    prepared = try_call(_prepared, services, tool, arguments)
    if not isinstance(prepared, Crash):
        return prepared
    is_invalid = isinstance(prepared.error, InvalidArgumentsError)
    traceback = services.options.error_traceback
    outcome = invalid(prepared.text) if is_invalid else crashed(tool.name, prepared, traceback)
    summary = try_call(tool.summarise, arguments)
    return RefusedCall(outcome, arguments, tool, "" if isinstance(summary, Crash) else summary)


def _prepared(services: ExecutionServices, tool: Tool, arguments: JsonObject) -> PreparedCall:
    if services.options.validate_arguments:
        arguments = checked_arguments(tool, arguments)
    return PreparedCall(
        tool,
        arguments,
        read_only=tool.is_read_only(arguments),
        safe=tool.is_concurrency_safe(arguments),
        time_limit=time_limit(tool, arguments, services.options.tool_timeout),
        interruptible=tool.interruptible(arguments),
        summary=tool.summarise(arguments),
    )


def time_limit(tool: Tool, arguments: JsonObject, configured: float | None) -> float | None:
    """Return how many seconds a call may execute; None: no limit.

    Raises:
        InvalidArgumentsError: the tool named something else; 0 means neither the configured time nor no limit.
    """
    own = tool.timeout(arguments)
    if own == "default":
        return configured
    if own is None or is_duration(own):
        return own
    must = "it must be more than 0 seconds, or None for no limit"
    raise InvalidArgumentsError(f"{tool.name} cannot run with a time limit of {own!r}: {must}")
