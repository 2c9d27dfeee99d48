"""Coercion of untrusted data to JSON, so that events can be published, stored and sent whatever a tool returns."""

import math
import re
from collections.abc import Collection
from functools import partial
from typing import Any, TypeGuard

from tui_agent.protocol.messages import (
    MAX_NESTING,
    DocumentBlock,
    JsonObject,
    TextBlock,
    UserBlock,
    is_array,
    is_object,
)
from tui_agent.protocol.reports import Metric
from tui_agent.protocol.tool import ToolResult

from .untrusted_calls import Crash, call_or_default, copy_of, try_call

NOT_JSON_TEXT = "arguments are not JSON"
"""Text about arguments that events and journals cannot hold."""

_MAX_BITS = 10_000
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def with_json_details(result: ToolResult) -> ToolResult:
    """Return the result with a copy of its details that is JSON."""
    return result if result.details is None else result.model_copy(update={"details": plain(result.details)})


def plain(value: JsonObject) -> JsonObject:
    """Return a copy as JSON: tuples and sets become lists, self-references an ellipsis, other values text."""
    if is_json_value(value):
        return copy_of(value)
    made = try_call(partial(_coerced, value))
    return {} if isinstance(made, Crash) else made


def coerce_metrics(metrics: dict[str, Any]) -> dict[str, Metric]:
    """Return metrics as `Metric`, also where a tool assigned a bare value."""
    return {_text_of(name): _metric(value) for name, value in metrics.items()}


def replace_lone_surrogates(text: str) -> str:
    """Return the text with surrogate pairs joined and lone ones replaced, which no request or journal can hold."""
    return text if _is_whole(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_block(block: UserBlock) -> UserBlock:
    """Return a block without lone surrogates in its text or its name."""
    match block:
        case TextBlock(text=text):
            return block if _is_whole(text) else TextBlock(text=replace_lone_surrogates(text))
        case DocumentBlock(data=data, name=name) if not (_is_whole(data) and _is_whole(name)):
            texts = {"data": replace_lone_surrogates(data), "name": replace_lone_surrogates(name)}
            return block.model_copy(update=texts)
        case _:
            return block


def is_json_value(value: object, levels: int = MAX_NESTING) -> bool:
    """Return True if a value is JSON, with at most `levels` levels, that events and journals can hold."""
    # Asked several times a call: a loop costs a fraction of a recursion.
    pending: list[tuple[object, int]] = [(value, levels)]
    while pending:
        item, left = pending.pop()
        if item is None:
            continue
        if isinstance(item, str):
            if not item.isascii() and _LONE_SURROGATE.search(item):
                return False
        elif isinstance(item, int):
            if item.bit_length() > _MAX_BITS:
                return False
        elif isinstance(item, float):
            if not math.isfinite(item):
                return False
        elif left <= 0:
            return False
        elif is_object(item):
            for key, inner in item.items():
                if not isinstance(key, str) or (not key.isascii() and _LONE_SURROGATE.search(key)):  # pyright: ignore[reportUnnecessaryIsInstance] — foreign
                    return False
                pending.append((inner, left - 1))
        elif is_array(item):
            pending.extend((inner, left - 1) for inner in item)
        else:
            return False
    return True


def _coerced(value: Any, around: tuple[int, ...] = ()) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    if isinstance(value, int):
        # Python refuses to write longer ones as decimals.
        return value if value.bit_length() <= _MAX_BITS else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if len(around) >= MAX_NESTING or id(value) in around:
        return "…"
    inside = (*around, id(value))
    if is_object(value):
        return {_text_of(key): _coerced(inner, inside) for key, inner in value.items()}
    if is_array(value) or _is_collection(value):
        return [_coerced(inner, inside) for inner in value]
    return _text_of(value)


def _text_of(value: object) -> str:
    return replace_lone_surrogates(call_or_default(str, value, otherwise=type(value).__name__))


def _is_whole(text: str) -> bool:
    return text.isascii() or not _LONE_SURROGATE.search(text)


def _is_collection(value: object) -> TypeGuard[Collection[Any]]:
    return isinstance(value, tuple | set | frozenset)


def _metric(value: object) -> Metric:
    if is_object(value) and value.keys() <= Metric.model_fields.keys():
        # The form that S4-9 allows.
        made = try_call(Metric.model_validate, value)
        value = value if isinstance(made, Crash) else made
    if not isinstance(value, Metric):
        value = Metric(value=value if isinstance(value, str | bool | int | float) else _text_of(value))
    if isinstance(value.value, float) and not math.isfinite(value.value):
        return value.model_copy(update={"value": str(value.value)})
    if isinstance(value.value, str) and not _is_whole(value.value):
        return value.model_copy(update={"value": replace_lone_surrogates(value.value)})
    return value
