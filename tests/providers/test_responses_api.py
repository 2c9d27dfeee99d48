"""The Responses API through the real SDK, against a server that plays a script."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.providers.test_chat_completions import CONVERSATION, INFO, READ
from tests.support.openai_server import ScriptedOpenAiServer
from tests.support.stream_helpers import HELLO, calls_of, heard, text_of
from tests.support.table import table
from tui_agent.protocol.messages import AssistantMessage, ThinkingBlock, ToolCall, Usage, user_message
from tui_agent.protocol.provider import (
    ModelRequest,
    StreamEnded,
    StreamStarted,
    SystemPart,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    UsageReported,
)
from tui_agent.providers.anthropic_provider import EndpointTraits
from tui_agent.providers.kinds.other_providers import ResponsesProvider
from tui_agent.providers.wire_blocks import blocks_of

USAGE = Usage(input_tokens=20, output_tokens=20, cache_read_tokens=10)


@asynccontextmanager
async def asking(server: ScriptedOpenAiServer) -> AsyncIterator[ResponsesProvider]:
    traits = EndpointTraits(INFO)
    provider = ResponsesProvider("gpt-x", base_url=server.base_url, auth_token=server.token, endpoint=traits)
    try:
        yield provider
    finally:
        await provider.aclose()


def thought(summary: str, place: int, encrypted: str) -> ThinkingBlock:
    signature = json.dumps({"id": f"rs_{place}", "encrypted_content": encrypted})
    return ThinkingBlock(thinking=summary, signature=signature)


async def test_a_whole_answer_becomes_events_in_order() -> None:
    script = {
        "blocks": [
            {"type": "thinking", "thinking": "hm", "signature": "ZW5j"},
            {"type": "redacted_thinking", "data": "bW9yZQ"},
            {"type": "text", "text": "Hello 🙂"},
            {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
            {"type": "tool_use", "id": "c2", "name": "read", "input": {}},
        ],
        "piece": 100,
    }
    async with ScriptedOpenAiServer([script]) as server, asking(server) as provider:
        facts, error = await heard(provider.stream(HELLO))

    assert error is None
    assert facts == [
        StreamStarted("scripted-model", Usage()),
        ThinkingDelta("hm", 0),
        ThinkingEnded(thought("hm", 0, "ZW5j"), 0),
        ThinkingEnded(thought("", 1, "bW9yZQ"), 1),
        TextDelta("Hello 🙂", 2),
        ToolCallStarted("c1", "read", 3),
        ToolCallDelta("c1", '{"path": "a"}', 3),
        ToolCallEnded(ToolCall(id="c1", name="read", arguments={"path": "a"}), 3),
        ToolCallStarted("c2", "read", 4),
        ToolCallDelta("c2", "{}", 4),
        ToolCallEnded(ToolCall(id="c2", name="read"), 4),
        UsageReported(Usage()),
        UsageReported(USAGE),
        StreamEnded("tool_use"),
    ]


async def test_a_conversation_in_the_form_of_the_api() -> None:
    answer = CONVERSATION[4]
    assert isinstance(answer, AssistantMessage)
    signed = answer.model_copy(update={"content": (thought("why", 7, "ZW5j"), *answer.content)})
    messages = (*CONVERSATION[:4], signed, *CONVERSATION[5:])
    request = ModelRequest(messages, system=(SystemPart("An agent."),), tools=(READ,), thinking_tokens=40_000)
    async with ScriptedOpenAiServer([{"blocks": [{"type": "text", "text": "ok"}]}]) as server:
        async with asking(server) as provider:
            _, error = await heard(provider.stream(request))

        assert (error, server.problems) == (None, [])
        body = server.requests[0].body

    items = body.pop("input")
    kinds = [item.get("type", item.get("role")) for item in items]
    calls, results = ["function_call"] * 2, ["function_call_output"] * 2
    assert kinds == ["user", "assistant", "user", "user", "reasoning", *calls, *results, "user"]
    assert [part["type"] for part in items[0]["content"]] == ["input_text", "input_image"]
    summary = [{"type": "summary_text", "text": "why"}]
    assert items[4] == {"type": "reasoning", "id": "rs_7", "encrypted_content": "ZW5j", "summary": summary}
    assert [part["type"] for part in items[7]["output"]] == ["input_text", "input_image"]
    assert [part["type"] for part in items[8]["output"]] == ["input_file"]
    function = {"name": "read", "description": "Reads a file.", "parameters": {"type": "object"}}
    assert body == {
        "model": "gpt-x",
        "instructions": "An agent.",
        "max_output_tokens": 4_000,
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "xhigh", "summary": "auto"},
        "tools": [{"type": "function", **function, "strict": False}],
    }
    # Another API would refuse the signature.
    assert [block.get("signature") for block in blocks_of(signed) if block["type"] == "thinking"] == ["c2ln"]


def item_event(**item: Any) -> dict[str, Any]:
    data = {"output_index": 0, "item": item}
    return {"type": "frame", "event": "response.output_item.done", "data": data}


async def test_items_that_are_not_streamed_are_read_when_they_end() -> None:
    text = {"type": "output_text", "text": "Hi"}
    script = {
        "blocks": [
            item_event(type="reasoning", id="rs", content=[{"type": "reasoning_text", "text": "hm"}]),
            item_event(type="message", content=[text]),
            item_event(type="function_call", call_id="c1", name="read", arguments='{"path": "a"}'),
        ]
    }
    whole = {"status": "completed", "model": "m", "output": [one["data"]["item"] for one in script["blocks"]]}
    async with (
        ScriptedOpenAiServer([script, {"raw_body": json.dumps(whole)}]) as server,
        asking(server) as provider,
    ):
        for _ in range(2):
            facts, error = await heard(provider.stream(HELLO))

            assert error is None
            assert ThinkingEnded(ThinkingBlock(thinking="hm"), 0) in facts
            assert text_of(facts) == "Hi"
            assert calls_of(facts) == [ToolCall(id="c1", name="read", arguments={"path": "a"})]
            assert facts[-1] == StreamEnded("tool_use")


CUT = {"type": "tool_use", "name": "read", "raw_input": '{"pa', "unfinished": True}
ENDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "limit": ({"blocks": [CUT], "stop_reason": "max_output_tokens"}, "max_tokens", ""),
    "filter": ({"blocks": [], "stop_reason": "content_filter"}, "refusal", "content_filter"),
    "refused": (
        {"blocks": [{"type": "frame", "event": "response.refusal.delta", "data": {"delta": "No."}}]},
        "refusal",
        "No.",
    ),
}


@table("name", ENDS)
async def test_reasons_for_stopping(name: str) -> None:
    script, reason, detail = ENDS[name]
    async with ScriptedOpenAiServer([script]) as server, asking(server) as provider:
        facts, error = await heard(provider.stream(HELLO))

    assert error is None
    assert facts[-1] == StreamEnded(reason, detail)  # type: ignore[arg-type]
    assert [call.cut for call in calls_of(facts)] == ([True] if name == "limit" else [])


FAILED = {"error": {"code": "rate_limit_exceeded", "message": "Slow down"}}
FAILURES: dict[str, tuple[dict[str, Any], str]] = {
    "failed": (
        {"blocks": [{"type": "frame", "event": "response.failed", "data": {"response": FAILED}}]},
        "rate_limit",
    ),
    "event": ({"blocks": [], "ending": "error", "error_type": "server_error"}, "server"),
    "cut": ({"blocks": [{"type": "text", "text": "a"}], "ending": "cut"}, "stream_cut"),
    "no end": ({"blocks": [{"type": "text", "text": "a"}], "ending": "no_message_stop"}, "stream_cut"),
    "page": ({"raw_body": "<html><title>Log in</title></html>"}, "bad_response"),
}


@table("name", FAILURES)
async def test_failures_have_their_kind(name: str) -> None:
    script, kind = FAILURES[name]
    async with ScriptedOpenAiServer([script]) as server, asking(server) as provider:
        _, error = await heard(provider.stream(HELLO))

    assert error is not None
    assert error.kind == kind
    assert "Messages API" not in str(error)


async def test_a_model_without_reasoning_is_asked_without_it() -> None:
    said = "Encrypted content is not supported with this model."
    error = {"error": {"message": said, "type": "invalid_request_error", "param": "include", "code": None}}
    refusal = {"status": 400, "raw_body": json.dumps(error), "headers": {"content-type": "application/json"}}
    script = [refusal, {"blocks": [{"type": "text", "text": "ok"}]}]
    async with ScriptedOpenAiServer(script) as server, asking(server) as provider:
        facts, failure = await heard(provider.stream(ModelRequest((user_message("hello"),))))

        assert failure is None
        assert text_of(facts) == "ok"
        assert ["include" in request.body for request in server.requests] == [True, False]
