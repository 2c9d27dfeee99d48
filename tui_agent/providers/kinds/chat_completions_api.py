"""The Chat Completions API: requests, and answers as events of the Messages API.

Servers differ in their answers: calls without ids or numbers, arguments as a whole or as an object, no usage, no reason
for stopping, no end mark, reasoning under several names."""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tui_agent.protocol.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    ThinkingBlock,
    ToolResultMessage,
    UserMessage,
    is_array,
    is_object,
)
from tui_agent.protocol.provider import ModelRequest, SystemPart, ThinkingForm
from tui_agent.protocol.tool import ToolSpec
from tui_agent.providers.provider_failures import ErrorFactory
from tui_agent.providers.request_builder import EFFORTS, RequestBuilder, RequestSettings
from tui_agent.providers.response_decoder import DONE, ResponseDecoder
from tui_agent.providers.wire_blocks import blocks_of, encode

from .event_writer import EventWriter

NEWER_LIMIT = "max_completion_tokens"
"""Field with the longest answer that the API itself wants; other servers may know only the older one."""
_OLDER_LIMIT = "max_tokens"
_NEEDED = frozenset({"model", "messages", "input", "stream"})
_CONVERSATIONS = 16


@dataclass(frozen=True, slots=True)
class Rendered:
    """A message in the form of the API."""

    message: Message
    json: bytes = b""
    """A whole message; empty for one of the user, whose parts may join those of its neighbours."""
    parts: tuple[JsonObject, ...] = ()
    """Parts of a message of the user; for a result, its pictures, which the API takes only from a user."""


class ChatRequestBuilder(RequestBuilder):
    """Builder of request bodies, which encodes each message of a conversation once."""

    def __init__(self, settings: RequestSettings) -> None:
        super().__init__(settings)
        self.reasoning_field = ""
        """Field in which the server sends reasoning, and may want back that of the present turn."""
        self._known: OrderedDict[str, dict[str, Rendered]] = OrderedDict()

    def build(self, request: ModelRequest) -> bytes:
        drop = self._settings.drop
        fields: JsonObject = {"model": self._settings.model, **self._kept_limits(request)}
        if request.tools and "tools" not in drop:
            fields["tools"] = [tool_object(tool) for tool in request.tools]
        messages = self._messages(request)
        return b"".join([encode(fields)[:-1], b',"messages":[', b",".join(messages), b"]}"])

    def optional_fields(self, request: ModelRequest) -> frozenset[str]:
        return frozenset(self._kept_limits(request)) - _NEEDED

    def unsent(self, request: ModelRequest) -> int:
        return len(request.messages) - len(self._known.get(request.conversation_id, ()))

    def call_lookup(self, conversation_id: str) -> Callable[[str], bool]:
        known = [one.message for one in self._known.get(conversation_id, {}).values()]
        ids = {call.id for one in known if isinstance(one, AssistantMessage) for call in one.tool_calls}
        return ids.__contains__

    def leave_out(self, fields: frozenset[str]) -> None:
        super().leave_out(fields)
        self._known.clear()

    def _kept_limits(self, request: ModelRequest) -> JsonObject:
        return {name: value for name, value in self._limits(request).items() if name not in self._settings.drop}

    def _limits(self, request: ModelRequest) -> JsonObject:
        settings = self._settings
        limit = _OLDER_LIMIT if NEWER_LIMIT in settings.drop else NEWER_LIMIT
        fields: JsonObject = {limit: request.max_tokens or settings.max_tokens, "stream": True}
        fields["stream_options"] = {"include_usage": True}
        if request.temperature is not None:
            fields["temperature"] = request.temperature
        effort = effort_of(request.thinking_tokens, settings.thinking_form, settings.model)
        return {**fields, **({"reasoning_effort": effort} if effort else {}), **settings.extra}

    def _messages(self, request: ModelRequest) -> list[bytes]:
        rendered = self.rendered(request)
        system = system_text(request.system)
        found = [encode({"role": "system", "content": system})] if system else []
        parts: list[JsonObject] = []
        pictures: list[JsonObject] = []
        turn = _start_of_turn(request.messages)
        for place, one in enumerate(rendered):
            if isinstance(one.message, UserMessage):
                parts += [*pictures, *one.parts]
                pictures.clear()
                continue
            if not isinstance(one.message, ToolResultMessage):
                parts += pictures
                pictures.clear()
            found += _user_message(parts)
            parts.clear()
            pictures += one.parts
            if one.json:
                found.append(self._with_reasoning(one) if place > turn else one.json)
        return [*found, *_user_message([*pictures, *parts])]

    def rendered(self, request: ModelRequest) -> list[Rendered]:
        """Return the messages of a request in the form of the API."""
        before = self._known.pop(request.conversation_id, {})
        now: dict[str, Rendered] = {}
        for message in request.messages:
            known = before.get(message.id)
            now[message.id] = known if known is not None and known.message is message else self.render(message)
        self._known[request.conversation_id] = now
        if len(self._known) > _CONVERSATIONS:
            self._known.popitem(last=False)
        return list(now.values())

    def render(self, message: Message) -> Rendered:
        """Return one message in the form of the API."""
        blocks = blocks_of(message)
        match message:
            case UserMessage():
                return Rendered(message, parts=tuple(map(_part, blocks)))
            case ToolResultMessage():
                return _result(message, blocks[0])
            case AssistantMessage():
                return Rendered(message, _answer(blocks))

    def _with_reasoning(self, one: Rendered) -> bytes:
        """Return an answer with its reasoning, which some servers miss between the calls of a turn."""
        thoughts = "\n".join(
            block.thinking
            for block in (one.message.content if isinstance(one.message, AssistantMessage) else ())
            # Signed reasoning is of another API.
            if isinstance(block, ThinkingBlock) and not block.signature and block.thinking
        )
        if not thoughts or not self.reasoning_field:
            return one.json
        return one.json[:-1] + b"," + encode({self.reasoning_field: thoughts})[1:]


def effort_of(budget: int | None, form: ThinkingForm, model: str) -> str:
    """Return the effort for a budget of reasoning in tokens; empty if the request or the model has none.

    A budget of None leaves the effort to the server; 0 asks for none, or the lowest that the model has.
    """
    if budget is None or form == "none":
        return ""
    if budget <= 0:
        return "none" if form != "always" else "low"
    effort = next((name for limit, name in EFFORTS if budget <= limit), "max")
    # Only the newer models of the API's own vendor know the highest.
    return effort if effort in ("low", "medium", "high") else "xhigh" if "gpt-" in model.lower() else "high"


def tool_object(tool: ToolSpec) -> JsonObject:
    """Return a tool in the form of the API."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


def system_text(system: Sequence[SystemPart]) -> str:
    """Return the system prompt as one text, stable parts first."""
    return "\n\n".join(part.text for part in sorted(system, key=lambda part: not part.stable) if part.text.strip())


def data_url(source: JsonObject) -> str:
    """Return the data of a picture or document as an address."""
    return f"data:{source['media_type']};base64,{source['data']}"


def result_parts(block: JsonObject) -> tuple[str, list[JsonObject]]:
    """Return the text of a result, and its other blocks."""
    content: object = block["content"]
    blocks: list[JsonObject] = content if is_array(content) else []
    text = "\n".join(part["text"] for part in blocks if part["type"] == "text")
    return text, [part for part in blocks if part["type"] != "text"]


def _start_of_turn(messages: Sequence[Message]) -> int:
    """Return the place of the message that began the present turn."""
    begins = ("prompt", "follow_up")
    prompts = [place for place, one in enumerate(messages) if isinstance(one, UserMessage) and one.kind in begins]
    return prompts[-1] if prompts else -1


def _user_message(parts: Sequence[JsonObject]) -> list[bytes]:
    """Return a message of the user; a text if it has nothing else, because not every server takes lists."""
    if not parts:
        return []
    texts = [part["text"] for part in parts if part["type"] == "text"]
    content = "\n\n".join(texts) if len(texts) == len(parts) else parts
    return [encode({"role": "user", "content": content})]


def _part(block: JsonObject) -> JsonObject:
    if block["type"] == "image":
        return {"type": "image_url", "image_url": {"url": data_url(block["source"])}}
    if block["type"] == "document":
        name = block.get("title") or "document.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": data_url(block["source"])}}
    return block


def _result(message: ToolResultMessage, block: JsonObject) -> Rendered:
    text, rest = result_parts(block)
    parts = tuple(map(_part, rest))
    if parts:
        noun = "The result of the call is attached." if not text else f"{text}\n(More of this result is attached.)"
        text = noun
        parts = ({"type": "text", "text": f"Attached to the result of {message.tool_name}:"}, *parts)
    wire = {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text}
    return Rendered(message, encode(wire), parts)


def _answer(blocks: list[JsonObject]) -> bytes:
    """Return an answer of the model; empty without text and calls."""
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    calls = [_call(block) for block in blocks if block["type"] == "tool_use"]
    if not text and not calls:
        return b""
    return encode({"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})})


def _call(block: JsonObject) -> JsonObject:
    arguments = encode(block["input"]).decode("utf-8")
    return {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": arguments}}


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
        # Parsing after every part would take quadratic time.
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
