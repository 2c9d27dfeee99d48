"""Conversion of messages into content blocks of the Messages API, without anything the API would refuse.

Only the request is cleaned: calls run, and the screen shows them, with their original text.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator

from tui_agent.protocol.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserBlock,
    UserMessage,
    is_array,
    is_object,
)
from tui_agent.protocol.visible_text import without_sequences

from .model_catalog import is_of_vendor

EMPTY_MESSAGE = "(empty message)"
EMPTY_RESULT = "(no output)"

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 128
_LONGEST_TITLE = 255


def blocks_of(message: Message) -> list[JsonObject]:
    """Return the content blocks of a message; none only for an assistant message without content.

    A `notice` is marked as a message of the system, so that the model does not take it for the user's. Reasoning
    without a signature is left out, because the API would refuse it.
    """
    match message:
        case UserMessage():
            return _user_blocks(message) or [_text(EMPTY_MESSAGE)]
        case ToolResultMessage():
            return [_result_block(message)]
        case AssistantMessage():
            return [wire for block in message.content if (wire := _assistant_block(block)) is not None]


def encode(block: JsonObject) -> bytes:
    """Return compact JSON in valid UTF-8; lone surrogates become question marks, infinities and NaN become null."""
    try:
        text = json.dumps(block, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(block), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def wire_call_id(call_id: str) -> str:
    """Return the id with only characters the API accepts; valid ids stay as they are.

    The same id always gives the same result, so that a call and its result still match.
    """
    if call_id and not _NOT_IN_NAMES.search(call_id):
        return call_id
    tail = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_NOT_IN_NAMES.sub('_', call_id)}_{tail}"


def _user_blocks(message: UserMessage) -> list[JsonObject]:
    if message.kind == "notice":
        # The message that replaces a part of the conversation has the user's attachments.
        attached = tuple(block for block in message.content if not isinstance(block, TextBlock))
        notice = _text(f"<system-notice>\n{message.text}\n</system-notice>")
        return [notice, *_content_blocks(attached, is_output=False)]
    return _content_blocks(message.content, is_output=message.kind == "command")


def _content_blocks(content: tuple[UserBlock, ...], *, is_output: bool) -> list[JsonObject]:
    """Return blocks, without colours if they are output of a program; without blank text, which the API refuses."""
    blocks: list[JsonObject] = []
    for block in content:
        if isinstance(block, ImageBlock):
            source = {"type": "base64", "media_type": block.media_type, "data": block.data}
            blocks.append({"type": "image", "source": source})
        elif isinstance(block, DocumentBlock):
            blocks.append(_document(block))
        elif (text := without_sequences(block.text) if is_output else block.text).strip():
            blocks.append(_text(text))
    return blocks


def _result_block(message: ToolResultMessage) -> JsonObject:
    block: JsonObject = {
        "type": "tool_result",
        "tool_use_id": wire_call_id(message.call_id),
        "content": _content_blocks(message.content, is_output=message.is_terminal_output) or [_text(EMPTY_RESULT)],
    }
    if message.is_error:
        block["is_error"] = True
    return block


def _assistant_block(block: TextBlock | ThinkingBlock | ToolCall) -> JsonObject | None:
    match block:
        case TextBlock(text=text):
            return _text(text) if text.strip() else None
        case ThinkingBlock(redacted=str(data)):
            return {"type": "redacted_thinking", "data": data}
        case ThinkingBlock(thinking=thinking, signature=signature):
            if not signature or signature.startswith("{"):
                return None  # Not of this API.
            return {"type": "thinking", "thinking": thinking, "signature": signature}
        case ToolCall(id=call_id, name=name, arguments=arguments):
            wire_name = _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "unknown"
            return {
                "type": "tool_use",
                "id": wire_call_id(call_id),
                "name": wire_name,
                "input": arguments if is_object(arguments) else {},
            }


def _document(block: DocumentBlock) -> JsonObject:
    """Return a PDF as a document, and text as a text block, which every server takes."""
    if block.is_text:
        return _text(f"{block.label}\n{block.data}")
    source = {"type": "base64", "media_type": block.media_type, "data": block.data}
    title = {"title": block.name[:_LONGEST_TITLE]} if block.name else {}
    return {"type": "document", "source": source, **title}


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _finite(value: object) -> object:
    """Return the value with infinities and NaN, which JSON cannot express, replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_object(value):
        return {key: _finite(inner) for key, inner in value.items()}
    if is_array(value):
        return [_finite(inner) for inner in value]
    return value


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
