"""Every failure between tui-agent and a model, through the real SDK, is one clear `ProviderError`."""

import json
import logging
import sys
import traceback
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, cast, get_args

import pytest

from tests.support.messages_server import ScriptedMessagesServer
from tests.support.stream_helpers import HELLO, asking, calls_of, heard, text_of
from tests.support.table import table
from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.messages import StopReason, ToolCall
from tui_agent.protocol.provider import StreamEnded, StreamEvent, UsageReported
from tui_agent.providers import AnthropicProvider
from tui_agent.providers.demo.demo_server import block_frames, closing_frames, opening_frames

TEXT = {"type": "text", "text": "begun"}
SECRET = "sk-ant-api03-do-not-tell-anyone"


async def answered(reply: dict[str, Any], **options: Any) -> tuple[list[StreamEvent], ProviderError | None]:
    """Return the events or the error of one scripted answer, for which exactly one request was made."""
    async with ScriptedMessagesServer([reply, reply]) as server, asking(server, **options) as provider:
        outcome = await heard(provider.stream(HELLO))

        assert len(server.requests) == 1, "one call of `stream` is one attempt"
        return outcome


async def failed(reply: dict[str, Any], **options: Any) -> tuple[list[StreamEvent], ProviderError]:
    facts, error = await answered(reply, **options)
    assert error is not None
    assert not any(isinstance(fact, StreamEnded) for fact in facts)
    return facts, error


def asking_at(address: str) -> AbstractAsyncContextManager[AnthropicProvider]:
    """Return a provider without a key for an address."""
    return aclosing(AnthropicProvider("some-model", base_url=address))


@table("ending", ["cut", "reset", "no_message_stop"])
async def test_an_answer_that_breaks_off_is_reported_as_cut(ending: str) -> None:
    call = {"type": "tool_use", "name": "write", "input": {"path": "a"}, "unfinished": True}

    facts, error = await failed({"blocks": [TEXT, call], "ending": ending})

    assert error.kind == "stream_cut"
    assert error.retryable
    assert text_of(facts) in ("begun", "")
    assert calls_of(facts) == [], "a call that never ended never surfaces"


def stopping(reason: str | None, **usage: int) -> dict[str, Any]:
    """Return the event with the stop reason."""
    data = {"delta": {"stop_reason": reason}, "usage": usage or {"output_tokens": 20}}
    return {"type": "frame", "event": "message_delta", "data": data}


READ = {"type": "pause", "until": "read"}
"""Pause until the client has read the data so far: a reset discards unread data."""

STOP_REASONS = get_args(StopReason)


async def ended_early(
    *parts: dict[str, Any], ending: str, silence: float | None = None
) -> tuple[list[StreamEvent], ProviderError | None]:
    """Return the result of an answer with a stop reason but no `message_stop`, for which one request was made."""
    reply = {"blocks": [*parts, READ], "ending": ending}
    async with ScriptedMessagesServer([reply, reply]) as server:
        options = {} if silence is None else {"silence_timeout": silence}
        async with asking(server, **options) as provider:
            seen: list[StreamEvent] = []
            try:
                async for fact in provider.stream(HELLO):
                    seen.append(fact)
                    if isinstance(fact, UsageReported) and silence is None:
                        server.release("read")
            except ProviderError as error:
                return seen, error
            assert len(server.requests) == 1
            return seen, None


@table("ending", ["no_message_stop", "cut", "reset"])
@table("reason", [*STOP_REASONS, "eclipse"])
async def test_an_answer_with_a_reason_for_stopping_is_complete_without_its_last_event(
    reason: str, ending: str
) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}

    facts, error = await ended_early(TEXT, call, stopping(reason, output_tokens=33), ending=ending)

    assert error is None
    assert text_of(facts) == "begun"
    assert calls_of(facts) == [ToolCall(id="c1", name="read", arguments={"path": "a"})]
    known = reason in STOP_REASONS
    assert facts[-1] == StreamEnded(cast(StopReason, reason) if known else "other", "" if known else reason)
    assert [fact.usage.output_tokens for fact in facts if isinstance(fact, UsageReported)] == [33]


@pytest.mark.slow
async def test_a_server_that_only_falls_silent_after_a_reason_for_stopping_has_answered() -> None:
    facts, error = await ended_early(TEXT, stopping("end_turn"), ending="complete", silence=1.0)

    assert error is None
    assert facts[-1] == StreamEnded("end_turn")


@table("ending", ["no_message_stop", "cut"])
@table("reason", ["tool_use", "end_turn"])
async def test_a_reason_for_stopping_beside_an_open_call_is_a_cut(reason: str, ending: str) -> None:
    call = {"type": "tool_use", "name": "write", "input": {"path": "a"}, "unfinished": True}

    facts, error = await ended_early(TEXT, call, stopping(reason), ending=ending)

    assert error is not None
    assert (error.kind, error.retryable) == ("stream_cut", True)
    assert calls_of(facts) == [], "a call that never ended never surfaces"
    assert not any(isinstance(fact, StreamEnded) for fact in facts)


@table("ending", ["no_message_stop", "cut", "reset"])
async def test_text_needs_no_end_beside_a_reason_for_stopping(ending: str) -> None:
    opened = {"index": 0, "content_block": {"type": "text", "text": "all of it"}}
    text = {"type": "frame", "event": "content_block_start", "data": opened}

    facts, error = await ended_early(text, stopping("end_turn"), ending=ending)

    assert error is None
    assert text_of(facts) == "all of it"


STREAM = "".join(
    part.decode()
    for part in (
        *opening_frames("msg_1", "some-model", {"input_tokens": 1}),
        *block_frames(0, {"type": "text", "text": "WHOLE"}),
        *closing_frames("end_turn", 2, None),
    )
)
EVENTS = [line.removeprefix("data: ") for line in STREAM.splitlines() if line.startswith("data: ")]
MESSAGE = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "WHOLE"},
            {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
)

PLAIN_MESSAGE = json.dumps(
    {"role": "assistant", "content": "WHOLE", "stop_reason": "end_turn", "usage": {"output_tokens": 2}}
)


async def test_a_proper_answer_is_read_whatever_its_wrapping() -> None:
    wrappings = {
        "upper case": (STREAM, "Text/Event-Stream; charset=UTF-8"),
        "plain text": (STREAM, "text/plain"),
        "no type": (STREAM, ""),
        "bytes": (STREAM, "application/octet-stream"),
        "JSON type": (STREAM, "application/json"),
        "byte order mark": ("\ufeff\n" + STREAM, "text/event-stream"),
        "comment first": (": ok\n\n" + STREAM, "text/event-stream"),
        "whole message": (MESSAGE, "application/json"),
        "whole message, called a stream": ("\n" + MESSAGE, "text/event-stream"),
        "whole message without a type": (PLAIN_MESSAGE, "application/json"),
        "wrapped message": (f'{{"code": 0, "message": "ok", "data": {MESSAGE}}}', "application/json"),
        "one event a line": ("\n".join(EVENTS), "application/x-ndjson"),
        "array of events": (f"[{', '.join(EVENTS)}]", "application/json"),
    }
    wrong: dict[str, object] = {}
    for name, (text, kind) in wrappings.items():
        facts, error = await answered({"raw_body": text, "headers": {"content-type": kind}})
        calls = [ToolCall(id="c1", name="read", arguments={"path": "a"})] if MESSAGE in text else []
        usages = [fact.usage.output_tokens for fact in facts if isinstance(fact, UsageReported)]
        if error or text_of(facts) != "WHOLE" or calls_of(facts) != calls or usages[-1:] != [2]:
            wrong[name] = (error, facts)

    assert wrong == {}


async def test_an_answer_of_another_api_is_named_and_not_asked_for_again() -> None:
    whole = '{"object": "chat.completion", "choices": [{"message": {"content": "Hi"}}]}'
    part = 'data: {"object":"chat.completion.chunk","choices":[{"delta":{"content":"Hi"}}]}\n\n'
    for text, kind in ((whole, "application/json"), (part, "text/event-stream")):
        _, error = await failed({"raw_body": text, "headers": {"content-type": kind}})

        assert (error.kind, error.retryable) == ("bad_response", False)
        assert "an answer of the Chat Completions API" in str(error)


async def test_an_error_inside_an_answer_is_quoted_whatever_its_shape() -> None:
    lost = '{"error":{"code":502,"message":"Provider disconnected"},"id":"x","choices":[]}'
    shapes = {
        "without a type": f"data: {lost}\n\n",
        "named event": f"event: error\ndata: {lost}\n\n",
        "not the form of an event": f"{lost}\n\n",
        "without its end": f"data: {lost}",
        "a text": 'data: {"error":"Provider disconnected"}\n\n',
        "a text as an event": "event: error\ndata: Provider disconnected\n\n",
        "without an error": 'data: {"object":"x","message":"Provider disconnected","code":502}\n\n',
        "below another key": 'data: {"type":"failed","response":{"reason":"Provider disconnected"}}\n\n',
        "another name": 'event: exception\ndata: {"message":"Provider disconnected"}\n\n',
        "plain text": "Provider disconnected\n\n",
        "plain text without its end": "Provider disconnected",
        "a page": "<html><h2>Provider disconnected</h2></html>\n\n",
    }
    answers: dict[str, dict[str, Any]] = {
        name: {"blocks": [TEXT, {"type": "bytes", "text": shape}], "ending": "no_message_stop"}
        for name, shape in shapes.items()
    }
    answers["a whole body"] = {"raw_body": lost, "headers": {"content-type": "application/json"}}
    errors = {name: (await failed(answer))[1] for name, answer in answers.items()}

    assert {name: str(error) for name, error in errors.items() if "Provider disconnected" not in str(error)} == {}
    assert {name for name, error in errors.items() if not error.retryable} == set()
    _, error = await failed({"blocks": [TEXT, {"type": "bytes", "text": "data: it died\n\n"}]})
    assert "it died" in str(error)


async def test_stop_reasons_of_other_apis_are_known() -> None:
    names: dict[str, tuple[StopReason, str]] = {
        "length": ("max_tokens", ""),
        "MAX_TOKENS": ("max_tokens", ""),
        "STOP": ("end_turn", ""),
        "eos_token": ("end_turn", ""),
        "tool_calls": ("tool_use", ""),
        "pause": ("pause_turn", ""),
        "model_length": ("model_context_window_exceeded", ""),
        "context_length_exceeded": ("model_context_window_exceeded", ""),
        "content_filter": ("refusal", "content_filter"),
        "SAFETY": ("refusal", "SAFETY"),
        "refusal": ("refusal", ""),
        "compute_lost": ("other", "compute_lost"),
    }
    seen = {name: (await answered({"blocks": [TEXT], "stop_reason": name}))[0][-1] for name in names}

    assert seen == {name: StreamEnded(*known) for name, known in names.items()}


async def test_an_answer_that_only_pings_is_abandoned() -> None:
    pings: list[dict[str, Any]] = [
        {"type": "frame", "event": "ping", "data": {"type": "ping"}},
        {"type": "pause", "seconds": 0.05},
    ]

    facts, error = await failed({"blocks": [TEXT, *pings * 40]}, silence_timeout=0.4)

    assert text_of(facts) == "begun"
    assert (error.kind, "nothing but pings for 0.8 s" in str(error)) == ("timeout", True)


async def test_what_fails_before_a_request_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("nonsense://%%%", "http://host:port", "just-a-word"):
        async with asking_at(address) as provider:
            _, error = await heard(provider.stream(HELLO))
        assert error is not None
        assert error.kind in ("network", "unavailable")

    async with ScriptedMessagesServer() as server, asking(server, connect_timeout=0.0) as provider:
        _, error = await heard(provider.stream(HELLO))
    assert error is not None
    assert error.kind == "network"

    monkeypatch.setitem(sys.modules, "tui_agent.providers.anthropic_sdk", None)
    _, error = await heard(AnthropicProvider("some-model", api_key="x").stream(HELLO))
    assert error is not None
    assert error.kind == "unavailable"
    assert "install tui-agent again" in str(error)


async def test_no_failure_and_no_log_contains_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    leaking = f"invalid key {SECRET}"
    script: list[dict[str, Any]] = [
        {"status": 401, "error_type": "authentication_error", "error_message": leaking},
        {"status": 400, "raw_body": leaking},
        {"blocks": [TEXT], "ending": "cut"},
        {"blocks": [TEXT], "ending": "error", "error_message": leaking},
        {"blocks": [TEXT], "ending": "error", "error_message": leaking, "byte_by_byte": True},
        {"raw_body": leaking, "headers": {"content-type": "text/html"}},
        {"blocks": [{"type": "bytes", "text": f"data: {{{SECRET}\n\n"}]},
    ]
    async with ScriptedMessagesServer(script) as server:
        server.token = SECRET
        provider = AnthropicProvider("some-model", api_key=SECRET, base_url=server.base_url)
        elsewhere = AnthropicProvider("some-model", api_key=SECRET, base_url="http://127.0.0.1:1")
        errors = [(await heard(provider.stream(HELLO)))[1] for _ in script]
        errors.append((await heard(elsewhere.stream(HELLO)))[1])
        await provider.aclose()
        await elsewhere.aclose()

    for error in errors:
        assert error is not None
        told = "".join(traceback.format_exception(error)) + repr(error) + str(vars(error))
        assert SECRET not in told
        assert "do-not-tell" not in told
    assert SECRET not in repr(provider)
    assert SECRET not in caplog.text
