"""Checks of the tools that a server lists: names, descriptions and schemas come from outside and may be wrong.

A tool that cannot be used is left out with the reason, because one wrong tool makes the model's provider refuse every
request.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.server_entries import ToolFilter
from tui_agent.protocol.visible_text import escaped

PREFIX = "mcp__"
"""Beginning of the names of all tools of servers."""
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 2_000
"""Characters of a tool's description; the rest is cut."""
LARGEST_SCHEMA = 64 * 1024
"""Characters of a schema as JSON."""
MOST_TOOLS = 500

_LONGEST_WORDS = 1_000
"""Characters of a description inside a schema."""
_DEEPEST_SCHEMA = 40
_LARGEST_EXPANSION = 2_000
"""Schemas that one value is checked against; a schema that refers to itself again and again would take for ever."""
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_COMBINED = ("allOf", "anyOf", "oneOf")
_LEFT_OUT = ("pattern", "patternProperties", "$schema", "$id", "$anchor", "$dynamicAnchor")


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool of a server, checked."""

    server: str
    raw_name: str
    name: str
    """`mcp__SERVER__TOOL`."""
    description: str
    schema: JsonObject
    claims: tuple[str, ...] = ()
    """Claims of the server about the tool, such as `only reads`; they spare no question."""

    @property
    def digest(self) -> str:
        """Hash of everything that the model reads about the tool."""
        content = json.dumps([self.description, self.schema], sort_keys=True)
        # A server may send half a surrogate pair.
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as the server describes it."""

    name: str
    description: str
    schema: JsonObject
    claims: tuple[str, ...] = ()


def check_tools(
    server: str, offered: Iterable[OfferedTool], wanted: ToolFilter
) -> tuple[tuple[ListedTool, ...], tuple[str, ...]]:
    """Return the tools that can be used, in order of their names, and a message about each one that cannot.

    Tools that `wanted` excludes are left out without a message.
    """
    tools: dict[str, ListedTool] = {}
    problems: list[str] = []
    for tool in offered:
        if not wanted.permits(tool.name):
            continue
        shown = escaped(tool.name[:LONGEST_NAME])
        name = tool_name(server, tool.name)
        problem = "another tool has this name" if name in tools else problem_of(tool.schema)
        if len(tools) >= MOST_TOOLS:
            problems.append(f"only the first {MOST_TOOLS} tools are used")
            break
        if problem:
            problems.append(f"{shown}: {problem}")
            continue
        words = described(server, tool.description)
        tools[name] = ListedTool(server, tool.name, name, words, _for_model(tool.schema), tool.claims)
    return tuple(tools[name] for name in sorted(tools)), tuple(problems)


def tool_name(server: str, tool: str) -> str:
    """Return `mcp__SERVER__TOOL` in characters that are allowed; a name that is too long ends in a hash."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", tool) or "_"
    name = f"{PREFIX}{server}__{plain}"
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 9]}_{hashlib.sha256(f'{server}/{tool}'.encode('utf-8', 'replace')).hexdigest()[:8]}"


def described(server: str, description: str) -> str:
    """Return a description, marked as the server's words, cut, and with escapes for hidden characters."""
    words = clipped(description.strip(), LONGEST_DESCRIPTION)
    return f"[Tool of the MCP server {server}, in its own words] {words}".strip()


def clipped(text: str, limit: int) -> str:
    """Return a text of a server, cut to `limit` characters, and with escapes for hidden ones."""
    return escaped(text[:limit]) + ("…" if len(text) > limit else "")


# --- schemas ----------------------------------------------------------------------------------------------------------


def problem_of(schema: JsonObject) -> str:
    """Return why a schema cannot be used; empty if it can."""
    try:
        if _depth(schema) > _DEEPEST_SCHEMA:
            return "its schema is nested too deeply"
        if schema.get("type", "object") != "object":
            return "its arguments are not an object"
        schema = _for_model(schema)
        if len(json.dumps(schema)) > LARGEST_SCHEMA:
            return f"its schema is larger than {LARGEST_SCHEMA // 1024} KiB"
        properties: object = schema.get("properties", {})
        if not is_object(properties):
            return "the properties of its schema are not an object"
        if wrong := next((name for name in properties if _PROPERTY.fullmatch(name) is None), None):
            return f"its argument {escaped(wrong[:LONGEST_NAME])!r} has a name that models do not take"
        _expansion(schema, schema, {}, frozenset())
        _check_schema(schema)
    except (ValueError, RecursionError) as error:
        return f"its schema is wrong: {' '.join(str(error).split())[:200]}"
    return ""


def contradiction_of(schema: JsonObject, value: object) -> str:
    """Return how a structured result contradicts the schema that its server claims; empty if it does not. Blocks."""
    if value is None:
        return "it has no structured content"
    # What cannot be checked cannot be contradicted.
    if problem_of(schema):
        return ""
    from jsonschema import validate
    from jsonschema.exceptions import ValidationError

    try:
        validate(value, _for_model(schema))  # pyright: ignore[reportArgumentType] — its type names only JSON
    except ValidationError as error:
        return clipped(error.message, _LONGEST_WORDS)
    return ""


def _check_schema(schema: JsonObject) -> None:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise ValueError(error.message) from error


def _depth(value: object) -> int:
    below = value.values() if is_object(value) else value if is_array(value) else ()
    return 1 + max((_depth(one) for one in below), default=0)


def _expansion(root: JsonObject, schema: object, known: dict[int, int], open_now: frozenset[int]) -> int:
    """Return how many schemas one value is checked against by a schema and all schemas below it."""
    if not is_object(schema):
        return 1
    if id(schema) in open_now:
        raise ValueError("it refers to itself")
    if id(schema) in known:
        return known[id(schema)]
    inside = open_now | {id(schema)}
    total = 1 + sum(_expansion(root, one, known, inside) for one in _on_same_value(root, schema))
    if total > _LARGEST_EXPANSION:
        raise ValueError("it has too many alternatives")
    known[id(schema)] = total
    for one in _on_other_values(schema):
        if id(one) not in known:
            _expansion(root, one, known, frozenset())
    return total


def _on_same_value(root: JsonObject, schema: JsonObject) -> Iterator[object]:
    """Yield the schemas that check the same value as a schema."""
    for key in _COMBINED:
        several: object = schema.get(key)
        yield from several if is_array(several) else ()
    for key in ("not", "if", "then", "else"):
        if key in schema:
            yield schema[key]
    for key in ("$ref", "$dynamicRef"):
        if isinstance(reference := schema.get(key), str):
            yield _target(root, reference)


def _target(root: JsonObject, reference: str) -> object:
    if reference != "#" and not reference.startswith("#/"):
        raise ValueError("it refers to another document or an anchor")
    place: object = root
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if is_object(place) and key in place:
            place = place[key]
        elif is_array(place) and key.isdecimal() and int(key) < len(place):
            place = place[int(key)]
        else:
            raise ValueError(f"{reference} leads nowhere")
    return place


def _on_other_values(schema: JsonObject) -> Iterator[object]:
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions", "dependentSchemas") and is_object(value):
            yield from value.values()
        elif is_object(value):
            yield value
        elif is_array(value):
            yield from (one for one in value if is_object(one))


def _for_model(schema: JsonObject) -> JsonObject:
    """Return a schema as the model gets it, by which tui-agent also checks arguments.

    Regular expressions become words; the server itself checks them.
    """
    # Providers refuse alternatives at the top of a schema.
    top = {key: value for key, value in schema.items() if key not in _COMBINED}
    plain = _plain({"type": "object", **top})
    assert is_object(plain)
    return plain


def _plain(value: object, *, is_table: bool = False) -> object:
    """Return a part of a schema with plain words and without regular expressions; keys of a table are names."""
    if is_array(value):
        return [_plain(one) for one in value]
    if isinstance(value, str):
        return clipped(value, _LONGEST_WORDS)
    if not is_object(value):
        return value
    if is_table:
        return {name: _plain(one) for name, one in value.items()}
    made: JsonObject = {}
    for key, one in value.items():
        # A regular expression of a server could run for ever against the arguments of a call.
        if key not in _LEFT_OUT:
            made[key] = _plain(one, is_table=key in ("properties", "$defs", "definitions", "dependentSchemas"))
    if isinstance(pattern := value.get("pattern"), str):
        words = f"{made.get('description', '')} (pattern: {clipped(pattern, 200)})"
        made["description"] = words.strip()
    return made
