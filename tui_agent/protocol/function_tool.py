"""Makes a tool of an async function: the schema comes from its signature, the words from its docstring (§7)."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from .errors import ConfigurationError
from .messages import JsonObject, is_array, is_object
from .tool import Tool, ToolContext, ToolSpec
from .tool_result import ToolResult, as_tool_result

_CONTEXT = "context"


class FunctionTool(Tool):
    """A tool made of a function by `function_tool`."""

    def __init__(
        self, function: Callable[..., Awaitable[object]], spec: ToolSpec, model: type[BaseModel], read_only: bool
    ) -> None:
        self.spec = spec
        self.arguments_model = model
        self.function = function
        """The function as it was written."""
        self._model = model
        self._read_only = read_only
        self._context_name = _context_parameter(function)

    def is_read_only(self, arguments: JsonObject) -> bool:
        return self._read_only

    def summarise(self, arguments: JsonObject) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in arguments.items())

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        values = self._model.model_validate(arguments)
        named: dict[str, Any] = {name: getattr(values, name) for name in type(values).model_fields}
        if self._context_name is not None:
            named[self._context_name] = context
        return as_tool_result(await self.function(**named))


def function_tool(
    *, name: str | None = None, description: str | None = None, read_only: bool = False
) -> Callable[[Callable[..., Awaitable[object]]], FunctionTool]:
    """Decorates an async function; a parameter named `context`, or annotated as `ToolContext`, gets the context of the
    call and is not in the schema.

    Raises:
        ConfigurationError: a parameter has no annotation or cannot be given by name, or the function no description,
            or it is not async.
    """

    def decorate(function: Callable[..., Awaitable[object]]) -> FunctionTool:
        tool_name = name or getattr(function, "__name__", "tool")
        words = description or inspect.getdoc(function)
        if not words:
            raise ConfigurationError(f"tool {tool_name} needs a docstring: it is what the model is told")
        if not inspect.iscoroutinefunction(function):
            raise ConfigurationError(f"tool {tool_name} must be an async function (async def), so that others can run")
        _expect_named(tool_name, function)
        hints = get_type_hints(function, include_extras=True)
        context_name = _context_parameter(function)
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name == context_name:
                continue
            if parameter.name not in hints:
                raise ConfigurationError(f"tool {tool_name}: parameter {parameter.name} needs a type annotation")
            required = parameter.default is inspect.Parameter.empty
            fields[parameter.name] = (hints[parameter.name], ... if required else Field(default=parameter.default))
        model = create_model(f"{tool_name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
        spec = ToolSpec(name=tool_name, description=words, input_schema=schema_of(model))
        return FunctionTool(function, spec, model, read_only)

    return decorate


def _expect_named(tool_name: str, function: Callable[..., object]) -> None:
    """
    Raises:
        ConfigurationError: a parameter can be no argument of a model's, which gives each one by a name of its own.
    """
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in named:
            raise ConfigurationError(f"tool {tool_name}: {parameter} cannot be given by name; write its arguments out")
        if parameter.name.startswith("_"):
            raise ConfigurationError(f"tool {tool_name}: parameter {parameter.name} must not begin with an underscore")


def _context_parameter(function: Callable[..., object]) -> str | None:
    """The parameter that gets the `ToolContext`, if there is one."""
    hints = get_type_hints(function)
    names = inspect.signature(function).parameters
    return next((name for name in names if name == _CONTEXT or hints.get(name) is ToolContext), None)


def schema_of(model: type[BaseModel]) -> JsonObject:
    """The JSON schema of an arguments model, without the titles that only cost tokens."""
    schema = model.model_json_schema()
    _drop_titles(schema)
    schema.pop("description", None)
    return schema


def _drop_titles(node: Any) -> None:
    if is_object(node):
        if isinstance(node.get("title"), str):
            del node["title"]
        for value in list(node.values()):
            _drop_titles(value)
    elif is_array(node):
        for value in node:
            _drop_titles(value)
