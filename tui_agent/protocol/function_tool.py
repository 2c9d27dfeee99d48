"""Tools made of functions: the schema comes from the signature, the description from the docstring."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, overload

from pydantic import BaseModel

from .background import on_loop, run_in_thread
from .errors import ConfigurationError
from .function_schema import FunctionParameters, function_name, is_async_function, read_parameters
from .messages import JsonObject
from .tool import Accesses, Timeout, Tool, ToolContext, ToolSpec
from .tool_result import ToolResult, as_tool_result
from .value_checks import expect_kind, expect_seconds, wrong_kind

Trait: TypeAlias = bool | Callable[[JsonObject], bool]
"""A fixed value, or a plain function of the call's arguments."""

CallAccesses: TypeAlias = Callable[[JsonObject], Accesses | None]
"""A plain function of the call's arguments; it returns None if the paths are unknown."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
"""Names that model endpoints accept; any other makes every request fail."""


@dataclass(frozen=True, slots=True)
class FunctionTraits:
    """Properties of the calls of one function."""

    read_only: Trait = False
    concurrency_safe: Trait | None = None
    """None: the same as read-only (S1-6)."""
    timeout: Timeout = "default"
    accesses: CallAccesses | None = None


class FunctionTool(Tool):
    """A tool made of a function by `function_tool`. Calling the tool object calls the function."""

    def __init__(
        self, function: Callable[..., object], spec: ToolSpec, parameters: FunctionParameters, traits: FunctionTraits
    ) -> None:
        self.spec = spec
        self.arguments_model: type[BaseModel] | None = parameters.model
        self.function = function
        """The original function."""
        self.runs_in_thread = not is_async_function(function)
        self.deps_type = parameters.deps_type
        """Type of the deps in its `ToolContext[…]`; None: any."""
        self._parameters = parameters
        self._traits = traits

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without validation, permissions or events."""
        return self.function(*args, **kwargs)

    def is_read_only(self, arguments: JsonObject) -> bool:
        return _answer(self._traits.read_only, arguments)

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        trait = self._traits.concurrency_safe
        return self.is_read_only(arguments) if trait is None else _answer(trait, arguments)

    def timeout(self, arguments: JsonObject) -> Timeout:
        return self._traits.timeout

    def accesses(self, arguments: JsonObject) -> Accesses | None:
        found = self._traits.accesses(arguments) if self._traits.accesses else None
        return None if found is None else Accesses.of(found.reads, found.writes, found.searches)

    def summarise(self, arguments: JsonObject) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in arguments.items())

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Call the function with validated arguments; a plain function runs in a thread of its own."""
        values = self._parameters.model.model_validate(arguments)
        named: dict[str, Any] = {name: getattr(values, field) for field, name in self._parameters.names.items()}
        if not self.runs_in_thread:
            answer: Any = self.function(**named, **self._context(context))
            return as_tool_result(await answer)
        # The thread may outlive the call; metrics that it adds then must not change the call's report.
        own = replace(context, metrics=dict(context.metrics), can_use=on_loop(context.can_use, "deny"))
        try:
            value = await run_in_thread(partial(self.function, **named, **self._context(own)))
        finally:
            context.metrics.update(own.metrics.copy())
        return as_tool_result(await value if inspect.isawaitable(value) else value)

    def _context(self, context: ToolContext) -> dict[str, ToolContext]:
        name = self._parameters.context_name
        return {} if name is None else {name: context}


@overload
def function_tool(
    function: Callable[..., object],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: Trait = False,
    concurrency_safe: Trait | None = None,
    timeout: Timeout = "default",
    accesses: CallAccesses | None = None,
) -> FunctionTool: ...


@overload
def function_tool(
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: Trait = False,
    concurrency_safe: Trait | None = None,
    timeout: Timeout = "default",
    accesses: CallAccesses | None = None,
) -> Callable[[Callable[..., object]], FunctionTool]: ...


def function_tool(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: Trait = False,
    concurrency_safe: Trait | None = None,
    timeout: Timeout = "default",
    accesses: CallAccesses | None = None,
) -> FunctionTool | Callable[[Callable[..., object]], FunctionTool]:
    """Make a tool of a function: as `@tool`, as `@tool(read_only=True)`, or as `tool(function)`.

    The function may be async or plain; a plain one runs in a thread of its own. Python cannot stop a thread: if
        such a
    call is cancelled or times out, its context's `cancellation` is set, the call ends after the grace period, and the
    model reads that the function may still be running. Its later reports and its result are dropped.

    The schema comes from the signature: types, defaults, `Optional`, `Literal`, enums, `Annotated[…, Field(…)]`,
    pydantic models, dataclasses and typed dictionaries. The description is the docstring; parameter descriptions in it
    (`Args:`, NumPy's `Parameters`, `:param x:`) go into the schema. A parameter named `context`, or annotated as
    `ToolContext` or `ToolContext[Deps]`, gets the context of the call and is not in the schema. A thread may call all
    methods of the context, and those of its `cancellation` that are documented as thread-safe.

    Args:
        function: the function, a bound method, a `functools.partial`, or an object with `__call__`.
        name: the tool's name: letters, digits, `_` and `-`. Default: the function's name.
        description: the description for the model. Default: the docstring.
        read_only: True if no call changes anything: such calls run at the same time and need no approval. A function of
            the arguments decides for each call; if it raises, the call counts as one that changes something.
        concurrency_safe: True if calls may run beside others. Default: the value of `read_only`.
        timeout: maximum seconds of execution; None: no limit; `"default"`: the engine's `tool_timeout`.
        accesses: the paths a call touches, such as `lambda args: Accesses.of(writes=[args["path"]])`: calls without a
            common path run at the same time. Relative paths start at the process's working directory.

    Raises:
        ConfigurationError: the function has no name, no description, or a parameter that a model cannot provide
            (without a type, of a type that JSON cannot express, `*args`, `**kwargs`, positional-only); or an option has
            a wrong value.
    """
    traits = FunctionTraits(read_only, concurrency_safe, timeout, accesses)

    def decorate(decorated: Callable[..., object]) -> FunctionTool:
        return _made(decorated, name, description, traits)

    return decorate if function is None else decorate(function)


def expect_deps(one: object, deps: object) -> None:
    """Check that an agent has the deps that the context of a tool names.

    Raises:
        ConfigurationError: it has others.
    """
    if isinstance(one, FunctionTool) and one.deps_type is not None and not isinstance(deps, one.deps_type):
        # Their value may be a secret.
        wanted, given = one.deps_type.__name__, f"'s deps are of type {type(deps).__name__}"
        raise ConfigurationError(
            f"tool {one.name} takes a ToolContext[{wanted}], but the agent{' has none' if deps is None else given}; "
            f"pass a {wanted} as deps=…"
        )


tool = function_tool
"""Short name of `function_tool`."""


def _made(
    function: Callable[..., object], name: str | None, description: str | None, traits: FunctionTraits
) -> FunctionTool:
    _expect_function(function)
    tool_name = name or function_name(function)
    if tool_name == "<lambda>":
        raise ConfigurationError("a lambda has neither name nor description; use def, or pass both")
    if not isinstance(tool_name, str) or not _NAME.match(tool_name):  # pyright: ignore[reportUnnecessaryIsInstance] — callers may be untyped
        raise wrong_kind(f"the name of tool {tool_name}", "1 to 64 letters, digits, _ and - (see name=…)", tool_name)
    _expect_traits(tool_name, traits)
    parameters = read_parameters(tool_name, function)
    words = description or parameters.description
    if not words:
        raise ConfigurationError(f"tool {tool_name} needs a docstring or description=…: the model chooses tools by it")
    expect_kind(f"the description of tool {tool_name}", words, str, "text")
    spec = ToolSpec(name=tool_name, description=words, input_schema=parameters.schema)
    return FunctionTool(function, spec, parameters, traits)


def _expect_function(function: object) -> None:
    if isinstance(function, Tool):
        raise ConfigurationError(f"{function.name} is already a tool; use it directly")
    if isinstance(function, type) or not callable(function):
        raise wrong_kind("a tool", "a function, or an object that can be called", function)
    for is_generator in (inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        if is_generator(function) or is_generator(getattr(function, "__call__", None)):  # noqa: B004 — the method is asked
            words = "yields; return one result, and report progress with context.output()"
            raise ConfigurationError(f"tool {function_name(function)} {words}")


def _expect_traits(name: str, traits: FunctionTraits) -> None:
    _expect_trait(f"read_only of tool {name}", traits.read_only)
    if traits.concurrency_safe is not None:
        _expect_trait(f"concurrency_safe of tool {name}", traits.concurrency_safe)
    if traits.timeout not in ("default", None):
        expect_seconds(f"the timeout of tool {name}", traits.timeout)
    if traits.accesses is not None:
        _expect_plain(f"accesses of tool {name}", traits.accesses, "a plain function of the arguments")


def _expect_trait(field: str, trait: object) -> None:
    if not isinstance(trait, bool):
        _expect_plain(field, trait, "True, False or a plain function of the arguments")


def _expect_plain(field: str, value: object, wanted: str) -> None:
    """Refuse anything but a plain function: the coroutine of an async one would count as True."""
    if not callable(value) or isinstance(value, type) or is_async_function(value):
        raise wrong_kind(field, wanted, value)


def _answer(trait: Trait, arguments: JsonObject) -> bool:
    return trait if isinstance(trait, bool) else trait(arguments)
