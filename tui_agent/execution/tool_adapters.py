"""Makes a `Tool` of what is none: functions and objects of the four-argument and the two-argument kind (C55)."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult, ToolSpec
from tui_agent.protocol.tool_result import RESULT_FIELDS, as_tool_result

FourArguments = Callable[[str, JsonObject, CancellationToken, Callable[[object], None]], Awaitable[object]]
"""`execute(tool_call_id, args, signal, on_update)` of S2-24; the signal answers `is_set()` and `wait()`."""

TwoArguments = Callable[[JsonObject, ToolContext], Awaitable[object]]
"""`execute(args, context)` of S0-36 and S4-8."""


@runtime_checkable
class ForeignTool(Protocol):
    """A tool that knows nothing of ours: a name, what it is for, a JSON schema, and perhaps `execute`."""

    name: str
    description: str
    parameters: JsonObject


class AdaptedTool(Tool):
    """A tool made of a function or a foreign object."""

    def __init__(self, spec: ToolSpec, execute: FourArguments | TwoArguments | None, *, read_only: bool) -> None:
        self.spec = spec
        self._execute: Callable[..., object] | None = execute
        self._takes_four = execute is not None and takes_four_arguments(execute)
        self._read_only = read_only

    def is_read_only(self, arguments: JsonObject) -> bool:
        return self._read_only

    def summarise(self, arguments: JsonObject) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in arguments.items())

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        run = self._execute
        if run is None:
            raise ToolError(f"Tool {self.name} has no execute function")
        if not self._takes_four:
            return foreign_result(await _value_of(run(arguments, context)))

        def on_update(partial: object) -> None:
            context.update(foreign_result(partial))

        return foreign_result(await _value_of(run(context.call_id, arguments, context.cancellation, on_update)))


def as_tool(thing: Tool | ForeignTool) -> Tool:
    """The thing itself where it is a `Tool`, else a tool around it; `execute` may be missing (S2-19).

    Raises:
        ConfigurationError: it has no name, description or schema.
    """
    if isinstance(thing, Tool):
        return thing
    if not isinstance(thing, ForeignTool):  # pyright: ignore[reportUnnecessaryIsInstance] — callers may be untyped
        words = "it needs name, description, parameters and execute; a function becomes one by from_function"
        raise ConfigurationError(f"{thing!r} is no tool: {words}")
    return from_function(
        getattr(thing, "execute", None),
        name=thing.name,
        description=thing.description,
        input_schema=thing.parameters,
        read_only=bool(getattr(thing, "read_only", False)),
    )


def from_function(
    execute: FourArguments | TwoArguments | None,
    *,
    name: str,
    description: str,
    input_schema: JsonObject | None = None,
    read_only: bool = False,
) -> Tool:
    """A tool around a function of `(args, context)` or of `(tool_call_id, args, signal, on_update)`. A plain function
    works, too, and holds everything else up while it runs.

    What it returns may be a `ToolResult`, text, blocks, `{"content": …, "details": …}`, `{"data": …}`, an object with
    those attributes, or anything JSON can hold (C56).
    """
    schema = input_schema if input_schema is not None else {"type": "object"}
    return AdaptedTool(ToolSpec(name=name, description=description, input_schema=schema), execute, read_only=read_only)


def takes_four_arguments(function: Callable[..., object]) -> bool:
    """Whether a function has the four positional parameters of S2-24; the last two may have defaults if they are named
    as there."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [one for one in inspect.signature(function).parameters.values() if one.kind in kinds]
    required = sum(one.default is one.empty for one in positional)
    return required >= 4 or (required >= 2 and [one.name for one in positional[2:4]] == ["signal", "on_update"])


def foreign_result(value: object) -> ToolResult:
    """Normalises what a foreign tool returned, also an object with `content` and perhaps the other fields of a result
    (S2-25, C56)."""
    if isinstance(value, ToolResult) or is_object(value):
        return as_tool_result(value)
    record = {name: getattr(value, name) for name in RESULT_FIELDS if hasattr(value, name)}
    return as_tool_result(record if "content" in record else value)


async def _value_of(answer: object) -> object:
    return await answer if inspect.isawaitable(answer) else answer
