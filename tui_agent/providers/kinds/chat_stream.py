"""Answers of the Chat Completions API as events of the Messages API.

Servers differ: calls without ids or numbers, arguments as a whole or as an object, no usage, no reason for stopping,
no end mark, reasoning under several names.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.providers.provider_failures import ErrorFactory
from tui_agent.providers.response_decoder import DONE, ResponseDecoder

from .event_writer import EventWriter

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Fields with the model's reasoning, which the API itself does not have."""

_NOTHING: JsonObject = {"type": "ping"}
_STOP_NAMES = {
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "model_length": "length",
}
"""Reasons of some servers, by those of the API."""


@dataclass(slots=True)
class _Call:
    """A call whose arguments arrive."""

    index: int
    call_id: object
    text: str = ""

    @property
    def is_whole(self) -> bool:
        """True if nothing can follow its arguments."""
        if not self.text.rstrip().endswith("}"):
            return False
        try:
            return is_object(json.loads(self.text))
        except (ValueError, RecursionError):
            return False


class ChatDecoder(ResponseDecoder):
    """Parser of one answer."""

    def __init__(
        self,
        errors: ErrorFactory,
        request_id: str | None,
        is_taken: Callable[[str], bool],
        media_type: str = "",
        on_reasoning: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__(errors, request_id, is_taken, media_type)
        self._writer = EventWriter()
        self._on_reasoning = on_reasoning
        self._calls: dict[int, _Call] = {}
        self._reason = ""
        self._refusal = ""

    def translated(self, event: JsonObject) -> Iterable[JsonObject]:
        if event == DONE:
            return self._ended()
        choices: object = event.get("choices")
        usage: object = event.get("usage")
        if event.get("error") or not (is_array(choices) or is_object(usage)):
            return (event,)
        found = self._writer.begin(event.get("model"))
        choice: object = choices[0] if is_array(choices) and choices else None
        if is_object(choice):
            delta: object = choice.get("delta") or choice.get("message")
            if is_object(delta):
                found += self._delta(delta)
            usage = choice.get("usage") if usage is None else usage
            found += self._stopped(choice.get("finish_reason"))
        counted = self._writer.usage(usage)
        found += counted
        if self._reason and counted and not self._writer.is_complete:
            found += self._writer.end()
        return found or (_NOTHING,)

    def events_of(self, message: JsonObject) -> Iterable[JsonObject] | None:
        return (message, DONE) if is_array(message.get("choices")) else None

    def _ended(self) -> list[JsonObject]:
        """Return the events at the end mark; a server that sends it without a reason has finished all the same."""
        if self._writer.is_complete or not self._writer.has_begun:
            return [DONE]
        return [*([] if self._reason else self._stopped("stop")), *self._writer.end()]

    def _delta(self, delta: JsonObject) -> list[JsonObject]:
        found: list[JsonObject] = []
        for name in REASONING_FIELDS:
            if isinstance(text := delta.get(name), str) and text:
                found += self._writer.flow("thinking", text)
                if self._on_reasoning is not None:
                    self._on_reasoning(name)
                break
        content: object = delta.get("content")
        for part in content if is_array(content) else [content]:
            found += self._content(part)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refusal += refusal
            found += self._writer.flow("text", refusal)
        calls: object = delta.get("tool_calls")
        for place, call in enumerate(calls if is_array(calls) else ()):
            if is_object(call):
                found += self._call(place, call)
        return found

    def _content(self, part: object) -> list[JsonObject]:
        """Return the events for a text, or for a part of a list of texts and thoughts."""
        if isinstance(part, str):
            return self._writer.flow("text", part)
        if not is_object(part):
            return []
        thought: object = part.get("thinking")
        if is_array(thought):
            thought = "".join(str(one.get("text") or "") for one in thought if is_object(one))
        if isinstance(thought, str):
            return self._writer.flow("thinking", thought)
        return self._writer.flow("text", part["text"]) if isinstance(part.get("text"), str) else []

    def _call(self, place: int, part: JsonObject) -> list[JsonObject]:
        """Return the events for a part of a call; some servers give each call the number 0, or none at all."""
        function: object = part.get("function")
        function = function if is_object(function) else {}
        number: object = part.get("index")
        name, call_id = function.get("name"), part.get("id")
        if not isinstance(number, int):
            is_new = bool(name) and (call_id is None or all(call.call_id != call_id for call in self._calls.values()))
            number = max(self._calls, default=-1) + 1 if is_new else max(self._calls, default=place)
        known = self._calls.get(number)
        if known is None and not name:
            return []  # A late part of a call that has ended.
        is_other = known is not None and name and call_id and call_id != known.call_id
        found: list[JsonObject] = []
        if known is None or is_other:
            found += self._end_calls(is_other=bool(is_other), number=number)
            index, events = self._writer.begin_call(call_id, name if isinstance(name, str) else "")
            known = self._calls[number] = _Call(index, call_id)
            found += events
        arguments: object = function.get("arguments")
        text = json.dumps(arguments) if is_object(arguments) else arguments
        if isinstance(text, str) and text:
            known.text += text
            found += self._writer.call_text(known.index, text)
        return found

    def _end_calls(self, *, is_other: bool, number: int) -> list[JsonObject]:
        """Return the ends of calls before another one: those with whole arguments, which can run meanwhile."""
        ended = [place for place, call in self._calls.items() if call.is_whole or (is_other and place == number)]
        return [event for place in ended for event in self._writer.end_call(self._calls.pop(place).index)]

    def _stopped(self, reason: object) -> list[JsonObject]:
        if not isinstance(reason, str) or not reason or self._reason:
            return []
        self._reason = _STOP_NAMES.get(reason.lower(), reason.lower())
        found = [event for call in self._calls.values() for event in self._writer.end_call(call.index)]
        self._calls.clear()
        found = [*self._writer.end_flow(), *found]
        if self._refusal and self._reason == "stop":
            return [*found, *self._writer.stop("refusal", self._refusal)]
        if self._writer.has_calls and self._reason == "stop":
            # Several servers have no reason of its own for calls.
            return [*found, *self._writer.stop("tool_calls")]
        return [*found, *self._writer.stop(self._reason)]
