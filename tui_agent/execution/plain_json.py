"""Makes JSON of whatever foreign code gave as data: events must be told, kept and sent, whatever a tool puts into them
(engine §5.3).
"""

import math
from collections.abc import Collection
from typing import Any, TypeGuard

from tui_agent.protocol.messages import MOST_LEVELS, JsonObject, is_array, is_object
from tui_agent.protocol.reports import Metric
from tui_agent.protocol.tool import ToolResult


def plain_details(result: ToolResult) -> ToolResult:
    """The result with details that are JSON; the same object where they are."""
    if result.details is None or _is_plain(result.details):
        return result
    return result.model_copy(update={"details": plain(result.details)})


def plain(value: JsonObject) -> JsonObject:
    """The object as JSON; the same object where it is: tuples and sets become lists, all else that JSON has no word for
    becomes its text."""
    return value if _is_plain(value) else _made_plain(value)


def plain_metrics(metrics: dict[str, Any]) -> dict[str, Metric]:
    """Metrics as `Metric`, also where a tool wrote a bare value (C57)."""
    return {str(name): _metric(value) for name, value in metrics.items()}


def _is_plain(value: object, levels: int = MOST_LEVELS) -> bool:
    if value is None or isinstance(value, str | bool | int):
        return True
    if isinstance(value, float):
        return math.isfinite(value)
    if levels <= 0:
        return False
    if is_object(value):
        return all(_is_text(key) and _is_plain(inner, levels - 1) for key, inner in value.items())
    return is_array(value) and all(_is_plain(inner, levels - 1) for inner in value)


def _made_plain(value: Any, levels: int = MOST_LEVELS) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if levels <= 0:
        return "…"
    if is_object(value):
        return {str(key): _made_plain(inner, levels - 1) for key, inner in value.items()}
    if is_array(value) or _is_collection(value):
        return [_made_plain(inner, levels - 1) for inner in value]
    return str(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_collection(value: object) -> TypeGuard[Collection[Any]]:
    return isinstance(value, tuple | set | frozenset)


def _metric(value: object) -> Metric:
    if not isinstance(value, Metric):
        value = Metric(value=value if isinstance(value, str | bool | int | float) else str(value))
    if isinstance(value.value, float) and not math.isfinite(value.value):
        return value.model_copy(update={"value": str(value.value)})
    return value
