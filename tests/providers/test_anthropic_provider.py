"""The provider through the real SDK, against a server that behaves like the API."""

import asyncio
import subprocess
import sys
from contextlib import aclosing
from typing import Any

import pytest

from tests.support.messages_server import ScriptedMessagesServer
from tests.support.stream_helpers import HELLO, asking, calls_of, heard, text_of
from tests.support.table import table
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import (
    ThinkingBlock,
    ToolCall,
    Usage,
)
from tui_agent.protocol.provider import (
    StreamEnded,
    StreamStarted,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    UsageReported,
)
from tui_agent.providers import AnthropicProvider


@pytest.mark.slow
def test_importing_the_providers_does_not_load_the_sdk() -> None:
    code = (
        "import sys, tui_agent.providers, tui_agent.providers.demo;"
        "print(sorted({'anthropic', 'httpx2'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


async def test_prepare_loads_the_sdk_off_the_loop_and_sends_nothing() -> None:
    async with ScriptedMessagesServer() as server, asking(server) as provider:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            ticking = group.create_task(tick())
            await provider.prepare()
            await provider.prepare()
            ticking.cancel()

        assert ticks > 1
        assert server.requests == []


async def test_a_whole_answer_becomes_events_in_order() -> None:
    script = {
        "blocks": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZW5j"},
            {"type": "text", "text": "Hello 🙂"},
            {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
        ],
        "piece": 100,
        "usage": {
            "input_tokens": 3,
            "output_tokens": 9,
            "cache_read_input_tokens": 5,
            "cache_creation_input_tokens": 7,
        },
    }
    async with ScriptedMessagesServer([script]) as server, asking(server) as provider:
        facts, error = await heard(provider.stream(HELLO))

    assert error is None
    assert facts == [
        StreamStarted(
            "scripted-model", Usage(input_tokens=3, output_tokens=1, cache_read_tokens=5, cache_write_tokens=7)
        ),
        ThinkingDelta("hm", 0),
        ThinkingEnded(ThinkingBlock(thinking="hm", signature="c2ln"), 0),
        ThinkingEnded(ThinkingBlock(thinking="", redacted="ZW5j"), 1),
        TextDelta("Hello 🙂", 2),
        ToolCallStarted("c1", "read", 3),
        ToolCallDelta("c1", '{"path": "a"}', 3),
        ToolCallEnded(ToolCall(id="c1", name="read", arguments={"path": "a"}), 3),
        UsageReported(Usage(input_tokens=3, output_tokens=9, cache_read_tokens=5, cache_write_tokens=7)),
        StreamEnded("tool_use"),
    ]


async def test_a_call_is_reported_while_the_model_still_streams() -> None:
    call = {"type": "tool_use", "name": "read", "input": {}}
    script = {"blocks": [call, {"type": "pause", "until": "told"}, {"type": "text", "text": "more"}]}
    async with ScriptedMessagesServer([script]) as server, asking(server) as provider:
        facts = []
        async for fact in provider.stream(HELLO):
            facts.append(fact)
            if isinstance(fact, ToolCallEnded):
                server.release("told")

    assert calls_of(facts)
    assert text_of(facts) == "more"


async def test_one_connection_serves_many_requests() -> None:
    async with ScriptedMessagesServer([{}, {}, {}]) as server, asking(server) as provider:
        ports = []
        for _ in range(3):
            await heard(provider.stream(HELLO))
            ports.append(server.requests[-1].peer)

    assert len(set(ports)) == 1


async def test_cancelling_and_closing_the_iterator_close_the_connection_and_leave_no_task() -> None:
    held = {"blocks": [{"type": "text", "text": "begun"}, {"type": "pause", "until": "never"}]}
    again = {"blocks": [{"type": "text", "text": "again"}]}
    async with ScriptedMessagesServer([held, held, again]) as server, asking(server) as provider:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(heard(provider.stream(HELLO)))
            await server.reached("never")
            task.cancel()
        await server.requests[0].gone.wait()
        async with aclosing(provider.stream(HELLO)) as events:
            async for fact in events:
                if isinstance(fact, TextDelta):
                    break
        await server.requests[1].gone.wait()
        facts, error = await heard(provider.stream(HELLO))

        assert task.cancelled()
        assert (text_of(facts), error) == ("again", None)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@table(
    ("options", "words"),
    [
        ({"model": " "}, "name is empty"),
        ({"api_key": "a", "auth_token": "b"}, "not both"),
        ({"api_key": "sk-line\nbreak"}, "copy it again"),
        ({"auth_token": "sk-ünicode"}, "copy it again"),
        ({"base_url": "https://me:sk-password@example.com"}, "user name or password"),
        ({"base_url": "http://[::1"}, "not valid"),
        ({"model": 3}, "AnthropicProvider.model must be the name of a model, got 3"),
        ({"api_key": b"a-secret"}, r"AnthropicProvider.api_key must be text or None, not of <class 'bytes'>$"),
        ({"auth_token": 3}, "AnthropicProvider.auth_token must be text or None"),
        ({"base_url": 3}, "AnthropicProvider.base_url must be an address or None, got 3"),
        ({"max_tokens": "1k"}, "AnthropicProvider.max_tokens must be a whole number of at least 1, got '1k'"),
        ({"max_tokens": 0}, "AnthropicProvider.max_tokens must be a whole number of at least 1, got 0"),
        ({"thinking": "adaptiv"}, r"unknown AnthropicProvider.thinking 'adaptiv'; did you mean adaptive\?"),
        ({"cache": "no"}, "AnthropicProvider.cache must be True or False, got 'no'"),
        ({"headers": ["a"]}, "AnthropicProvider.headers must be a mapping of names to texts, or None"),
        ({"headers": {"a": 1}}, r"AnthropicProvider.headers\['a'\] must be text, got 1"),
        ({"connect_timeout": "5"}, "AnthropicProvider.connect_timeout must be 0 seconds or more, got '5'"),
        ({"silence_timeout": None}, "AnthropicProvider.silence_timeout must be 0 seconds or more, got None"),
    ],
)
def test_a_wrong_value_or_kind_is_refused_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as raised:
        AnthropicProvider(**{"model": "a-model", **options})

    assert "sk-" not in str(raised.value)
