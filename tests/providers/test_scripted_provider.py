"""The scripted model plays its steps and records the requests."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from tests.support.stream_helpers import heard, text_of
from tests.support.table import table
from tui_agent.protocol.errors import ConfigurationError, ProviderError
from tui_agent.protocol.messages import ThinkingBlock, ToolCall, Usage, user_message
from tui_agent.protocol.provider import (
    ModelInfo,
    ModelProvider,
    ModelRequest,
    StreamEnded,
    StreamEvent,
    TextDelta,
    ThinkingEnded,
    ToolCallEnded,
    UsageReported,
)
from tui_agent.providers import Call, Say, ScriptedProvider, Think, Wait, call, fail, reply

REQUEST = ModelRequest((user_message("hi"),))


async def ask(provider: ScriptedProvider) -> list[StreamEvent]:
    return [event async for event in provider.stream(REQUEST)]


async def test_each_request_plays_one_step() -> None:
    provider: ModelProvider = ScriptedProvider(["one", reply("two", Think("hm"), call("read", path="a"))])
    assert isinstance(provider, ScriptedProvider)

    first, second = await ask(provider), await ask(provider)

    assert [event.text for event in first if isinstance(event, TextDelta)] == ["one"]
    assert first[-1] == StreamEnded("end_turn")
    assert ThinkingEnded(ThinkingBlock(thinking="hm", signature="signature"), 1) in second
    assert ToolCallEnded(ToolCall(id="call_1", name="read", arguments={"path": "a"}), 2) in second
    assert second[-1] == StreamEnded("tool_use")
    assert provider.requests == [REQUEST, REQUEST]
    assert provider.left == 0


async def test_text_comes_in_pieces_of_the_given_size() -> None:
    facts = await ask(ScriptedProvider([Say("abcde", piece=2)]))

    assert [event.text for event in facts if isinstance(event, TextDelta)] == ["ab", "cd", "e"]


async def test_malformed_and_cut_calls_can_be_scripted() -> None:
    facts = await ask(ScriptedProvider([reply(Call("t", {}, raw="{"), Call("t", {}, "mine", cut=True))]))

    broken, cut = [event.call for event in facts if isinstance(event, ToolCallEnded)]
    assert broken.malformed
    assert cut == ToolCall(id="mine", name="t", cut=True)


async def test_an_error_breaks_the_stream_off() -> None:
    provider = ScriptedProvider([reply("some", fail("overloaded", status=529, retry_after=1.0), "never")])

    seen, error = await heard(provider.stream(REQUEST))

    assert error is not None
    assert (error.kind, error.status, error.retry_after) == ("overloaded", 529, 1.0)
    assert text_of(seen) == "some"
    assert provider.closed_early == 0


async def test_a_stream_waits_for_its_gate() -> None:
    gate, reached = asyncio.Event(), asyncio.Event()
    provider = ScriptedProvider([reply("before", Wait(gate, reached), "after")])
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(ask(provider))
        await reached.wait()
        assert not asking.done()
        gate.set()

    assert [event.text for event in asking.result() if isinstance(event, TextDelta)] == ["before", "after"]


async def test_closing_a_stream_early_is_counted() -> None:
    provider = ScriptedProvider([reply("one", "two")])

    async with aclosing(provider.stream(REQUEST)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break

    assert provider.closed_early == 1


async def test_a_step_can_depend_on_the_request() -> None:
    provider = ScriptedProvider([lambda request: f"you said {request.messages[-1].text}"])

    assert TextDelta("you said hi", 0) in await ask(provider)


async def test_usage_and_stop_reason_come_from_the_script() -> None:
    step = reply("x", stop_reason="max_tokens", usage=Usage(input_tokens=7, output_tokens=3))

    facts = await ask(ScriptedProvider([step]))

    assert facts[-2:] == [UsageReported(Usage(input_tokens=7, output_tokens=3)), StreamEnded("max_tokens")]


async def test_an_exhausted_script_is_an_error_without_retry() -> None:
    provider = ScriptedProvider()
    provider.add("late")
    await ask(provider)

    with pytest.raises(ProviderError) as raised:
        await ask(provider)

    assert not raised.value.retryable


async def test_prepare_and_close_are_recorded() -> None:
    provider = ScriptedProvider()

    await provider.prepare()
    await provider.aclose()

    assert (provider.prepared, provider.closed) == (1, True)


@table(
    ("steps", "words"),
    [
        ("hello", "steps must be a list of answers, such as .*, got 'hello'"),
        (reply("hello"), "steps must be a list of answers, such as .*, got a Reply"),
        (["hello", 3], r"steps\[1\] must be text, reply\(…\), call\(…\) or fail\(…\), got 3"),
        ([ThinkingBlock], r"steps\[0\] must be text, .*, got the class ThinkingBlock, not an instance"),
    ],
)
def test_a_script_of_the_wrong_kind_is_refused(steps: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        ScriptedProvider(steps)


async def test_the_parts_of_a_script_refuse_wrong_kinds() -> None:
    wrong: Any = 3
    provider = ScriptedProvider([lambda _: wrong])

    for make, words in (
        (lambda: ScriptedProvider([], model=wrong), "ScriptedProvider.model must be a ModelInfo or None, got 3"),
        (lambda: provider.add(wrong), r"the steps\[0\] must be text"),
        (lambda: reply(wrong), r"the parts of a reply\[0\] must be text or a block"),
        (lambda: reply("x", stop_reason=wrong), "unknown stop_reason 3"),
        (lambda: reply("x", usage=wrong), "the usage of a reply must be a Usage or None, got 3"),
        (lambda: call(wrong), "the name of a call must be text, got 3"),
        (lambda: fail(wrong), "ProviderError has no kind 3; choose from authentication, "),
        (lambda: ModelInfo(wrong), "ModelInfo.name must be text, got 3"),
        (lambda: ModelInfo("m", context_window=0), "ModelInfo.context_window must be a whole number of at least 1"),
        (lambda: ModelInfo("m", input_price=-1), "ModelInfo.input_price must be a number of at least 0 or None"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            make()
    with pytest.raises(ConfigurationError, match="what a function of the script returns must be text"):
        await ask(provider)
