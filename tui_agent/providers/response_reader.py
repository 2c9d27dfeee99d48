"""Conversion of the API's stream events into the engine's.

Arguments are parsed once, when their block ends. A block that never ends is reported as cut if the model stopped there,
and not at all if the stream broke off. An answer is complete only with a stop reason, which comes after all content.

A call with valid arguments is reported at once, so that a safe one can start while the model still streams. A call with
invalid arguments waits for the next event, which shows whether the output limit cut it (`cut`) or the model wrote
invalid JSON (`malformed`). Calls reported before the limit was hit are not marked; after `StreamEnded("max_tokens")` or
`StreamEnded("model_context_window_exceeded")` the loop runs no call of the message.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from tui_agent.protocol.messages import (
    JsonObject,
    StopReason,
    ThinkingBlock,
    ToolCall,
    Usage,
    is_array,
    is_object,
    new_id,
    parse_tool_call,
)
from tui_agent.protocol.provider import (
    Cited,
    StreamEnded,
    StreamEvent,
    StreamStarted,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    UsageReported,
    WebSearched,
    WebSource,
)

_OTHER_NAMES: dict[StopReason, str] = {
    "max_tokens": "length max_output_tokens max_completion_tokens max_new_tokens max_length token_limit",
    "end_turn": "stop eos eos_token eot end_of_turn end complete completed endoftext",
    "tool_use": "tool_calls tool_call function_call",
    "pause_turn": "pause paused",
    "model_context_window_exceeded": "model_length context_length context_length_exceeded context_window_exceeded "
    "context_window context_limit",
    "refusal": "content_filter content_filtered safety guardrail_intervened prohibited_content blocklist recitation "
    "spii sensitive",
}
"""Names that other APIs give to stop reasons; converting servers pass them on."""
_STOP_REASONS: dict[str, StopReason] = {
    **{reason: reason for reason in get_args(StopReason)},
    **{name: reason for reason, names in _OTHER_NAMES.items() for name in names.split()},
}
_CUTTING: tuple[StopReason, ...] = ("max_tokens", "model_context_window_exceeded")


@dataclass(slots=True)
class _Block:
    """A content block whose stream has not ended."""

    kind: str
    index: int
    call_id: str = ""
    name: str = ""
    given: JsonObject = field(default_factory=dict[str, Any])
    """Arguments in the block's start event, from servers that do not stream arguments."""
    pieces: list[str] = field(default_factory=list[str])
    signature: str = ""
    data: str = ""

    def to_call(self) -> ToolCall:
        """Return the call with its arguments parsed."""
        # The API itself begins each block with an empty object and streams the arguments.
        if self.given and not any(self.pieces):
            return ToolCall(id=self.call_id, name=self.name, arguments=self.given)
        return parse_tool_call(self.call_id, self.name, "".join(self.pieces))


class ResponseReader:
    """Reader of the events of one answer."""

    def __init__(self, is_taken: Callable[[str], bool]) -> None:
        """
        Args:
            is_taken: returns True if a call of the conversation already has the given id.
        """
        self.complete = False
        """True once the model has finished; a stream that ends before is cut."""
        self._is_taken = is_taken
        self._ids: set[str] = set()
        self._usage = Usage()
        self._open: dict[int, _Block] = {}
        self._queries: dict[str, str] = {}
        """Queries of the endpoint's searches, by id of their call."""
        self._unread: list[_Block] = []
        """Ended calls with invalid arguments."""
        self._stop_reason: StopReason | None = None
        self._detail = ""
        self._handlers: dict[str, Callable[[JsonObject], list[StreamEvent]]] = {
            "message_start": self._message_started,
            "content_block_start": self._block_started,
            "content_block_delta": self._block_delta,
            "content_block_stop": self._block_stopped,
            "message_delta": self._message_delta,
            "message_stop": self._message_stopped,
        }

    def read(self, event: JsonObject) -> list[StreamEvent]:
        """Return the engine's events for one event of the API; empty for an unknown one, or until more has arrived."""
        handler = self._handlers.get(text_in(event, "type"))
        return handler(event) if handler else []

    def knows(self, event: JsonObject) -> bool:
        """True if an event is one of the API's."""
        return text_in(event, "type") in self._handlers

    def finish(self) -> list[StreamEvent]:
        """Return the last events of an answer whose stream ended without `message_stop`; none if the answer was cut."""
        # The end of an open call or thought was lost. Text needs no end, and blocks that stay open at the output limit
        # were reported as cut before.
        is_torn = any(block.kind != "text" for block in self._open.values())
        # The reason for stopping comes after everything else, and another request would cost twice.
        return [] if self._stop_reason is None or is_torn else self._message_stopped({})

    def _message_started(self, event: JsonObject) -> list[StreamEvent]:
        message = object_in(event, "message")
        self._usage = _usage(self._usage, message.get("usage"))
        return [StreamStarted(text_in(message, "model"), self._usage)]

    def _block_started(self, event: JsonObject) -> list[StreamEvent]:
        # Another block follows, so it was not the output limit that left the arguments invalid.
        found = self._flush_unread(cut=False)
        content = object_in(event, "content_block")
        block = _Block(text_in(content, "type"), _index(event))
        self._open[block.index] = block
        match block.kind:
            case "tool_use":
                block.call_id = self._fresh_id(text_in(content, "id"))
                block.name = text_in(content, "name")
                block.given = object_in(content, "input")
                found.append(ToolCallStarted(block.call_id, block.name, block.index))
            case "server_tool_use":
                block.call_id, block.given = text_in(content, "id"), object_in(content, "input")
            case "web_search_tool_result":
                found.append(self._searched(block.index, content))
            case "text" if text_in(content, "text"):
                found.append(TextDelta(content["text"], block.index))
            case "thinking":
                block.signature = text_in(content, "signature")
                if text := text_in(content, "thinking"):
                    found += self._more_thinking(block, text)
            case "redacted_thinking":
                block.data = text_in(content, "data")
            case _:
                pass
        return found

    def _block_delta(self, event: JsonObject) -> list[StreamEvent]:
        delta = object_in(event, "delta")
        index = _index(event)
        match delta.get("type"):
            case "text_delta":
                text = text_in(delta, "text")
                return [TextDelta(text, index)] if text else []
            case "input_json_delta":
                return self._more_arguments(index, text_in(delta, "partial_json"))
            case "citations_delta":
                source = _source(delta.get("citation"))
                return [] if source is None else [Cited(source, index)]
            case "thinking_delta":
                block = self._block_for(index, "thinking")
                text = text_in(delta, "thinking")
                return self._more_thinking(block, text) if block and text else []
            case "signature_delta":
                if block := self._block_for(index, "thinking"):
                    block.signature = text_in(delta, "signature")
            case _:
                pass
        return []

    def _block_stopped(self, event: JsonObject) -> list[StreamEvent]:
        block = self._open.pop(_index(event), None)
        match block:
            case _Block(kind="tool_use"):
                call = block.to_call()
                if call.malformed is None:
                    return [ToolCallEnded(call, block.index)]
                self._unread.append(block)
            case _Block(kind="server_tool_use"):
                self._queries[block.call_id] = text_in(block.to_call().arguments, "query")
            case _Block(kind="thinking"):
                thinking = ThinkingBlock(thinking="".join(block.pieces), signature=block.signature)
                return [ThinkingEnded(thinking, block.index)]
            case _Block(kind="redacted_thinking"):
                return [ThinkingEnded(ThinkingBlock(thinking="", redacted=block.data), block.index)]
            case _:
                pass
        return []

    def _message_delta(self, event: JsonObject) -> list[StreamEvent]:
        delta = object_in(event, "delta")
        self._usage = _usage(self._usage, event.get("usage"))
        found: list[StreamEvent] = []
        if reason := text_in(delta, "stop_reason"):
            self._stop_reason = stop_reason_named(reason)
            self._detail = _detail(delta, reason)
            found = self._flush_unread(cut=self._stop_reason in _CUTTING)
            if self._stop_reason in _CUTTING:
                found += self._flush_open()
        return [*found, UsageReported(self._usage)]

    def _message_stopped(self, _: JsonObject) -> list[StreamEvent]:
        if self.complete:
            return []
        self.complete = True
        found = self._flush_unread(cut=False) + self._flush_open()
        reason, detail = self._stop_reason, self._detail
        if reason is None:
            reason, detail = "other", "the model gave no reason for stopping"
        return [*found, StreamEnded(reason, detail)]

    def _more_thinking(self, block: _Block, text: str) -> list[StreamEvent]:
        block.pieces.append(text)
        return [ThinkingDelta(text, block.index)]

    def _searched(self, index: int, content: JsonObject) -> WebSearched:
        """Return the result of a search that the endpoint made; a list of pages, or an error."""
        query, results = self._queries.get(text_in(content, "tool_use_id"), ""), content.get("content")
        if is_array(results):
            return WebSearched(query, tuple(source for one in results if (source := _source(one))), block=index)
        error = text_in(results, "error_code") if is_object(results) else ""
        return WebSearched(query, error=error or "unavailable", block=index)

    def _more_arguments(self, index: int, fragment: str) -> list[StreamEvent]:
        opened = self._open.get(index)
        if opened is not None and opened.kind == "server_tool_use":
            opened.pieces.append(fragment)
            return []
        block = self._block_for(index, "tool_use")
        if block is None or not fragment:
            return []
        block.pieces.append(fragment)
        return [ToolCallDelta(block.call_id, fragment, block.index)]

    def _block_for(self, index: int, kind: str) -> _Block | None:
        """Return the block of a delta; if the index is wrong, as some servers send it, the newest open one."""
        block = self._open.get(index)
        if block is not None and block.kind == kind:
            return block
        return next((block for block in reversed(self._open.values()) if block.kind == kind), None)

    def _flush_unread(self, *, cut: bool) -> list[StreamEvent]:
        """Return the ends of calls with invalid arguments."""
        found: list[StreamEvent] = []
        for block in self._unread:
            call = ToolCall(id=block.call_id, name=block.name, cut=True) if cut else block.to_call()
            found.append(ToolCallEnded(call, block.index))
        self._unread.clear()
        return found

    def _flush_open(self) -> list[StreamEvent]:
        """Return the ends of calls in which the model stopped."""
        found: list[StreamEvent] = []
        for block in self._open.values():
            if block.kind == "tool_use":
                call = ToolCall(id=block.call_id, name=block.name, cut=True)
                found.append(ToolCallEnded(call, block.index))
        self._open.clear()
        return found

    def _fresh_id(self, call_id: str) -> str:
        """Return the call's id, or a new one if it is missing or already taken."""
        # A result names its call by the id, and some servers count anew in each answer.
        if not call_id or call_id in self._ids or self._is_taken(call_id):
            call_id = new_id("toolu")
        self._ids.add(call_id)
        return call_id


def _source(found: object) -> WebSource | None:
    """Return a page that was found or cited; None for anything else."""
    if not is_object(found) or not (url := text_in(found, "url")):
        return None
    return WebSource(url, text_in(found, "title"), text_in(found, "cited_text"))


def stop_reason_named(name: str) -> StopReason:
    """Return the stop reason that any API names so; `other` for an unknown one."""
    return _STOP_REASONS.get(name.strip().lower(), "other")


def _detail(delta: JsonObject, reason: str) -> str:
    """Return the model's explanation of a refusal, or the name of a stop reason that does not say enough."""
    details = object_in(delta, "stop_details")
    words = text_in(details, "explanation") or text_in(details, "category")
    is_plain = stop_reason_named(reason) not in ("other", "refusal") or reason.lower() in get_args(StopReason)
    return words or ("" if is_plain else reason)


def _usage(before: Usage, reported: object) -> Usage:
    """Return the updated counts; the API reports running totals, and only those that changed."""
    if not is_object(reported):
        return before
    names = {
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
        "cache_read_tokens": "cache_read_input_tokens",
        "cache_write_tokens": "cache_creation_input_tokens",
    }
    counts = {ours: reported.get(theirs) for ours, theirs in names.items()}
    return before.model_copy(update={name: count for name, count in counts.items() if isinstance(count, int)})


def object_in(holder: JsonObject, name: str) -> JsonObject:
    """Return a part of a JSON object that is an object; an empty one for anything else."""
    value = holder.get(name)
    return value if is_object(value) else {}


def text_in(holder: JsonObject, name: str) -> str:
    """Return a part of a JSON object that is text; empty for anything else."""
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def _index(event: JsonObject) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0
