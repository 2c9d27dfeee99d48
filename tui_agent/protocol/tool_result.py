"""The result of a call, and the conversion of any returned value to it."""

import inspect
import json
import reprlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Set, ValuesView
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date, time
from enum import Enum
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from .errors import ToolError
from .messages import (
    DocumentBlock,
    FrozenModel,
    ImageBlock,
    JsonObject,
    TextBlock,
    UserBlock,
    is_array,
    is_object,
    joined_text,
)

RESULT_FIELDS = ("content", "details", "is_error", "terminate", "child_run_id")
"""Keys of a dict that is read as a `ToolResult`; a dict with any other key is data."""

ACCEPTED_PLAN = "accepted_plan"
"""Detail of a result with a plan that the user accepted; compaction keeps it."""
FINAL_TEXT = "final_text"
"""Detail of a result that ends the run, with the text that is the run's answer."""

_BLOCKS: TypeAdapter[list[UserBlock]] = TypeAdapter(list[UserBlock], config={"defer_build": True})
_RETURN_THESE = "Return text, bytes, JSON data, a model, content blocks or a ToolResult."


class ToolResult(FrozenModel):
    """Result of a call: blocks for the model, details for the screen."""

    content: tuple[UserBlock, ...] = ()
    details: JsonObject | None = None
    """Structured data for the screen; never sent to the model (S2-25). `outcome`, one line of text, is what the call
    brought, such as `12 matches in 4 files`: it is shown beside the call. With a true `terminal_output` the text is the
    output of a program: the screen shows its colours, and the model gets it without control sequences."""
    is_error: bool = False
    terminate: bool = False
    """True to end the run after this step."""
    child_run_id: str | None = None
    """Id of the run of a sub-agent, set by the tool that ran it (S0-39)."""

    @classmethod
    def of_text(cls, text: str, *, is_error: bool = False, details: JsonObject | None = None) -> "ToolResult":
        """Return a result of one text block."""
        return cls(content=(TextBlock(text=text),), is_error=is_error, details=details)

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines (S0-31)."""
        return joined_text(self.content)

    @property
    def size_bytes(self) -> int:
        """Bytes of the text as UTF-8 and of what is attached."""
        text = self.text
        size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        return size + sum(len(block.data) for block in self.content if not isinstance(block, TextBlock))


def as_tool_result(value: object) -> ToolResult:
    """Convert a tool's return value: a result or its fields as a dict, text, blocks, or any other value as JSON.

    None becomes an empty result, and `{"data": …}` is unwrapped. Bytes are decoded as UTF-8, with U+FFFD for invalid
    ones; for an image return an `ImageBlock`. A pydantic model or a dataclass becomes the dict of its fields, an object
    that JSON cannot express its `str`. An exception becomes an error, and so does an object without a value yet, such
    as a generator.
    """
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult()
    if isinstance(value, TextBlock | ImageBlock | DocumentBlock):
        return ToolResult(content=(value,))
    if isinstance(value, BaseException):
        return ToolResult.of_text(_error_text(value), is_error=True)
    if _is_unfinished(value):
        words = f"an object of type {type(value).__name__}, which is not a result"
        return ToolResult.of_text(f"The tool returned {words}. {_RETURN_THESE}", is_error=True)
    plain = _as_json_value(value)
    if isinstance(plain, str):
        return ToolResult.of_text(plain)
    if is_object(plain) and set(plain) == {"data"}:
        return as_tool_result(plain["data"])
    if is_object(plain) and "content" in plain and set(plain) <= set(RESULT_FIELDS):
        return _result_of(plain)
    blocks = _as_blocks([plain] if is_object(plain) else plain)
    return ToolResult(content=blocks) if blocks else ToolResult.of_text(_as_json(plain))


def _result_of(record: JsonObject) -> ToolResult:
    details, child = record.get("details"), record.get("child_run_id")
    content: object = record["content"]
    is_empty = (is_array(content) or isinstance(content, tuple)) and not content
    result = ToolResult() if is_empty else as_tool_result(record["content"])
    fields: JsonObject = {
        "is_error": bool(record.get("is_error")),
        "terminate": bool(record.get("terminate")),
        "details": details if details is None or is_object(details) else {"value": details},
        "child_run_id": child if isinstance(child, str) else None,
    }
    return result.model_copy(update=fields)


def _as_blocks(value: object) -> tuple[UserBlock, ...]:
    """Return the blocks of a list that contains only blocks, also as dicts with a `type` (S2-25); else nothing."""
    if not is_array(value) and not isinstance(value, tuple):
        return ()
    try:
        return tuple(_BLOCKS.validate_python(value))
    except ValidationError:
        return ()


def _is_unfinished(value: object) -> bool:
    """True for an object that must be run, iterated or awaited to get a result."""
    return isinstance(value, Iterator | AsyncIterator | Awaitable | type) or inspect.isroutine(value)


def _error_text(error: BaseException) -> str:
    """Return the text of an exception that a tool returned instead of raising it."""
    if isinstance(error, ToolError):
        return str(error)
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _as_json_value(value: object) -> object:
    """Convert an object to a JSON value; items of a dict or a list stay as they are."""
    if isinstance(value, str):
        # A subclass may print something else than its text.
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(cast(bytes, value)).decode("utf-8", "replace")
    if isinstance(value, Enum):
        return _as_json_value(value.value)
    if isinstance(value, int | float | list | tuple | dict):
        return cast(object, value)
    return _made_json_value(value)


def _made_json_value(value: object) -> object:
    """Convert an object without a direct JSON equivalent to a JSON value."""
    if isinstance(value, BaseModel):
        return _fields_of(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(cast(Mapping[object, object], value))
    if isinstance(value, Set):
        return _in_order(cast(Set[object], value))
    if isinstance(value, deque | range | ValuesView):
        return list(cast(Iterable[object], value))
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


def _fields_of(model: BaseModel) -> dict[str, object]:
    """Return the dump of a model, or its raw fields if a serializer of it fails."""
    with suppress(ValueError, TypeError, RecursionError):
        return model.model_dump(warnings=False)
    return dict(model)


def _in_order(values: Set[Any]) -> list[object]:
    """Return the members of a set in an order that is the same in every process."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _as_json(value: object) -> str:
    writers: tuple[Callable[[object], str], ...] = (_ENCODER.encode, str, reprlib.repr)
    for write in writers:
        # The value may contain itself, be nested too deeply, or have keys and numbers that JSON cannot express.
        with suppress(ValueError, TypeError, RecursionError):
            return write(value)
    return type(value).__name__


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_as_json_value)
