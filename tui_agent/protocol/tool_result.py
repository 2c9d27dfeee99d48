"""What a call gave, and how whatever a tool returns becomes that (C56)."""

import json
import reprlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from typing import cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from .messages import ImageBlock, JsonObject, TextBlock, UserBlock, Word, is_array, is_object, joined_text

RESULT_FIELDS = ("content", "details", "is_error", "terminate", "child_run_id")
"""What a dict may have that stands for a `ToolResult`; one that has anything else is data of the tool's own."""

_BLOCKS: TypeAdapter[list[UserBlock]] = TypeAdapter(list[UserBlock], config={"defer_build": True})


def _fields_of(value: object) -> object:
    """Return a model or a dataclass as a dict of its fields; of anything else that JSON does not know, its text."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_fields_of)


class ToolResult(Word):
    """What a call gave: blocks for the model, details for the screen (C56)."""

    content: tuple[UserBlock, ...] = ()
    details: JsonObject | None = None
    """Structured data for the screen; never sent to the model (S2-25)."""
    is_error: bool = False
    terminate: bool = False
    """Asks to end the run after this step (C48)."""
    child_run_id: str | None = None
    """Set by a tool that ran a sub-agent (S0-39)."""

    @classmethod
    def of_text(cls, text: str, *, is_error: bool = False, details: JsonObject | None = None) -> "ToolResult":
        """A result of one text block."""
        return cls(content=(TextBlock(text=text),), is_error=is_error, details=details)

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines (S0-31)."""
        return joined_text(self.content)


def as_tool_result(value: object) -> ToolResult:
    """Normalises what a tool returned (C56): a result or its fields as a dict, text, blocks, or anything else as JSON,
    models and dataclasses as their fields; `{"data": …}` stands for what is in it."""
    if isinstance(value, ToolResult):
        return value if _is_sound(value.content, value.details) else _result_of(dict(value))
    if value is None:
        return ToolResult()
    if isinstance(value, str):
        return ToolResult.of_text(value)
    if isinstance(value, TextBlock | ImageBlock):
        return ToolResult(content=(value,))
    if is_object(value) and set(value) == {"data"}:
        return as_tool_result(value["data"])
    if is_object(value) and "content" in value and set(value) <= set(RESULT_FIELDS):
        return _result_of(value)
    blocks = _as_blocks([value] if is_object(value) else value)
    return ToolResult(content=blocks) if blocks else ToolResult.of_text(_as_json(value))


def _is_sound(content: object, details: object) -> bool:
    """Whether a result holds what its type says, which one that was never validated need not."""
    if not isinstance(content, tuple) or not (details is None or is_object(details)):
        return False
    return all(isinstance(block, TextBlock | ImageBlock) for block in cast(tuple[object, ...], content))


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
    """The blocks of a list that holds nothing else, also as dicts with a `type` (S2-25); empty for anything else."""
    if not is_array(value) and not isinstance(value, tuple):
        return ()
    try:
        return tuple(_BLOCKS.validate_python(value))
    except ValidationError:
        return ()


def _as_json(value: object) -> str:
    writers: tuple[Callable[[object], str], ...] = (_ENCODER.encode, str, reprlib.repr)
    for write in writers:
        # It may hold itself, nest without end, or have keys and numbers that JSON has no word for.
        with suppress(ValueError, TypeError, RecursionError):
            return write(value)
    return type(value).__name__
