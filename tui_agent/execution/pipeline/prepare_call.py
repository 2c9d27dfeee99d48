"""Stages 1 to 3: parse a call, find its tool, and validate its arguments."""

from tui_agent.execution.execution_services import ExecutionServices
from tui_agent.execution.json_coercion import NOT_JSON_TEXT, is_json_value
from tui_agent.execution.outcomes import invalid, not_found, output_limit
from tui_agent.execution.untrusted_calls import Crash, call_or_default, copy_of, try_call
from tui_agent.execution.validation import checked_arguments
from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.protocol.messages import TOO_DEEP, JsonObject, ToolCall, nests_deeper
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.value_checks import is_duration

from .call_state import PreparedCall, RefusedCall


def prepare(services: ExecutionServices, call: ToolCall) -> PreparedCall | RefusedCall:
    """Parse a call (stage 1), find its tool (stage 2) and validate its arguments (stage 3)."""
    readable = is_json_value(call.arguments)
    arguments: JsonObject = copy_of(call.arguments) if readable else {}
    if call.cut:
        return RefusedCall(output_limit(), arguments)
    if call.malformed is not None and services.options.malformed_args == "error":
        return RefusedCall(invalid(f"Invalid arguments for {call.name}: {call.malformed}"), arguments)
    if not readable:
        why = TOO_DEEP if nests_deeper(call.arguments) else NOT_JSON_TEXT
        return RefusedCall(invalid(f"Invalid arguments for {call.name}: {why}"), arguments)
    return find_and_validate(services, call.name, arguments)


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
    try:
        if services.options.validate_arguments:
            arguments = checked_arguments(tool, arguments)
        limit = time_limit(tool, arguments, services.options.tool_timeout)
    except InvalidArgumentsError as error:
        return RefusedCall(invalid(str(error)), arguments, tool)
    return PreparedCall(
        tool,
        arguments,
        read_only=call_or_default(tool.is_read_only, arguments, otherwise=False),
        safe=call_or_default(tool.is_concurrency_safe, arguments, otherwise=False),
        time_limit=limit,
    )


def time_limit(tool: Tool, arguments: JsonObject, configured: float | None) -> float | None:
    """Return how many seconds a call may execute; None: no limit. If the tool's method raises, `configured` applies.

    Raises:
        InvalidArgumentsError: the tool named something else; 0 means neither the configured time nor no limit.
    """
    own: object = try_call(tool.timeout, arguments)
    if isinstance(own, Crash) or own == "default":
        return configured
    if own is None or is_duration(own):
        return own
    must = "it must be more than 0 seconds, or None for no limit"
    shown = call_or_default(repr, own, otherwise=type(own).__name__)
    raise InvalidArgumentsError(f"{tool.name} cannot run with a time limit of {shown}: {must}")
