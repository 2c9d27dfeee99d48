"""The APIs of OpenAI on loopback, the sibling of the scripted Messages API: the same script, in their form.

It refuses requests that do not fit the types of the real SDK, and conversations whose calls and results do not match.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from openai.types.chat import ChatCompletionMessageParam
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from openai.types.responses.response_input_item_param import ResponseInputItemParam
from pydantic import TypeAdapter, ValidationError

from tests.support.messages_server import (
    BytesPart,
    CallPart,
    FramePart,
    PausePart,
    RedactedPart,
    ScriptedMessagesServer,
    ScriptedReply,
    TextPart,
    ThinkingPart,
)
from tui_agent.providers.demo.demo_server import pieces
from tui_agent.providers.demo.loopback_http import HttpReply, HttpRequest

_MESSAGE: TypeAdapter[Any] = TypeAdapter(ChatCompletionMessageParam)
_CHAT: TypeAdapter[Any] = TypeAdapter(CompletionCreateParamsStreaming)
_ITEM: TypeAdapter[Any] = TypeAdapter(ResponseInputItemParam)
_RESPONSES: TypeAdapter[Any] = TypeAdapter(ResponseCreateParamsStreaming)
_USAGE = {"prompt_tokens": 30, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 10}}


class ScriptedOpenAiServer(ScriptedMessagesServer):
    """Server of Chat Completions and Responses that plays a list of replies."""

    def __init__(self, script: Iterable[ScriptedReply | Mapping[str, Any]] = (), *, needs_key: bool = True) -> None:
        super().__init__(script)
        self.needs_key = needs_key
        self.usage: dict[str, Any] | None = _USAGE
        """Tokens that the answers of Chat Completions report; None: none, as some servers do."""
        self.reasoning_field = "reasoning_content"
        self._path = ""

    def problems_of(self, body: Any) -> list[str]:
        try:
            if self._path.endswith("/responses"):
                _RESPONSES.validate_python({**body, "input": "checked below"})
                items = [_ITEM.validate_python(item) for item in body["input"]]
                calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
                results = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
                return [] if calls == results else [f"calls {calls}, results {results}"]
            _CHAT.validate_python({**body, "messages": []})
            for message in body["messages"]:
                _MESSAGE.validate_python(message)
        except (ValidationError, KeyError) as error:
            return [f"{type(error).__name__}: {error}"]
        return list(_mismatches(body["messages"]))

    def error_body(self, kind: str, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}

    async def _answer_request(self, request: HttpRequest, reply: HttpReply) -> None:
        self._path = request.target
        if self.needs_key and request.headers.get("authorization") != f"Bearer {self.token}":
            await reply.send_json(401, self.error_body("invalid_request_error", "Incorrect API key provided"))
        elif request.method == "GET" and request.target == "/v1/models":
            await self._list_models(reply)
        elif request.method != "POST" or request.target not in ("/v1/chat/completions", "/v1/responses"):
            await reply.send_json(404, self.error_body("invalid_request_error", f"Unknown URL {request.target}"))
        else:
            await self._answer_scripted(request, reply)

    def _items(self, scripted: ScriptedReply) -> Iterator[bytes | PausePart]:
        make = self._response_items if self._path.endswith("/responses") else self._chat_items
        yield from make(scripted)

    def _chat_items(self, scripted: ScriptedReply) -> Iterator[bytes | PausePart]:
        yield chat_frame({"role": "assistant", "content": ""})
        calls = 0
        for part in scripted.blocks:
            match part:
                case PausePart():
                    yield part
                case FramePart():
                    yield _frame(part.data)
                case BytesPart():
                    yield part.text.encode("latin-1")
                case TextPart():
                    for text in pieces(part.text * part.repeat, scripted.piece):
                        yield chat_frame({"content": text})
                case ThinkingPart():
                    for text in pieces(part.thinking, scripted.piece):
                        yield chat_frame({self.reasoning_field: text})
                case CallPart():
                    yield from self._chat_call(calls, part, scripted.piece)
                    calls += 1
                case RedactedPart():
                    raise ValueError("Chat Completions has no hidden reasoning")
        if scripted.ending == "complete":
            reason = scripted.stop_reason
            yield chat_frame({}, ("tool_calls" if calls else "stop") if reason == "auto" else reason)
            if self.usage is not None:
                yield _frame({**_chunk(), "choices": [], "usage": self.usage})
            yield b"data: [DONE]\n\n"
        elif scripted.ending == "error":
            yield _frame(self.error_body(scripted.error_type, scripted.error_message))

    def _chat_call(self, number: int, part: CallPart, piece: int | None) -> Iterator[bytes]:
        self._calls += 1
        arguments = json.dumps(part.input) if part.raw_input is None else part.raw_input
        head = {"id": part.id or f"call_{self._calls}", "type": "function"}
        yield chat_frame({"tool_calls": [{"index": number, **head, "function": {"name": part.name, "arguments": ""}}]})
        for text in pieces(arguments, piece):
            yield chat_frame({"tool_calls": [{"index": number, "function": {"arguments": text}}]})

    def _response_items(self, scripted: ScriptedReply) -> Iterator[bytes | PausePart]:
        head = {"id": "resp_1", "object": "response", "model": "scripted-model", "status": "in_progress", "output": []}
        yield _event("response.created", response=head)
        place = 0
        for part in scripted.blocks:
            match part:
                case PausePart():
                    yield part
                case FramePart():
                    yield _event(part.event, **part.data)
                case BytesPart():
                    yield part.text.encode("latin-1")
                case _:
                    yield from self._response_item(place, part, scripted.piece)
                    place += 1
        if scripted.ending == "error":
            yield _event("error", code=scripted.error_type, message=scripted.error_message, param=None)
        if scripted.ending != "complete":
            return
        usage = {"input_tokens": 30, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 10}}
        if scripted.stop_reason == "auto":
            yield _event("response.completed", response={**head, "status": "completed", "usage": usage})
        else:
            details = {"incomplete_details": {"reason": scripted.stop_reason}, "usage": usage}
            yield _event("response.incomplete", response={**head, "status": "incomplete", **details})

    def _response_item(
        self, place: int, part: TextPart | ThinkingPart | RedactedPart | CallPart, piece: int | None
    ) -> Iterator[bytes]:
        at = {"output_index": place}
        match part:
            case TextPart():
                kind, text, item = "output_text", part.text * part.repeat, {"type": "message", "id": f"msg_{place}"}
            case ThinkingPart():
                kind, text = "reasoning_summary_text", part.thinking
                item = {"type": "reasoning", "id": f"rs_{place}", "encrypted_content": part.signature}
            case RedactedPart():
                kind, text = "reasoning_summary_text", ""
                item = {"type": "reasoning", "id": f"rs_{place}", "encrypted_content": part.data, "summary": []}
            case CallPart():
                self._calls += 1
                kind = "function_call_arguments"
                text = json.dumps(part.input) if part.raw_input is None else part.raw_input
                item = {"type": "function_call", "call_id": part.id or f"call_{self._calls}", "name": part.name}
        yield _event("response.output_item.added", **at, item=item)
        for fragment in pieces(text, piece):
            yield _event(f"response.{kind}.delta", **at, delta=fragment)
        if not isinstance(part, CallPart) or not part.unfinished:
            yield _event(f"response.{kind}.done", **at)
            yield _event("response.output_item.done", **at, item=item)


def chat_frame(delta: dict[str, Any], reason: str | None = None) -> bytes:
    """Return one chunk of Chat Completions."""
    return _frame({**_chunk(), "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def _chunk() -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted-model"}


def _event(event: str, **data: Any) -> bytes:
    body = json.dumps({"type": event, **data}, ensure_ascii=False)
    return f"event: {event}\ndata: {body}\n\n".encode()


def _frame(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _mismatches(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Yield calls without their results right behind them, and results without a call."""
    waiting: list[str] = []
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"messages.{place}: no call {message['tool_call_id']}"
                continue
            waiting.remove(message["tool_call_id"])
        elif waiting:
            yield f"messages.{place}: calls {waiting} have no result"
            waiting = []
        if message["role"] == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
    if waiting:
        yield f"calls {waiting} have no result"
