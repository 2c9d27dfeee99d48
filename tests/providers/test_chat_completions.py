"""Chat Completions through the real SDK, against a server that plays a script."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.openai_server import ScriptedOpenAiServer, chat_frame
from tests.support.stream_helpers import HELLO, calls_of, heard, text_of
from tests.support.table import table
from tui_agent.protocol.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    user_message,
)
from tui_agent.protocol.provider import (
    ModelInfo,
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
from tui_agent.protocol.tool import ToolSpec
from tui_agent.providers.anthropic_provider import EndpointTraits, KeySource
from tui_agent.providers.kinds.other_providers import OpenAiProvider

READ = ToolSpec(name="read", description="Reads a file.", input_schema={"type": "object"})
INFO = ModelInfo("box/some-model", 64_000, 4_000, thinking="adaptive")
PICTURE = ImageBlock(media_type="image/png", data="aGk=", name="a.png")


@asynccontextmanager
async def asking(server: ScriptedOpenAiServer, **options: Any) -> AsyncIterator[OpenAiProvider]:
    token = server.token if server.needs_key else None
    values: dict[str, Any] = {"base_url": server.base_url, "auth_token": token, "endpoint": EndpointTraits(INFO)}
    provider = OpenAiProvider("some-model", **{**values, **options})
    try:
        yield provider
    finally:
        await provider.aclose()


def bodies(server: ScriptedOpenAiServer) -> list[dict[str, Any]]:
    assert server.problems == []
    return [request.body for request in server.requests]


async def test_a_whole_answer_becomes_events_in_order() -> None:
    script = {
        "blocks": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Hello 🙂"},
            {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
            {"type": "tool_use", "id": "c2", "name": "read", "input": {"path": "b"}},
        ],
        "piece": 100,
    }
    async with ScriptedOpenAiServer([script]) as server, asking(server) as provider:
        facts, error = await heard(provider.stream(HELLO))

    assert error is None
    usage = Usage(input_tokens=20, output_tokens=20, cache_read_tokens=10)
    assert facts == [
        StreamStarted("scripted-model", Usage()),
        ThinkingDelta("hm", 0),
        ThinkingEnded(ThinkingBlock(thinking="hm"), 0),
        TextDelta("Hello 🙂", 1),
        ToolCallStarted("c1", "read", 2),
        ToolCallDelta("c1", '{"path": "a"}', 2),
        ToolCallEnded(ToolCall(id="c1", name="read", arguments={"path": "a"}), 2),
        ToolCallStarted("c2", "read", 3),
        ToolCallDelta("c2", '{"path": "b"}', 3),
        ToolCallEnded(ToolCall(id="c2", name="read", arguments={"path": "b"}), 3),
        UsageReported(Usage()),
        UsageReported(usage),
        StreamEnded("tool_use"),
    ]


def call_part(**part: Any) -> bytes:
    function = {key: part.pop(key) for key in ("name", "arguments") if key in part}
    return chat_frame({"tool_calls": [{**part, "function": function}]})


A, B = {"path": "a"}, {"path": "b"}
FORMS: dict[str, list[bytes]] = {
    "calls whose parts alternate": [
        call_part(index=0, id="c1", name="read", arguments='{"path"'),
        call_part(index=1, id="c2", name="read", arguments='{"pa'),
        call_part(index=0, arguments=': "a"}'),
        call_part(index=1, arguments='th": "b"}'),
    ],
    "whole calls in one part": [
        chat_frame(
            {
                "tool_calls": [
                    {"index": 0, "id": "c1", "function": {"name": "read", "arguments": json.dumps(A)}},
                    {"index": 1, "id": "c2", "function": {"name": "read", "arguments": json.dumps(B)}},
                ]
            }
        )
    ],
    "arguments as objects": [
        call_part(index=0, id="c1", name="read", arguments=A),
        call_part(index=1, id="c2", name="read", arguments=B),
    ],
    "every call has the number 0": [
        call_part(index=0, id="c1", name="read", arguments=json.dumps(A)),
        call_part(index=0, id="c2", name="read", arguments=json.dumps(B)),
    ],
    "no numbers": [
        call_part(id="c1", name="read", arguments='{"path": '),
        call_part(arguments='"a"}'),
        call_part(id="c2", name="read", arguments=json.dumps(B)),
    ],
    "no ids": [
        call_part(index=0, name="read", arguments=json.dumps(A)),
        call_part(index=1, name="read", arguments=json.dumps(B)),
        call_part(index=0, arguments=""),
    ],
}


@table("form", FORMS)
@table("reason", ["tool_calls", "stop", None])
async def test_calls_in_any_form_are_the_same_two_calls(form: str, reason: str | None) -> None:
    raw = b"".join([*FORMS[form], *([chat_frame({}, reason)] if reason else []), b"data: [DONE]\n\n"]).decode()
    reply = {"raw_body": raw, "headers": {"content-type": "text/event-stream"}}
    async with ScriptedOpenAiServer([reply]) as server, asking(server) as provider:
        facts, error = await heard(provider.stream(HELLO))

    assert error is None
    assert [(call.name, call.arguments, call.malformed) for call in calls_of(facts)] == [
        ("read", A, None),
        ("read", B, None),
    ]
    assert len({call.id for call in calls_of(facts)} - {""}) == 2
    assert facts[-1] == StreamEnded("tool_use")


@table(
    ("reason", "expected"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("odd", "other")],
)
async def test_reasons_for_stopping(reason: str, expected: str) -> None:
    script = {"blocks": [{"type": "text", "text": "so"}], "stop_reason": reason}
    async with ScriptedOpenAiServer([script]) as server, asking(server) as provider:
        server.usage = None
        facts, error = await heard(provider.stream(HELLO))

    assert error is None
    assert isinstance(facts[-1], StreamEnded)
    assert facts[-1].stop_reason == expected


async def test_an_answer_that_is_not_streamed_is_read_too() -> None:
    message = {"role": "assistant", "content": "Hi", "reasoning": "hm"}
    body = {"object": "chat.completion", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
    reply = {"raw_body": json.dumps({**body, "usage": {"prompt_tokens": 3, "completion_tokens": 1}})}
    async with ScriptedOpenAiServer([reply]) as server, asking(server) as provider:
        facts, error = await heard(provider.stream(HELLO))

    assert error is None
    assert text_of(facts) == "Hi"
    assert ThinkingEnded(ThinkingBlock(thinking="hm"), 0) in facts
    assert facts[-2:] == [UsageReported(Usage(input_tokens=3, output_tokens=1)), StreamEnded("end_turn")]


CONVERSATION: tuple[Message, ...] = (
    UserMessage(content=(TextBlock(text="look"), PICTURE)),
    AssistantMessage(content=(ThinkingBlock(thinking="old"), TextBlock(text="A picture."))),
    user_message("and these?"),
    user_message("all of them"),
    AssistantMessage(
        content=(
            ThinkingBlock(thinking="mine"),
            ThinkingBlock(thinking="of another server", signature="c2ln"),
            ToolCall(id="c1", name="read", arguments={"path": "b.png"}),
            ToolCall(id="c/2", name="read", arguments={"path": "c.pdf"}),
        )
    ),
    ToolResultMessage(call_id="c1", tool_name="read", content=(TextBlock(text="b.png"), PICTURE)),
    ToolResultMessage(
        call_id="c/2",
        tool_name="read",
        content=(DocumentBlock(media_type="application/pdf", data="aGk=", name="c.pdf"),),
    ),
    user_message("be quick", kind="steer"),
)


async def test_a_conversation_in_the_form_of_the_api() -> None:
    request = ModelRequest(
        CONVERSATION,
        system=(SystemPart("today", stable=False), SystemPart("You are an agent.")),
        tools=(READ,),
        thinking_tokens=24_000,
        temperature=0.5,
    )
    script = [{"blocks": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "ok"}]}] * 2
    async with ScriptedOpenAiServer(script) as server, asking(server, extra_body={"top_k": 5}) as provider:
        for _ in range(2):
            _, error = await heard(provider.stream(request))
            assert error is None
        first, second = bodies(server)

    url = {"url": "data:image/png;base64,aGk="}
    file = {"filename": "c.pdf", "file_data": "data:application/pdf;base64,aGk="}
    messages = first.pop("messages")
    assert messages[:4] == [
        {"role": "system", "content": "You are an agent.\n\ntoday"},
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": url}]},
        {"role": "assistant", "content": "A picture."},
        {"role": "user", "content": "and these?\n\nall of them"},
    ]
    calls = messages[4]["tool_calls"]
    assert messages[4] == {"role": "assistant", "content": None, "tool_calls": calls}
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [{"path": "b.png"}, {"path": "c.pdf"}]
    assert [message["tool_call_id"] for message in messages[5:7]] == [call["id"] for call in calls]
    assert [part["type"] for part in messages[7]["content"]] == ["text", "image_url", "text", "file", "text"]
    assert messages[7]["content"][3]["file"] == file
    assert messages[7]["content"][4]["text"] == "be quick"
    assert first == {
        "model": "some-model",
        "max_tokens": 4_000,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "reasoning_effort": "high",
        "top_k": 5,
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Reads a file.", "parameters": {"type": "object"}},
            }
        ],
    }
    # The server has shown where it has reasoning; that of the present turn goes back, by this API only.
    assert second["messages"][4] == {**messages[4], "reasoning_content": "mine"}
    assert [message.get("reasoning_content") for message in second["messages"]].count(None) == 7


async def test_refused_fields_are_left_out_for_the_rest_of_the_session() -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    error = {"error": {"message": said, "type": "invalid_request_error", "param": "max_tokens"}}
    unknown = {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs"}]}
    script = [
        {"status": 400, "raw_body": json.dumps(error), "headers": {"content-type": "application/json"}},
        {"status": 422, "raw_body": json.dumps(unknown), "headers": {"content-type": "application/json"}},
        {"blocks": [{"type": "text", "text": "ok"}]},
    ]
    notices: list[str] = []
    async with ScriptedOpenAiServer(script) as server, asking(server) as provider:
        provider.on_notice = notices.append
        facts, failure = await heard(provider.stream(HELLO))

        assert failure is None
        assert text_of(facts) == "ok"
        assert [sorted({"max_tokens", "stream_options"} & set(body)) for body in bodies(server)] == [
            ["max_tokens", "stream_options"],
            ["stream_options"],
            [],
        ]
    assert len(notices) == 1
    assert "`max_tokens`, `stream_options`" in notices[0]


def failing(status: int, message: str, kind: str = "invalid_request_error", code: str | None = None) -> dict[str, Any]:
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return {"status": status, "raw_body": json.dumps(body), "headers": {"content-type": "application/json"}}


FULL = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
FAILURES: dict[str, tuple[dict[str, Any], str]] = {
    "key": (failing(401, "Incorrect API key provided"), "authentication"),
    "model": (failing(404, "The model `x` does not exist", code="model_not_found"), "not_found"),
    "window": (failing(400, FULL, code="context_length_exceeded"), "context_exceeded"),
    "quota": (failing(429, "You exceeded your quota", "insufficient_quota", "insufficient_quota"), "permission"),
    "limit": (failing(429, "Rate limit reached", "requests", "rate_limit_exceeded"), "rate_limit"),
    "server": (failing(500, "The server had an error", "server_error"), "server"),
    "inside": ({"blocks": [], "ending": "error", "error_type": "server_error"}, "server"),
    "cut": ({"blocks": [{"type": "text", "text": "a"}], "ending": "cut"}, "stream_cut"),
    "reset": ({"blocks": [{"type": "text", "text": "a"}], "ending": "reset"}, "stream_cut"),
    "no end": ({"blocks": [{"type": "text", "text": "a"}], "ending": "no_message_stop"}, "stream_cut"),
    "redirect": ({"status": 307, "raw_body": "", "headers": {"location": "http://b.example/v1"}}, "bad_response"),
    "page": ({"raw_body": "<html><title>Log in</title></html>"}, "bad_response"),
}


@table("name", FAILURES)
async def test_failures_have_their_kind(name: str) -> None:
    reply, kind = FAILURES[name]
    async with ScriptedOpenAiServer([reply]) as server, asking(server) as provider:
        _, error = await heard(provider.stream(HELLO))

    assert error is not None
    assert error.kind == kind
    assert server.token not in str(error)
    assert "Messages API" not in str(error)
    assert "ANTHROPIC" not in str(error)


async def test_a_server_without_a_key_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-host")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-of-another-host")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-another-host")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer of-another-host\nX-Other: of-another-host")
    script = {"blocks": [{"type": "text", "text": "ok"}]}
    async with ScriptedOpenAiServer([script], needs_key=False) as server, asking(server) as provider:
        server.models = ["one", "two"]
        facts, error = await heard(provider.stream(HELLO))

        assert error is None
        assert text_of(facts) == "ok"
        assert await provider.list_models() == ("one", "two")
        assert "authorization" not in server.requests[0].headers
        assert not [value for value in server.requests[0].headers.values() if "another-host" in value]


async def test_a_key_that_expired_is_printed_anew() -> None:
    async with ScriptedOpenAiServer([{"blocks": [{"type": "text", "text": "ok"}]}]) as server:
        keys = iter(["sk-expired-long-ago", server.token])

        async def printed() -> str:
            return next(keys)

        async with asking(server, auth_token=None, key_source=KeySource(printed)) as provider:
            facts, error = await heard(provider.stream(HELLO))

    assert error is None
    assert text_of(facts) == "ok"
