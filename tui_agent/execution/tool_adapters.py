"""Adapters that turn typed functions, and functions and objects with two or four arguments, into a `Tool`."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, is_dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel, ValidationError

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.function_tool import function_tool
from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.tool import ExecutionMode, Timeout, Tool, ToolContext, ToolResult, ToolSpec
from tui_agent.protocol.tool_result import RESULT_FIELDS, as_tool_result
from tui_agent.protocol.value_checks import expect_choice, expect_flag, expect_seconds, wrong_kind

FourArguments = Callable[[str, JsonObject, CancellationToken, Callable[[object], None]], Awaitable[object]]
"""`execute(tool_call_id, args, signal, on_update)` of S2-24; the signal answers `is_set()` and `wait()`."""

TwoArguments = Callable[[JsonObject, ToolContext], Awaitable[object]]
"""`execute(args, context)` of S0-36 and S4-8."""


@runtime_checkable
class ForeignTool(Protocol):
    """Tool of another library: a name, a description, a JSON schema, and perhaps `execute`."""

    name: str
    description: str
    parameters: JsonObject


ToolLike: TypeAlias = Tool | ForeignTool | Callable[..., object]
"""Everything that `as_tool` accepts."""


@dataclass(frozen=True, slots=True)
class ForeignTraits:
    """Traits that a function or a foreign object declares for its calls: values, or functions called for each call,
    with the arguments if they take any."""

    read_only: object = False
    concurrency_safe: object = None
    """None: the same as read-only (S1-6)."""
    timeout: object = "default"


class AdaptedTool(Tool):
    """Tool around a function or a foreign object."""

    def __init__(self, spec: ToolSpec, execute: FourArguments | TwoArguments | None, traits: ForeignTraits) -> None:
        if not (execute is None or callable(execute)):
            raise ConfigurationError(f"execute of {spec.name} must be a function, got {execute!r}")
        if traits.timeout not in ("default", None) and not callable(traits.timeout):
            expect_seconds(f"the timeout of {spec.name}", traits.timeout)
        self.spec = spec
        self._execute: Callable[..., object] | None = execute
        self._takes_four = execute is not None and takes_four_arguments(execute)
        self._traits = traits

    def is_read_only(self, arguments: JsonObject) -> bool:
        return _trait_value(self._traits.read_only, arguments) is True

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        if self._traits.concurrency_safe is None:
            return self.is_read_only(arguments)
        return _trait_value(self._traits.concurrency_safe, arguments) is True

    def timeout(self, arguments: JsonObject) -> Timeout:
        return _trait_value(self._traits.timeout, arguments)

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


def as_tool(thing: ToolLike) -> Tool:
    """Return the thing itself if it is a `Tool`, else a tool around it.

    A function, plain or async, goes to `function_tool`: its types are the schema, its docstring the description.
    An object needs `name`, `description` and `parameters`; `execute` may be missing (S2-19). Of its other attributes
    `execution_mode`, `timeout`, `aborts_siblings`, `is_read_only` (or `read_only`) and `is_concurrency_safe` (or
    `concurrency_safe`) are used.

    Raises:
        ConfigurationError: it is none of these, no model could call the function, or an attribute has a wrong value.
    """
    if isinstance(thing, Tool):
        return thing
    if isinstance(thing, type) or not (isinstance(thing, ForeignTool) or callable(thing)):
        wanted = "a Tool, a function, or an object with name, description, parameters and execute"
        raise wrong_kind("a tool", wanted, thing)
    if not isinstance(thing, ForeignTool):
        return function_tool(thing)
    traits = ForeignTraits(
        getattr(thing, "is_read_only", getattr(thing, "read_only", False)),
        getattr(thing, "is_concurrency_safe", getattr(thing, "concurrency_safe", None)),
        getattr(thing, "timeout", "default"),
    )
    spec = _spec(thing.name, thing.description, thing.parameters)
    tool = AdaptedTool(spec, getattr(thing, "execute", None), traits)
    mode, aborts = getattr(thing, "execution_mode", "shared"), getattr(thing, "aborts_siblings", False)
    # Other libraries use "parallel" for "shared".
    expect_choice(f"execution_mode of {thing.name}", mode, ("shared", "parallel", "sequential"))
    expect_flag(f"aborts_siblings of {thing.name}", aborts)
    tool.execution_mode = "sequential" if mode == "sequential" else "shared"
    tool.aborts_siblings = aborts
    return tool


def from_function(
    execute: FourArguments | TwoArguments | None,
    *,
    name: str,
    description: str,
    input_schema: JsonObject | None = None,
    read_only: bool = False,
    concurrency_safe: bool | None = None,
    timeout: Timeout = "default",
    execution_mode: ExecutionMode = "shared",
) -> Tool:
    """Return a tool around a function of `(args, context)` or of `(tool_call_id, args, signal, on_update)`. A plain
    function works, too, but blocks the event loop while it runs.

    It may return a `ToolResult`, text, blocks, `{"content": …, "details": …}`, `{"data": …}`, an object with those
    attributes, or any JSON value. `concurrency_safe` None means the same as `read_only`.

    Raises:
        ConfigurationError: the timeout or the mode is invalid, or the function has neither form.
    """
    expect_choice("execution_mode", execution_mode, ("shared", "sequential"))
    schema = input_schema if input_schema is not None else {"type": "object"}
    spec = _spec(name, description, schema)
    tool = AdaptedTool(spec, execute, ForeignTraits(read_only, concurrency_safe, timeout))
    tool.execution_mode = execution_mode
    return tool


def takes_four_arguments(function: Callable[..., object]) -> bool:
    """Return True if a function takes the four positional arguments of S2-24; the last two parameters may have
    defaults if they have the names used there.

    Raises:
        ConfigurationError: it takes neither four nor two positional arguments, so every call would fail.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"cannot make a tool of {function!r}: {error}") from error
    parameters = signature.parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [one.name for one in parameters if one.kind in kinds]
    by_name = {one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY}
    two, four = _can_take(signature, 2), _can_take(signature, 4)
    if not (two or four) or by_name & {"signal", "on_update"}:
        must = "must take (args, context) or (tool_call_id, args, signal, on_update), by position"
        raise ConfigurationError(f"a tool's function {must}; {signature} does not")
    return four and (not two or names[2:4] == ["signal", "on_update"])


def foreign_result(value: object) -> ToolResult:
    """Return a foreign tool's result as a `ToolResult`; it may be an object with some of its attributes (S2-25)."""
    if isinstance(value, ToolResult | BaseModel) or is_object(value) or is_dataclass(value):
        return as_tool_result(value)
    record = {name: getattr(value, name) for name in RESULT_FIELDS if hasattr(value, name)}
    return as_tool_result(record if "content" in record else value)


async def _value_of(answer: object) -> object:
    return await answer if inspect.isawaitable(answer) else answer


def _trait_value(trait: Any, arguments: JsonObject) -> Any:
    """Return a trait's value for one call; foreign methods take the arguments or nothing."""
    if not callable(trait):
        return trait
    return trait(arguments) if inspect.signature(trait).parameters else trait()


def _can_take(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _spec(name: object, description: object, schema: object) -> ToolSpec:
    try:
        return ToolSpec.model_validate({"name": name, "description": description, "input_schema": schema})
    except ValidationError as error:
        lines = "; ".join(f"{detail['loc'][0]}: {detail['msg']}" for detail in error.errors(include_url=False))
        raise ConfigurationError(f"{name!r} is not a tool: {lines}") from error
