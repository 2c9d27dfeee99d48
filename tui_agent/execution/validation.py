"""Validation of a call's arguments, before anything else uses them (S1-25, S3-9).

Built-in tools have a pydantic model, others a JSON schema, whose remote references are never fetched.
"""

import difflib
import importlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.protocol.messages import JsonObject, ToolCall, is_array, is_object
from tui_agent.protocol.tool import Tool

from .contained_calls import Crash, try_call
from .json_coercion import NOT_JSON_TEXT, is_json_value
from .tool_registry import ToolLike, as_tool

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

SHOWN_ERRORS = 5
"""Largest number of errors in one text; a model corrects the first ones anyway."""

_CACHED_SCHEMAS = 256
_DEEPEST_REFERENCE = 8
_validators: OrderedDict[int, tuple[JsonObject, "Validator"]] = OrderedDict()


def validate_tool_arguments(tool: ToolLike, call: ToolCall) -> JsonObject:
    """Return the arguments of `call`, prepared by the tool and validated by its model or schema (S2-15).

    Raises:
        InvalidArgumentsError: they do not fit; the text names each path and what was expected there.
        ConfigurationError: `tool` is not a tool.
    """
    if call.malformed is not None:
        raise InvalidArgumentsError(f"Invalid arguments for {call.name}: {call.malformed}")
    return checked_arguments(as_tool(tool), call.arguments)


def checked_arguments(tool: Tool, arguments: JsonObject) -> JsonObject:
    """Return arguments prepared and validated, wherever they come from.

    Raises:
        InvalidArgumentsError: they do not fit.
    """
    prepared = _without_nulls(tool, tool.prepare_arguments(arguments))
    # Events and journals must be able to hold them, wherever they come from.
    if not is_json_value(prepared):
        raise InvalidArgumentsError(f"Invalid arguments for {tool.name}: {NOT_JSON_TEXT}")
    complaints = complaints_about(tool, prepared)
    if complaints:
        lines = "\n".join(f"- {line}" for line in complaints[:SHOWN_ERRORS])
        more = len(complaints) - SHOWN_ERRORS
        rest = f"\n- and {more} more" if more > 0 else ""
        raise InvalidArgumentsError(f"Invalid arguments for {tool.name}:\n{lines}{rest}\n{_expected(tool)}")
    return prepared


def _without_nulls(tool: Tool, arguments: JsonObject) -> JsonObject:
    """Return the arguments without each optional one that is null and cannot be: its default is meant."""
    if None not in arguments.values():
        return arguments
    schema, known = tool.spec.input_schema, _properties(tool)
    required: object = schema.get("required")
    needed = required if is_array(required) else []
    unset = {
        name
        for name, value in arguments.items()
        if value is None and name in known and name not in needed and not _takes_null(known[name], schema)
    }
    return {name: value for name, value in arguments.items() if name not in unset}


def _takes_null(schema: object, whole: JsonObject, depth: int = 0) -> bool:
    """Return True unless a schema certainly refuses null; `whole` has the definitions that it may refer to."""
    if not is_object(schema) or depth > _DEEPEST_REFERENCE:
        return schema is not False
    kind, choices, reference = schema.get("type"), schema.get("enum"), schema.get("$ref")
    if (isinstance(kind, str) and kind != "null") or (is_array(kind) and "null" not in kind):
        return False
    if is_array(choices) and None not in choices:
        return False
    if isinstance(reference, str):
        group, _, name = reference.removeprefix("#/").partition("/")
        definitions = whole.get(group)
        if is_object(definitions) and name in definitions:
            return _takes_null(definitions[name], whole, depth + 1)
    for word in ("anyOf", "oneOf"):
        parts = schema.get(word)
        if is_array(parts) and not any(_takes_null(part, whole, depth + 1) for part in parts):
            return False
    return True


def complaints_about(tool: Tool, arguments: JsonObject) -> list[str]:
    """Return one line for each mismatch, with its path and what was expected; empty if the arguments fit."""
    if tool.arguments_model is not None:
        try:
            tool.arguments_model.model_validate(arguments)
        except ValidationError as fault:
            schema = tool.spec.input_schema
            return [_pydantic_line(dict(detail), schema) for detail in fault.errors(include_url=False)]
        return []
    # A schema may come from a tool server.
    lines = try_call(_schema_lines, tool.spec.input_schema, arguments)
    if isinstance(lines, Crash):
        reason = lines.text.partition("\n")[0]
        return [f"the tool's own schema cannot be used, so its calls cannot be checked: {reason}"]
    return lines


def _pydantic_line(detail: dict[str, Any], schema: JsonObject) -> str:
    place: Sequence[str | int] = detail["loc"]
    path = _path(place)
    message = str(detail["msg"])
    outer, known = place[:-1], _fields_at(schema, place[:-1])
    if detail["type"] == "missing":
        return f"{path}: is required{_wanted(known.get(str(place[-1])))}"
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(place[-1]), known, 1)
        # The line below lists only the arguments themselves, not the fields of one.
        fields = f"; it has {', '.join(known)}" if outer and known else ""
        return f"{path}: unknown argument" + (f"; did you mean {near[0]}?" if near else fields)
    return f"{path}: {message}, got {_shown(detail.get('input'))}"


def schema_complaints(schema: JsonObject, value: Any, whole: str = "the answer") -> list[str]:
    """Return one line for each mismatch of a value with a schema, sorted by path; empty if it matches.

    Each line begins with the path of the mismatch; `whole` names the value itself.

    Raises:
        Exception: the schema cannot be used.
    """
    found = _validator(schema).iter_errors(value)
    errors = sorted(found, key=lambda error: [str(part) for part in error.absolute_path])
    return [f"{_path(error.absolute_path, whole)}: {_clipped(error.message)}" for error in errors]


def _schema_lines(schema: JsonObject, arguments: JsonObject) -> list[str]:
    return schema_complaints(schema, arguments, "arguments")


def _validator(schema: JsonObject) -> "Validator":
    """Return the compiled schema from a cache, which keeps the schema alive, so that its id is not reused."""
    known = _validators.get(id(schema))
    if known is not None:
        return known[1]
    validator = _builder()(schema)
    _validators[id(schema)] = (schema, validator)
    if len(_validators) > _CACHED_SCHEMAS:
        _validators.popitem(last=False)
    return validator


@cache
def _builder() -> Callable[[JsonObject], "Validator"]:
    # Imported late: it takes 80 ms, and only tools without a pydantic model need it.
    validators = importlib.import_module("jsonschema.validators")
    no_remote_documents = importlib.import_module("referencing.jsonschema").EMPTY_REGISTRY

    def build(schema: JsonObject) -> "Validator":
        kind = validators.validator_for(schema, default=validators.Draft202012Validator)
        kind.check_schema(schema)
        return kind(schema, registry=no_remote_documents)

    return build


def _expected(tool: Tool) -> str:
    """Return one line that shows valid arguments, such as `Expected: path: string, limit?: integer`."""
    required: object = tool.spec.input_schema.get("required")
    needed = required if is_array(required) else []
    words = [f"{name}{'' if name in needed else '?'}: {_type_of(schema)}" for name, schema in _properties(tool).items()]
    return f"Expected: {', '.join(words)}" if words else "Expected: no arguments"


def _properties(tool: Tool) -> JsonObject:
    properties: object = tool.spec.input_schema.get("properties")
    return properties if is_object(properties) else {}


def _fields_at(schema: JsonObject, place: Sequence[str | int]) -> JsonObject:
    """Return the fields that pydantic's schema names for an object at a place of the arguments; empty for others."""
    found = schema
    for step in place:
        found = found.get("items", {}) if isinstance(step, int) else found.get("properties", {}).get(step, {})
        found = schema.get("$defs", {}).get(str(found.get("$ref")).rpartition("/")[2], found)
    return found.get("properties", {})


def _wanted(schema: object) -> str:
    return f" ({_type_of(schema)})" if schema is not None else ""


def _type_of(schema: object) -> str:
    if not is_object(schema):
        return "any"
    if is_array(schema.get("enum")):
        return " | ".join(_shown(value) for value in schema["enum"])
    if is_array(schema.get("anyOf")):
        return " | ".join(_type_of(part) for part in schema["anyOf"])
    kind: object = schema.get("type", "any")
    return " | ".join(map(str, kind)) if is_array(kind) else str(kind)


def _path(parts: Iterable[object], whole: str = "arguments") -> str:
    """Return a path such as `items[0].text`; `whole` for the whole object."""
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.removeprefix(".") or whole


def _shown(value: object) -> str:
    return _clipped(json.dumps(value, ensure_ascii=False, default=str))


def _clipped(text: str, limit: int = 160) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
