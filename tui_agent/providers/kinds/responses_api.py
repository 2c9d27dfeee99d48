"""The Responses API: requests without state on the server, and answers as events of the Messages API."""

import json
from collections.abc import Callable, Iterable
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
from tui_agent.protocol.provider import ModelRequest
from tui_agent.protocol.tool import ToolSpec
from tui_agent.providers.provider_failures import ErrorFactory
from tui_agent.providers.response_decoder import ResponseDecoder
from tui_agent.providers.response_reader import object_in, text_in
from tui_agent.providers.wire_blocks import blocks_of, encode

from .chat_completions_api import ChatRequestBuilder, Rendered, data_url, effort_of, result_parts, system_text
from .event_writer import EventWriter


class ResponsesRequestBuilder(ChatRequestBuilder):
    """Builder of request bodies, which encodes each message of a conversation once."""

    def build(self, request: ModelRequest) -> bytes:
        fields: JsonObject = {"model": self._settings.model, **self._kept_limits(request)}
        if system := system_text(request.system):
            fields["instructions"] = system
        if request.tools and "tools" not in self._settings.drop:
            fields["tools"] = [_tool_object(tool) for tool in request.tools]
        items = [one.json for one in self.rendered(request) if one.json]
        return b"".join([encode(fields)[:-1], b',"input":[', b",".join(items), b"]}"])

    def _limits(self, request: ModelRequest) -> JsonObject:
        settings = self._settings
        fields: JsonObject = {
            "max_output_tokens": request.max_tokens or settings.max_tokens,
            "stream": True,
            "store": False,
            # Without state on the server, reasoning comes back encrypted, to be sent again.
            "include": ["reasoning.encrypted_content"],
        }
        if request.temperature is not None:
            fields["temperature"] = request.temperature
        if effort := effort_of(request.thinking_tokens, settings.thinking_form, settings.model):
            fields["reasoning"] = {"effort": effort, "summary": "auto"}
        return {**fields, **settings.extra}

    def render(self, message: Message) -> Rendered:
        """Return one message in the form of the API: one item, or several with commas."""
        blocks = blocks_of(message)
        match message:
            case UserMessage():
                items: list[JsonObject] = [{"role": "user", "content": [_part(block) for block in blocks]}]
            case ToolResultMessage():
                items = [_result(blocks[0])]
            case AssistantMessage():
                items = _answer(message)
        return Rendered(message, b",".join(map(encode, items)))


def _tool_object(tool: ToolSpec) -> JsonObject:
    named = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", **named, "strict": False}


def _part(block: JsonObject) -> JsonObject:
    if block["type"] == "image":
        return {"type": "input_image", "image_url": data_url(block["source"]), "detail": "auto"}
    if block["type"] == "document":
        name = block.get("title") or "document.pdf"
        return {"type": "input_file", "filename": name, "file_data": data_url(block["source"])}
    return {"type": "input_text", "text": block["text"]}


def _result(block: JsonObject) -> JsonObject:
    text, rest = result_parts(block)
    output = [_part(part) for part in block["content"]] if rest else text
    return {"type": "function_call_output", "call_id": block["tool_use_id"], "output": output}


def _answer(message: AssistantMessage) -> list[JsonObject]:
    """Return the items of an answer in their order."""
    items: list[JsonObject] = []
    for part in message.content:
        if isinstance(part, ThinkingBlock):
            items += _thought(part)
            continue
        for block in blocks_of(message.model_copy(update={"content": (part,)})):
            if block["type"] == "text":
                items.append({"role": "assistant", "content": block["text"]})
            elif block["type"] == "tool_use":
                arguments = encode(block["input"]).decode("utf-8")
                named = {"call_id": block["id"], "name": block["name"], "arguments": arguments}
                items.append({"type": "function_call", **named})
    return items


def _thought(block: ThinkingBlock) -> list[JsonObject]:
    """Return a thought that this API has encrypted; none of another API."""
    try:
        signed: object = json.loads(block.signature) if block.signature.startswith("{") else None
    except ValueError:
        return []
    if not is_object(signed):
        return []
    summary = [{"type": "summary_text", "text": block.thinking}] if block.thinking else []
    return [{"type": "reasoning", **signed, "summary": summary}]


_NOTHING: JsonObject = {"type": "ping"}
_INCOMPLETE = {"max_output_tokens": "length", "max_tokens": "length"}


@dataclass(slots=True)
class _Item:
    """An item of the answer that has begun."""

    index: int = -1
    """Index of a call's block; -1 for another kind of item."""
    has_text: bool = False


class ResponsesDecoder(ResponseDecoder):
    """Parser of one answer."""

    def __init__(
        self, errors: ErrorFactory, request_id: str | None, is_taken: Callable[[str], bool], media_type: str = ""
    ) -> None:
        super().__init__(errors, request_id, is_taken, media_type)
        self._writer = EventWriter()
        self._items: dict[object, _Item] = {}
        """Open items by their place in the answer."""
        self._refusal = ""
        self._handlers: dict[str, Callable[[JsonObject], list[JsonObject]]] = {
            "response.output_item.added": self._added,
            "response.output_item.done": self._done,
            "response.output_text.delta": self._text,
            "response.refusal.delta": self._text,
            "response.reasoning_summary_part.added": self._part,
            "response.reasoning_summary_text.delta": self._thought,
            "response.reasoning_text.delta": self._thought,
            "response.function_call_arguments.delta": self._arguments,
            "response.completed": self._stopped,
            "response.incomplete": self._stopped,
            "response.failed": _failed,
            "error": _failed,
        }

    def translated(self, event: JsonObject) -> Iterable[JsonObject]:
        kind = str(event.get("type"))
        handler = self._handlers.get(kind)
        if handler is None and not kind.startswith("response."):
            return (event,)
        response: object = event.get("response")
        found = self._writer.begin(response.get("model")) if is_object(response) else []
        return [*found, *(handler(event) if handler is not None else [])] or (_NOTHING,)

    def events_of(self, message: JsonObject) -> Iterable[JsonObject] | None:
        output: object = message.get("output")
        if not is_array(output):
            return None
        items = [
            {"type": "response.output_item.done", "output_index": place, "item": item}
            for place, item in enumerate(output)
        ]
        last = message.get("status") if message.get("status") in ("incomplete", "failed") else "completed"
        return [
            {"type": "response.created", "response": message},
            *items,
            {"type": f"response.{last}", "response": message},
        ]

    def _item(self, event: JsonObject) -> _Item:
        return self._items.setdefault(event.get("output_index"), _Item())

    def _added(self, event: JsonObject) -> list[JsonObject]:
        entry, item = self._item(event), object_in(event, "item")
        if item.get("type") != "function_call":
            return []
        entry.index, found = self._writer.begin_call(item.get("call_id"), item.get("name"))
        return found

    def _text(self, event: JsonObject) -> list[JsonObject]:
        self._item(event).has_text = True
        if event.get("type") == "response.refusal.delta":
            self._refusal += text_in(event, "delta")
        return self._writer.flow("text", text_in(event, "delta"))

    def _part(self, event: JsonObject) -> list[JsonObject]:
        return self._writer.flow("thinking", "\n\n") if event.get("summary_index") else []

    def _thought(self, event: JsonObject) -> list[JsonObject]:
        self._item(event).has_text = True
        return self._writer.flow("thinking", text_in(event, "delta"))

    def _arguments(self, event: JsonObject) -> list[JsonObject]:
        entry = self._item(event)
        entry.has_text = True
        return self._writer.call_text(entry.index, text_in(event, "delta")) if entry.index >= 0 else []

    def _done(self, event: JsonObject) -> list[JsonObject]:
        """Return the events for the end of an item; with its contents, if the server did not stream them."""
        entry, item = self._item(event), object_in(event, "item")
        del self._items[event.get("output_index")]
        match item.get("type"):
            case "function_call":
                found: list[JsonObject] = []
                if entry.index < 0:
                    entry.index, found = self._writer.begin_call(item.get("call_id"), item.get("name"))
                rest = "" if entry.has_text else text_in(item, "arguments")
                return [*found, *self._writer.call_text(entry.index, rest), *self._writer.end_call(entry.index)]
            case "reasoning":
                found = [] if entry.has_text else self._writer.flow("thinking", _joined(item, "summary", "content"))
                encrypted = item.get("encrypted_content")
                if not isinstance(encrypted, str) or not encrypted:
                    return [*found, *self._writer.end_flow()]
                signature = json.dumps({"id": item.get("id"), "encrypted_content": encrypted})
                return [*found, *self._writer.signed_thought(signature)]
            case "message":
                found = [] if entry.has_text else self._writer.flow("text", _joined(item, "content"))
                return [*found, *self._writer.end_flow()]
            case _:
                return []

    def _stopped(self, event: JsonObject) -> list[JsonObject]:
        response = object_in(event, "response")
        reason = "tool_calls" if self._writer.has_calls else "stop"
        if event["type"] == "response.incomplete":
            given = text_in(object_in(response, "incomplete_details"), "reason")
            reason = _INCOMPLETE.get(given, given or "incomplete")
        elif self._refusal:
            reason = "refusal"
        stop = self._writer.stop(reason, self._refusal)
        return [*stop, *self._writer.usage(response.get("usage")), *self._writer.end()]


def _failed(event: JsonObject) -> list[JsonObject]:
    """Return the event of an error, for a failed answer or an error of the stream."""
    error = object_in(object_in(event, "response"), "error") or object_in(event, "error") or event
    code = error.get("code") or (error.get("type") if error is not event else None)
    return [{"type": "error", "error": {"type": code, "message": error.get("message")}}]


def _joined(item: JsonObject, *names: str) -> str:
    """Return the texts of an item's parts."""
    lists: list[object] = [item.get(name) for name in names]
    parts = [part for found in lists if is_array(found) for part in found if is_object(part)]
    return "\n\n".join(text_in(part, "text") or text_in(part, "refusal") for part in parts)
