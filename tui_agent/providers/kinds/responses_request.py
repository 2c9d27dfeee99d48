"""Requests of the Responses API, without state on the server: each has the whole conversation."""

import json

from tui_agent.protocol.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    ThinkingBlock,
    ToolResultMessage,
    UserMessage,
    is_object,
)
from tui_agent.protocol.provider import ModelRequest
from tui_agent.protocol.tool import ToolSpec
from tui_agent.providers.wire_blocks import blocks_of, encode

from .chat_request import ChatRequestBuilder, Rendered, data_url, effort_of, result_parts, system_text


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
