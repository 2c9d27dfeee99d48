"""Coercion of results to JSON, so that events can be published, stored and sent whatever comes from outside."""

import json
import re
import reprlib
from collections.abc import Set
from typing import Any, cast

from pydantic import ValidationError

from tui_agent.protocol.messages import (
    MAX_NESTING,
    DocumentBlock,
    JsonObject,
    TextBlock,
    UserBlock,
    is_object,
    nests_deeper,
)
from tui_agent.protocol.reports import Metric
from tui_agent.protocol.tool import ToolResult

NOT_JSON_TEXT = "arguments are not JSON"
"""Text about arguments that events and journals cannot hold."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Each call is checked with it, and `json.dumps` would make a new one each time.
_STRICT = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def with_json_details(result: ToolResult) -> ToolResult:
    """Return the result with a copy of its details that is JSON."""
    return result if result.details is None else result.model_copy(update={"details": plain(result.details)})


def fit_for_journal(result: ToolResult) -> ToolResult:
    """Return a result whose details are JSON and whose texts have no lone surrogates: it passes the one border to
    events, journals and requests, whether a tool, a hook or the user supplied it."""
    content = tuple(map(whole_block, result.content))
    result = result if content == result.content else result.model_copy(update={"content": content})
    return with_json_details(result)


def plain(value: JsonObject) -> JsonObject:
    """Return a copy as JSON: sets become lists, other values text. Lone surrogates are replaced.

    An object that contains itself or nests too deeply becomes `{"value": …}` with its shortened `repr`.
    """
    try:
        text = replace_lone_surrogates(json.dumps(value, ensure_ascii=False, default=_as_json))
        made = json.loads(text, parse_constant=str)
    except (TypeError, ValueError, RecursionError):
        made = None
    # What contains itself has no JSON form, and a journal with deeper values could not be read again.
    return {"value": reprlib.repr(value)} if made is None or nests_deeper(made) else made


def coerce_metrics(metrics: dict[str, Any]) -> dict[str, Metric]:
    """Return metrics as `Metric`, also where a tool assigned a bare value or the dict of S4-9."""
    return {str(name): _metric(value) for name, value in metrics.items()}


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


def is_json_value(value: object) -> bool:
    """Return True if a value is JSON that events and journals can hold."""
    try:
        text = _STRICT.encode(value)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return False
    # With fewer brackets, it cannot nest too deeply.
    return text.count("{") + text.count("[") <= MAX_NESTING or not nests_deeper(value)


def _as_json(value: object) -> object:
    return list(cast(Set[object], value)) if isinstance(value, Set) else str(value)


def _is_whole(text: str) -> bool:
    return text.isascii() or not _LONE_SURROGATE.search(text)


def _metric(value: object) -> Metric:
    if isinstance(value, Metric):
        return value
    try:
        return Metric.model_validate(value if is_object(value) else {"value": value})
    except ValidationError:
        return Metric(value=str(value))
