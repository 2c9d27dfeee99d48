"""How long a call may execute: what its tool says of it, else what is configured (C24)."""

from tui_agent.execution.untrusted_calls import Crash, call_or_default, try_call
from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.value_checks import is_duration


def time_limit(tool: Tool, arguments: JsonObject, configured: float | None) -> float | None:
    """Seconds a call may execute; None: no limit. A tool that fails to say gets the configured time.

    Raises:
        InvalidArgumentsError: what the tool says is no time: 0 is neither the configured time nor no limit (P39).
    """
    own: object = try_call(tool.timeout, arguments)
    if isinstance(own, Crash) or own == "default":
        return configured
    if own is None or is_duration(own):
        return own
    must = "it must be more than 0 seconds, or None for no limit"
    shown = call_or_default(repr, own, otherwise=type(own).__name__)
    raise InvalidArgumentsError(f"{tool.name} cannot run with a time limit of {shown}: {must}")
