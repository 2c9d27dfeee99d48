"""Parameters of a function as a JSON schema for the model and a pydantic model that validates arguments.

The docstring describes the parameters, in the style of Google, NumPy or reST.
"""

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from textwrap import dedent
from typing import Annotated, Any, Optional, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from .errors import ConfigurationError
from .messages import JsonObject, is_array, is_object
from .tool import ToolContext

_CONTEXT = "context"
_VALUES = frozenset(("default", "const", "enum", "examples"))
"""Keys of a schema whose values are data: a `title` in them stays."""
_NO_SCHEMA = (PydanticUserError, NameError, TypeError, ValueError, RecursionError)
"""Errors that pydantic raises for a type without a schema."""

_GOOGLE_HEADER = re.compile(r"(?:Args|Arguments|Parameters|Params):\s*\Z")
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:(?:\s+(.*)|\s*)\Z")
_NUMPY_ITEM = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?\Z")
_REST_ITEM = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)\Z")
_REST_FIELD = re.compile(r":\w+[^:]*:")


@dataclass(frozen=True, slots=True)
class FunctionParameters:
    """Description and parameters of a tool's function."""

    description: str
    """The docstring without its parameter descriptions; may be empty."""
    model: type[BaseModel]
    """Model that validates arguments, with one field for each parameter."""
    names: Mapping[str, str]
    """Parameter names by field of the model."""
    context_name: str | None
    """Name of the parameter that gets the `ToolContext`."""
    schema: JsonObject
    deps_type: type | None = None
    """Class in its `ToolContext[…]`; None: it names none."""


def function_name(function: Callable[..., object]) -> str:
    """Return the name of a function; for a callable object, the name of its class."""
    function = _inner(function)
    return getattr(function, "__name__", type(function).__name__)


def is_async_function(function: Callable[..., object]) -> bool:
    """True if the function is async, or is an object with an async `__call__`."""
    inner = _inner(function)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004 — the method is asked


def read_parameters(tool_name: str, function: Callable[..., object]) -> FunctionParameters:
    """Read the signature and the docstring of a function.

    Raises:
        ConfigurationError: the function cannot be a tool; the text names the wrong parameter.
    """
    parameters = _parameters(tool_name, function)
    description, words = split_docstring(_docstring(function))
    context_name, deps_type, fields, names = None, None, dict[str, Any](), dict[str, str]()
    namespace = _namespace(function)
    for parameter in parameters:
        hint = _resolved(tool_name, parameter, namespace)
        if _wants_context(tool_name, parameter, hint):
            if context_name is not None:
                raise _wrong(tool_name, parameter, f"is the second one for the context; {context_name} is the first")
            context_name, deps_type = parameter.name, _deps_type(hint)
            continue
        if hint is inspect.Parameter.empty:
            advice = "; give the bound method, such as tool(thing.method)" if parameter.name in ("self", "cls") else ""
            raise _wrong(tool_name, parameter, f"needs a type annotation{advice}")
        # Pydantic rejects a field with the name of one of its methods.
        field_name = f"{parameter.name}_" if hasattr(BaseModel, parameter.name) else parameter.name
        fields[field_name] = _field(parameter, hint, words.get(parameter.name), renamed=field_name != parameter.name)
        names[field_name] = parameter.name
    try:
        config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
        model = create_model(f"{tool_name}_arguments", __config__=config, **fields)
        schema = schema_of(model)
    except _NO_SCHEMA as error:
        raise _unfit(tool_name, fields, names, error) from error
    return FunctionParameters(description, model, names, context_name, schema, deps_type)


def schema_of(model: type[BaseModel]) -> JsonObject:
    """Return the JSON schema of an arguments model, without titles."""
    schema = model.model_json_schema(schema_generator=_QuietSchema)
    # They cost tokens and tell the model nothing.
    _drop_titles(schema)
    schema.pop("description", None)
    return schema


class _QuietSchema(GenerateJsonSchema):
    """Schema generator that silently omits defaults that JSON cannot express: the function still uses them."""

    ignored_warning_kinds: typing.ClassVar[set[Any]] = {"skipped-choice", "non-serializable-default"}  # pyright: ignore[reportIncompatibleVariableOverride]


def _parameters(tool_name: str, function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters that the model provides: all that can be passed by name and that no `partial` fixes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        words = "has no readable signature; wrap it in a function defined with def"
        raise ConfigurationError(f"tool {tool_name}: {function!r} {words}") from error
    given = _given(function)
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    for parameter in parameters:
        if parameter.kind not in by_name:
            words = "cannot be passed by name; list its parameters one by one"
            raise ConfigurationError(f"tool {tool_name}: {parameter} {words}")
        if parameter.name.startswith("_"):
            raise _wrong(tool_name, parameter, "must not begin with an underscore")
    return [parameter for parameter in parameters if parameter.name not in given]


def _given(function: Callable[..., object]) -> set[str]:
    """Return the keywords that a `partial` fixes: they may be secrets, and the model must not choose them."""
    names: set[str] = set()
    while isinstance(function, partial):
        names |= set(function.keywords)
        function = cast(Callable[..., object], function.func)
    return names


def _inner(function: Callable[..., object]) -> Callable[..., object]:
    while isinstance(function, partial):
        function = cast(Callable[..., object], function.func)
    return function


def _docstring(function: Callable[..., object]) -> str:
    inner = _inner(function)
    own = None if inspect.isroutine(inner) else getattr(type(inner), "__call__").__doc__  # noqa: B004, B009 — the same
    return inspect.cleandoc(own) if own else inspect.getdoc(inner) or ""


def _namespace(function: Callable[..., object]) -> dict[str, Any]:
    """Return the globals of the module that contains the annotations."""
    inner = inspect.unwrap(_inner(function))
    if not inspect.isroutine(inner):
        inner = getattr(inner, "__call__", inner)  # noqa: B004 — the same
    return getattr(getattr(inner, "__func__", inner), "__globals__", {})


def _resolved(tool_name: str, parameter: inspect.Parameter, namespace: dict[str, Any]) -> Any:
    """Return a parameter's annotation with quoted names resolved."""
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        return annotation

    def annotated() -> None: ...

    # One at a time: the types of the result and of the context may be imported under `TYPE_CHECKING` only.
    annotated.__annotations__ = {parameter.name: annotation}
    try:
        return typing.get_type_hints(annotated, namespace, include_extras=True)[parameter.name]
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        if parameter.name == _CONTEXT and "ToolContext" in str(annotation):
            return ToolContext
        words = f"has an annotation that cannot be resolved ({error}); import it outside TYPE_CHECKING, at module level"
        raise _wrong(tool_name, parameter, words) from error


def _kinds_of(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _bare(kind: Any) -> Any:
    """Return a type without its arguments."""
    return get_origin(kind) or kind


def _deps_type(hint: Any) -> type | None:
    """Return the class in `ToolContext[…]`; None if it cannot be compared with an object."""
    found = [_bare(one) for kind in _kinds_of(hint) for one in get_args(kind)]
    named = found[0] if found else None
    return named if isinstance(named, type) and not getattr(named, "_is_protocol", False) else None


def _wants_context(tool_name: str, parameter: inspect.Parameter, hint: Any) -> bool:
    if any(isinstance(kind, type) and issubclass(kind, ToolContext) for kind in map(_bare, _kinds_of(hint))):
        return True
    if parameter.name != _CONTEXT:
        return False
    if hint is inspect.Parameter.empty or hint is Any:
        return True
    words = "would get the ToolContext, not an argument: annotate it as ToolContext or rename it"
    raise _wrong(tool_name, parameter, words)


def _field(parameter: inspect.Parameter, hint: Any, words: str | None, *, renamed: bool) -> tuple[Any, Any]:
    """Return a pydantic field; a description in the annotation overrides the docstring's."""
    if parameter.default is None and hint is not Any:
        hint = Optional[hint]  # noqa: UP045 — the type is known at run time only
    own = (
        [extra for extra in get_args(hint)[1:] if isinstance(extra, FieldInfo)] if get_origin(hint) is Annotated else []
    )
    if isinstance(parameter.default, FieldInfo):
        own.append(parameter.default)
    extras: dict[str, Any] = {}
    if words and not any(one.description for one in own):
        extras["description"] = words
    if renamed:
        extras["alias"] = parameter.name
    if isinstance(parameter.default, FieldInfo):
        return (Annotated[hint, Field(**extras)] if extras else hint), parameter.default
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return hint, Field(default, **extras)


def _unfit(tool_name: str, fields: Mapping[str, Any], names: Mapping[str, str], error: Exception) -> ConfigurationError:
    """Return the error for the parameter whose type has no JSON schema."""
    guilty = ""
    for field_name, (hint, _) in fields.items():
        try:
            TypeAdapter(hint).json_schema(schema_generator=_QuietSchema)
        except _NO_SCHEMA as own:
            guilty, error = f" parameter {names[field_name]}", own
            break
    text = getattr(error, "message", str(error)).partition("\n")[0]
    return ConfigurationError(f"tool {tool_name}:{guilty} has a type that a JSON schema cannot express: {text}")


def _wrong(tool_name: str, parameter: inspect.Parameter, words: str) -> ConfigurationError:
    return ConfigurationError(f"tool {tool_name}: parameter {parameter.name} {words}")


def _drop_titles(node: Any, *, are_names: bool = False) -> None:
    """Remove the titles from a schema. `are_names`: True if the keys of this node are property names."""
    if is_object(node):
        if not are_names and isinstance(node.get("title"), str):
            del node["title"]
        for key, value in list(node.items()):
            if are_names or key not in _VALUES:
                _drop_titles(value, are_names=not are_names and key in ("properties", "$defs"))
    elif is_array(node):
        for value in node:
            _drop_titles(value)


def split_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Return a docstring without its parameter descriptions, and the descriptions by parameter name."""
    found: dict[str, str] = {}
    kept: list[str] = []
    lines = docstring.expandtabs().splitlines()
    place = 0
    while place < len(lines):
        line = lines[place]
        end = place
        if _GOOGLE_HEADER.match(line):
            end = _indented_end(lines, place + 1)
            found |= _google_items(lines[place + 1 : end])
        elif line.strip() == "Parameters" and place + 1 < len(lines) and _is_underline(lines[place + 1]):
            end = _numpy_end(lines, place + 2)
            found |= _numpy_items(lines[place + 2 : end])
        elif rest := _REST_ITEM.match(line):
            end = _indented_end(lines, place + 1)
            found[rest.group(1)] = _joined([rest.group(2), *lines[place + 1 : end]])
        elif line.startswith(":type ") and _REST_FIELD.match(line):
            end = _indented_end(lines, place + 1)
        if end == place:
            kept.append(line)
            end = place + 1
        place = end
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return text, {name: words for name, words in found.items() if words}


def _indented_end(lines: list[str], start: int) -> int:
    """Return the index after the indented lines that begin at `start`, blank lines included."""
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
        end += 1
    return end


def _google_items(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in dedent("\n".join(lines)).splitlines():
        item = _GOOGLE_ITEM.match(line)
        if item:
            current = found[item.group(1)] = [item.group(2) or ""]
        else:
            current.append(line)
    return {name: _joined(words) for name, words in found.items()}


def _numpy_end(lines: list[str], start: int) -> int:
    """Return the index of the next section's title, or the end."""
    for place in range(start, len(lines) - 1):
        if lines[place].strip() and not lines[place].startswith(" ") and _is_underline(lines[place + 1]):
            return place
    return len(lines)


def _numpy_items(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    names: list[str] = []
    words: list[str] = []
    for line in [*lines, "end_of_section"]:
        item = _NUMPY_ITEM.match(line)
        if item:
            found |= dict.fromkeys(names, _joined(words))
            names, words = [name.strip().lstrip("*") for name in item.group(1).split(",")], []
        else:
            words.append(line)
    return found


def _is_underline(line: str) -> bool:
    return len(line.strip()) > 2 and set(line.strip()) == {"-"}


def _joined(lines: list[str]) -> str:
    """Return wrapped lines as one text."""
    return " ".join(" ".join(lines).split())
