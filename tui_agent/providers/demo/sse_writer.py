"""Server-sent events of a model's answer, in the format of the Messages API."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tui_agent.protocol.messages import JsonObject


@dataclass(frozen=True, slots=True)
class TextOut:
    """A block of text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingOut:
    """A block of reasoning."""

    thinking: str
    signature: str = "c2lnbmF0dXJl"


@dataclass(frozen=True, slots=True)
class RedactedOut:
    """An encrypted block of reasoning."""

    data: str


@dataclass(frozen=True, slots=True)
class ToolUseOut:
    """A tool call; the argument text is streamed unchanged, even if it is not valid JSON."""

    call_id: str
    name: str
    arguments: str


BlockOut: TypeAlias = TextOut | ThinkingOut | RedactedOut | ToolUseOut


@dataclass(frozen=True, slots=True)
class UsageOut:
    """Token counts, as the API reports them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0

    def opening(self) -> JsonObject:
        """Return the counts known at the start of the answer."""
        return {
            "input_tokens": self.input_tokens,
            "cache_read_input_tokens": self.cache_read_input_tokens,
            "cache_creation_input_tokens": self.cache_creation_input_tokens,
            "output_tokens": 1,
        }


SSE_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
"""Headers of a streamed answer."""

_TOKEN = re.compile(r"\s*\S{1,12}|\s+")
"""Piece of text for one frame if no size is given: about a word."""


def frame(event: str, data: JsonObject) -> bytes:
    """Return the bytes of one event."""
    body = json.dumps({"type": event, **data}, ensure_ascii=False)
    return f"event: {event}\ndata: {body}\n\n".encode("utf-8", "replace")


def opening_frames(message_id: str, model: str, usage: UsageOut) -> Iterator[bytes]:
    """Yield the frames before the first block."""
    message: JsonObject = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage.opening(),
    }
    yield frame("message_start", {"message": message})
    yield frame("ping", {})


def block_frames(index: int, block: BlockOut, piece: int | None = None) -> Iterator[bytes]:
    """Yield the frames of one block.

    Args:
        index: position of the block in the answer.
        block: the block.
        piece: characters per delta; None: about a word.
    """
    yield from open_block_frames(index, block, piece)
    yield frame("content_block_stop", {"index": index})


def open_block_frames(index: int, block: BlockOut, piece: int | None = None) -> Iterator[bytes]:
    """Yield the frames of one block except its last."""
    match block:
        case TextOut(text):
            yield _start(index, {"type": "text", "text": ""})
            for part in pieces(text, piece):
                yield _delta(index, {"type": "text_delta", "text": part})
        case ThinkingOut(thinking, signature):
            yield _start(index, {"type": "thinking", "thinking": "", "signature": ""})
            for part in pieces(thinking, piece):
                yield _delta(index, {"type": "thinking_delta", "thinking": part})
            yield _delta(index, {"type": "signature_delta", "signature": signature})
        case RedactedOut(data):
            yield _start(index, {"type": "redacted_thinking", "data": data})
        case ToolUseOut(call_id, name, arguments):
            yield _start(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}})
            for part in ["", *pieces(arguments, piece)]:
                yield _delta(index, {"type": "input_json_delta", "partial_json": part})


def closing_frames(
    stop_reason: str | None, output_tokens: int, stop_details: JsonObject | None = None
) -> Iterator[bytes]:
    """Yield the frames after the last block."""
    delta: JsonObject = {"stop_reason": stop_reason, "stop_sequence": None}
    if stop_details is not None:
        delta["stop_details"] = stop_details
    yield frame("message_delta", {"delta": delta, "usage": {"output_tokens": output_tokens}})
    yield frame("message_stop", {})


def error_body(kind: str, message: str) -> JsonObject:
    """Return the body of the API's answer to a failed request."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def error_frame(kind: str, message: str) -> bytes:
    """Return the frame of an error in the middle of a stream."""
    return frame("error", {"error": {"type": kind, "message": message}})


def pieces(text: str, size: int | None) -> list[str]:
    """Split `text` into pieces for streaming."""
    if size is None:
        return _TOKEN.findall(text)
    return [text[start : start + size] for start in range(0, len(text), size)]


def _start(index: int, block: JsonObject) -> bytes:
    return frame("content_block_start", {"index": index, "content_block": block})


def _delta(index: int, delta: JsonObject) -> bytes:
    return frame("content_block_delta", {"index": index, "delta": delta})
