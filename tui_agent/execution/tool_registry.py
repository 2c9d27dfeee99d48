"""Tools by name (S1-27), and adapters that turn typed functions, and functions and objects with two or four arguments,
into a `Tool`.
"""

import difflib
import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel, ValidationError

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.function_tool import expect_deps, function_tool
from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.tool import ExecutionMode, Timeout, Tool, ToolContext, ToolResult, ToolSpec
from tui_agent.protocol.tool_result import RESULT_FIELDS, as_tool_result
from tui_agent.protocol.value_checks import expect_choice, expect_flag, expect_items, expect_seconds, wrong_kind

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


def as_tools(name: str, things: object, deps: object) -> tuple[Tool, ...]:
    """Return a list of tools and functions as tools that find what they need in their context.

    Args:
        name: the field, for the error.
        things: the list.
        deps: the object that tools find in their context.

    Raises:
        ConfigurationError: it is not a list, one of them is not a tool, or it needs other `deps`.
    """

    def made(place: int, thing: ToolLike) -> Tool:
        try:
            return as_tool(thing)
        except ConfigurationError as error:
            raise ConfigurationError(f"{name}[{place}]: {error}") from error

    items = expect_items(name, things, None, "a list of tools and functions")
    tools = tuple(made(place, thing) for place, thing in enumerate(items))
    for tool in tools:
        expect_deps(tool, deps)
    return tools


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
    attributes, or any JSON value. `concurrency_safe` None means the same as `read_only`, `input_schema` None: any
    object. A `timeout` is in seconds; None: no limit.

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


def _accept(tool: Tool) -> None:
    pass


class ToolRegistry:
    """Tools by their exact name, in the order they were added."""

    def __init__(self, tools: Iterable[ToolLike] | None = None) -> None:
        """
        Raises:
            ConfigurationError: an item is not a tool, two have the same name, or two work in different directories.
        """
        self._all: dict[str, Tool] = {}
        self._directory: tuple[Path, str] | None = None
        self.expect: Callable[[Tool], object] = _accept
        """Refuses tools that are added later and that this agent cannot serve."""
        self.only: Callable[[str], bool] | None = None
        """Returns True for the names of the tools that may be used for now; the others are hidden. None: all may."""
        for tool in () if tools is None else expect_items("tools", tools, None, "a list of tools and functions"):
            self.add(tool)

    def add(self, tool: ToolLike) -> Tool:
        """Add a tool, or anything that `as_tool` takes, at any time (S4-82); return it as a `Tool`.

        Raises:
            ConfigurationError: it is not a tool, its name is taken (with two tools of one name every request would
                fail), it works in another directory than the agent, or `expect` refuses it.
        """
        added = as_tool(tool)
        if added.name in self._all:
            raise ConfigurationError(f"there is already a tool named {added.name}; rename or remove one of them")
        self.expect_directory(added.working_directory, f"the tool {added.name}")
        self.expect(added)
        self._all[added.name] = added
        return added

    @contextmanager
    def extra(self, tools: object) -> Generator[None]:
        """Add tools while the context is open (S4-41).

        Raises:
            ConfigurationError: one of them cannot be added.
        """
        with ExitStack() as added:
            for tool in expect_items("run(tools=…)", tools, None, "a list of tools and functions"):
                added.callback(self.remove, self.add(tool).name)
            yield

    @property
    def working_directory(self) -> Path | None:
        """Directory in which the tools work and the policy judges; None while no part has one."""
        return None if self._directory is None else self._directory[0]

    def expect_directory(self, directory: object, owner: str) -> None:
        """Check that a part of the agent works in the directory of the other parts; the first one determines it.

        Args:
            directory: the directory of this part; anything but a path has no effect.
            owner: the part, for the error.

        Raises:
            ConfigurationError: the directories differ: a call would be judged in one and executed in the other.
        """
        if not isinstance(directory, Path):
            return
        resolved = directory.resolve()
        if self._directory is None:
            self._directory = resolved, owner
        elif self._directory[0] != resolved:
            first, first_owner = self._directory
            both = f"{first} of {first_owner}, and {resolved} of {owner}"
            raise ConfigurationError(f"two working directories: {both}; pass the same one to both")

    def remove(self, name: str) -> None:
        """Remove a tool; calls of it that still wait are refused. An unknown name is ignored."""
        self._all.pop(name, None)

    def find(self, name: str) -> Tool | None:
        """Return the tool with exactly this name; None if it does not exist or `only` hides it (S2-16)."""
        return self._tools.get(name)

    def nearest(self, name: str, count: int = 3) -> tuple[str, ...]:
        """Return at most `count` names similar to `name`, ignoring case, closest first."""
        folded = {known.casefold(): known for known in self._tools}
        close = difflib.get_close_matches(name.casefold(), folded, n=count, cutoff=0.4)
        return tuple(folded[known] for known in close)

    @property
    def _tools(self) -> dict[str, Tool]:
        only = self.only
        return self._all if only is None else {name: tool for name, tool in self._all.items() if only(name)}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Specifications that the model receives, in order."""
        return tuple(tool.spec for tool in self._tools.values() if tool.is_offered)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tools that `only` does not hide, in order."""
        return tuple(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools
