"""The scripted model plays its steps and records the requests."""

from typing import Any

import pytest

from tui_agent.protocol.errors import ConfigurationError, ProviderError
from tui_agent.protocol.messages import user_message
from tui_agent.protocol.provider import (
    ModelInfo,
    ModelRequest,
    StreamEvent,
)
from tui_agent.providers import ScriptedProvider, call, fail, reply

REQUEST = ModelRequest((user_message("hi"),))


async def ask(provider: ScriptedProvider) -> list[StreamEvent]:
    return [event async for event in provider.stream(REQUEST)]


async def test_an_exhausted_script_is_an_error_without_retry() -> None:
    provider = ScriptedProvider()
    provider.add("late")
    await ask(provider)

    with pytest.raises(ProviderError) as raised:
        await ask(provider)

    assert not raised.value.retryable


async def test_the_parts_of_a_script_refuse_wrong_kinds() -> None:
    wrong: Any = 3
    provider = ScriptedProvider([lambda _: wrong])

    for make, words in (
        (lambda: ScriptedProvider("hello"), "steps must be a list of answers, such as .*, got 'hello'"),
        (lambda: ScriptedProvider(reply("hello")), "steps must be a list of answers, such as .*, got a Reply"),  # type: ignore[arg-type]
        (
            lambda: ScriptedProvider(["hello", wrong]),
            r"steps\[1\] must be text, reply\(…\), call\(…\) or fail\(…\), got 3",
        ),
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
