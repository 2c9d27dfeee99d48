"""Requests of the Chat Completions API."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui_agent.protocol.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    ThinkingBlock,
    ToolResultMessage,
    UserMessage,
    is_array,
)
from tui_agent.protocol.provider import ModelRequest, SystemPart, ThinkingForm
from tui_agent.protocol.tool import ToolSpec
from tui_agent.providers.request_builder import EFFORTS, RequestBuilder, RequestSettings
from tui_agent.providers.wire_blocks import blocks_of, encode

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
    """Return the effort for a budget of reasoning; empty if the request has none."""
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
