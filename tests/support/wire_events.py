"""Short constructors for the events of a streamed answer."""

from typing import Any

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.provider import StreamEvent
from tui_agent.providers.response_reader import ResponseReader


def started(**usage: int) -> JsonObject:
    return {"type": "message_start", "message": {"id": "msg_1", "model": "some-model", "usage": usage}}


def opened(index: int, kind: str, **fields: Any) -> JsonObject:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def delta(index: int, kind: str, **fields: Any) -> JsonObject:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def closed(index: int) -> JsonObject:
    return {"type": "content_block_stop", "index": index}


def stopped(reason: str | None, details: JsonObject | None = None, **usage: Any) -> JsonObject:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_details": details}, "usage": usage}


STOP: JsonObject = {"type": "message_stop"}


def text_block(index: int, text: str) -> list[JsonObject]:
    return [opened(index, "text", text=""), delta(index, "text_delta", text=text), closed(index)]


def call_block(index: int, call_id: str, name: str, raw: str, *, ended: bool = True) -> list[JsonObject]:
    events = [opened(index, "tool_use", id=call_id, name=name, input={}), arguments(index, raw)]
    return [*events, closed(index)] if ended else events


def arguments(index: int, raw: str) -> JsonObject:
    return delta(index, "input_json_delta", partial_json=raw)


def told(*events: JsonObject, taken: tuple[str, ...] = ()) -> list[StreamEvent]:
    """Return the facts that the events contain."""
    reader = ResponseReader(lambda call_id: call_id in taken)
    return [fact for event in events for fact in reader.read(event)]
