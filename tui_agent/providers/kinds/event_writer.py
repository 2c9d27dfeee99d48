"""Events of the Messages API for an answer in another form, so that one reader serves all APIs."""

from dataclasses import dataclass
from typing import Literal

from tui_agent.protocol.messages import JsonObject, is_object

Flow = Literal["text", "thinking"]


@dataclass(slots=True)
class EventWriter:
    """Writer of the events of one answer. Text and thoughts follow each other; calls may be open beside them."""

    has_begun: bool = False
    has_calls: bool = False
    is_complete: bool = False
    _next: int = 0
    _flow: tuple[Flow, int] | None = None
    """Kind and index of the open text or thought."""
    _signature: str = ""

    def begin(self, model: object) -> list[JsonObject]:
        """Return the first event; nothing if it was written."""
        if self.has_begun:
            return []
        self.has_begun = True
        return [{"type": "message_start", "message": {"model": model if isinstance(model, str) else ""}}]

    def flow(self, kind: Flow, text: str) -> list[JsonObject]:
        """Return the events for the next part of a text or a thought."""
        if not text:
            return []
        found: list[JsonObject] = []
        if self._flow is None or self._flow[0] != kind:
            found = [*self.end_flow(), _start(self._next, {"type": kind})]
            self._flow = kind, self._take()
        found.append(_delta(self._flow[1], {"type": f"{kind}_delta", kind: text}))
        return found

    def end_flow(self, signature: str = "") -> list[JsonObject]:
        """Return the events for the end of the open text or thought; nothing without one."""
        if self._flow is None:
            return []
        (kind, index), self._flow = self._flow, None
        signed = [_delta(index, {"type": "signature_delta", "signature": signature})]
        return [*(signed if signature and kind == "thinking" else []), _stop(index)]

    def signed_thought(self, signature: str) -> list[JsonObject]:
        """Return the events for the end of a thought with its signature; one without text if none is open."""
        if self._flow is not None and self._flow[0] == "thinking":
            return self.end_flow(signature)
        index = self._take()
        return [*self.end_flow(), _start(index, {"type": "thinking", "signature": signature}), _stop(index)]

    def begin_call(self, call_id: object, name: object) -> tuple[int, list[JsonObject]]:
        """Return the index of a call, and the events for its beginning."""
        self.has_calls = True
        index = self._take()
        block = {"type": "tool_use", "id": call_id if isinstance(call_id, str) else "", "name": name}
        return index, [*self.end_flow(), _start(index, block)]

    def call_text(self, index: int, text: str) -> list[JsonObject]:
        """Return the event for the next part of a call's arguments."""
        return [_delta(index, {"type": "input_json_delta", "partial_json": text})] if text else []

    def end_call(self, index: int) -> list[JsonObject]:
        """Return the event for the end of a call."""
        return [_stop(index)]

    def stop(self, reason: str, detail: str = "") -> list[JsonObject]:
        """Return the event with the reason why the model stopped."""
        details = {"stop_details": {"explanation": detail}} if detail else {}
        return [*self.end_flow(), {"type": "message_delta", "delta": {"stop_reason": reason, **details}}]

    def usage(self, reported: object) -> list[JsonObject]:
        """Return the event with the tokens, which servers count under several names."""
        counts = usage_of(reported)
        return [{"type": "message_delta", "delta": {}, "usage": counts}] if counts else []

    def end(self) -> list[JsonObject]:
        """Return the last event."""
        self.is_complete = True
        return [{"type": "message_stop"}]

    def _take(self) -> int:
        self._next += 1
        return self._next - 1


def usage_of(reported: object) -> JsonObject:
    """Return the tokens of an answer under the names of the Messages API; empty if the server did not count them."""
    if not is_object(reported):
        return {}
    total = _count(reported, "prompt_tokens", "input_tokens")
    written = _count(reported, "completion_tokens", "output_tokens")
    details = reported.get("prompt_tokens_details") or reported.get("input_tokens_details")
    cached = _count(details, "cached_tokens") if is_object(details) else None
    cached = _count(reported, "prompt_cache_hit_tokens", "cached_tokens") if cached is None else cached
    # The total has those of the cache.
    read = min(cached or 0, total or 0)
    counts = {
        "input_tokens": None if total is None else total - read,
        "output_tokens": written,
        "cache_read_input_tokens": read if cached is not None else None,
    }
    return {name: count for name, count in counts.items() if count is not None}


def _count(holder: JsonObject, *names: str) -> int | None:
    found = (holder.get(name) for name in names)
    return next((count for count in found if isinstance(count, int) and count >= 0), None)


def _start(index: int, block: JsonObject) -> JsonObject:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: JsonObject) -> JsonObject:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _stop(index: int) -> JsonObject:
    return {"type": "content_block_stop", "index": index}
