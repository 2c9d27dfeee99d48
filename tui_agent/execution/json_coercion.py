"""Makes JSON of whatever foreign code gave as data: events must be told, kept and sent, whatever a tool puts into them
(engine §5.3).
"""

import math
import re
from collections.abc import Collection
from functools import partial
from typing import Any, TypeGuard

from tui_agent.protocol.messages import MAX_NESTING, JsonObject, is_array, is_object
from tui_agent.protocol.reports import Metric
from tui_agent.protocol.tool import ToolResult

from .untrusted_calls import Crash, call_or_default, copy_of, try_call

NOT_JSON_TEXT = "arguments hold what is no JSON"
"""What is said of arguments that cannot be told or kept."""

_MAX_BITS = 10_000
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def with_json_details(result: ToolResult) -> ToolResult:
    """The result with details that are JSON, and shared with nobody who might still write into them."""
    return result if result.details is None else result.model_copy(update={"details": plain(result.details)})


def plain(value: JsonObject) -> JsonObject:
    """A copy of the object as JSON: tuples and sets become lists, what holds itself ends there, all else that JSON has
    no word for becomes its text."""
    if is_json_value(value):
        return copy_of(value)
    made = try_call(partial(_coerced, value))
    return {} if isinstance(made, Crash) else made


def coerce_metrics(metrics: dict[str, Any]) -> dict[str, Metric]:
    """Metrics as `Metric`, also where a tool wrote a bare value (C57)."""
    return {_text_of(name): _metric(value) for name, value in metrics.items()}


def replace_lone_surrogates(text: str) -> str:
    """The text with halves of surrogate pairs put together or replaced: they make requests and journals unreadable."""
    return text if _is_whole(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_json_value(value: object, levels: int = MAX_NESTING) -> bool:
    """Whether a value is JSON that can be told and kept."""
    if value is None:
        return True
    if isinstance(value, str):
        return _is_whole(value)
    if isinstance(value, int):
        return value.bit_length() <= _MAX_BITS
    if isinstance(value, float):
        return math.isfinite(value)
    if levels <= 0:
        return False
    if is_object(value):
        return all(_is_text(key) and is_json_value(inner, levels - 1) for key, inner in value.items())
    return is_array(value) and all(is_json_value(inner, levels - 1) for inner in value)


def _coerced(value: Any, around: tuple[int, ...] = ()) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    if isinstance(value, int):
        # Python writes no longer ones as decimals.
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


def _is_text(value: object) -> bool:
    return isinstance(value, str) and _is_whole(value)


def _is_whole(text: str) -> bool:
    return text.isascii() or not _HALF_PAIR.search(text)


def _is_collection(value: object) -> TypeGuard[Collection[Any]]:
    return isinstance(value, tuple | set | frozenset)


def _metric(value: object) -> Metric:
    if is_object(value) and value.keys() <= Metric.model_fields.keys():
        # The form of S4-9.
        made = try_call(Metric.model_validate, value)
        value = value if isinstance(made, Crash) else made
    if not isinstance(value, Metric):
        value = Metric(value=value if isinstance(value, str | bool | int | float) else _text_of(value))
    if isinstance(value.value, float) and not math.isfinite(value.value):
        return value.model_copy(update={"value": str(value.value)})
    if isinstance(value.value, str) and not _is_whole(value.value):
        return value.model_copy(update={"value": replace_lone_surrogates(value.value)})
    return value
