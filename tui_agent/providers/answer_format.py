"""The form of a JSON schema that the Messages API can hold an answer to (`output_config.format`).

The API knows a part of JSON schema. What only narrows values, such as `minimum`, is left out here, because the answer
is checked with the whole schema afterwards. A schema that cannot be expressed is not sent.
"""

from collections.abc import Iterator

from tui_agent.protocol.messages import JsonObject, is_array, is_object

from .model_table import is_of_vendor

_SCALARS = ("string", "integer", "number", "boolean", "null")
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
_STRUCTURE = frozenset(
    {
        *("allOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "patternProperties"),
        *("propertyNames", "unevaluatedProperties", "unevaluatedItems", "prefixItems", "contains", "$dynamicRef"),
    }
)
"""Keywords that would have to be left out, and without which other answers would be right."""
_DEFINITIONS = ("$defs", "definitions")
_DEEPEST = 50


class _InexpressibleError(Exception):
    """The schema has a part that the API does not know."""


def answer_format(model: str, schema: JsonObject | None) -> JsonObject:
    """Return the field `format` for answers that match a schema; empty if the model or the API cannot do that."""
    if schema is None or not is_of_vendor(model):
        return {}
    try:
        strict = _strict(schema, 0)
        if strict.get("type") != "object" or any(_is_cyclic(name, schema, ()) for name in _references(schema)):
            return {}
    except _InexpressibleError:
        return {}
    return {"format": {"type": "json_schema", "schema": strict}}


def _strict(schema: object, depth: int) -> JsonObject:
    """Return the part of a schema that the API knows."""
    if not is_object(schema) or depth > _DEEPEST or _STRUCTURE & schema.keys():
        raise _InexpressibleError
    found: JsonObject = {"description": schema["description"]} if "description" in schema else {}
    for name in _DEFINITIONS:
        if is_object(below := schema.get(name)):
            found[name] = {key: _strict(value, depth + 1) for key, value in below.items()}
    for name in ("anyOf", "oneOf"):
        if is_array(choices := schema.get(name)):
            return found | {"anyOf": [_strict(choice, depth + 1) for choice in choices]}
    if "$ref" in schema:
        return found | {"$ref": schema["$ref"]}
    for name in ("enum", "const"):
        if name in schema:
            return found | {name: schema[name]}
    kind: object = schema.get("type")
    if is_array(kind):
        return found | {"anyOf": [_strict({**schema, "type": one}, depth + 1) for one in kind]}
    return found | _typed(kind, schema, depth)


def _typed(kind: object, schema: JsonObject, depth: int) -> JsonObject:
    if kind == "object":
        properties: object = schema.get("properties")
        if not is_object(properties) or schema.get("additionalProperties", False) is not False:
            raise _InexpressibleError
        below = {name: _strict(value, depth + 1) for name, value in properties.items()}
        needed = {"required": schema["required"]} if "required" in schema else {}
        return {"type": kind, "properties": below, **needed, "additionalProperties": False}
    if kind == "array":
        least = {"minItems": 1} if schema.get("minItems", 0) else {}
        return {"type": kind, "items": _strict(schema.get("items"), depth + 1), **least}
    if kind not in _SCALARS:
        raise _InexpressibleError
    return {"type": kind, **({"format": schema["format"]} if schema.get("format") in _FORMATS else {})}


def _references(value: object) -> Iterator[str]:
    """Yield the names that a schema refers to, at any depth."""
    if is_object(value):
        if isinstance(name := value.get("$ref"), str):
            yield name
        for below in value.values():
            yield from _references(below)
    elif is_array(value):
        for below in value:
            yield from _references(below)


def _is_cyclic(name: str, schema: JsonObject, above: tuple[str, ...]) -> bool:
    """Return True if a definition refers to itself, or is not in the schema."""
    sign, _, path = name.partition("/")
    folder, _, key = path.partition("/")
    table: object = schema.get(folder)
    if sign != "#" or folder not in _DEFINITIONS or not is_object(table) or key not in table or name in above:
        return True
    return any(_is_cyclic(one, schema, (*above, name)) for one in _references(table[key]))
