"""Listening to a model in a test: all facts, and the error they ended with, if they did."""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any

from tests.support.messages_server import ScriptedMessagesServer
from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.messages import ToolCall, user_message
from tui_agent.protocol.provider import ModelRequest, StreamEvent, TextDelta, ToolCallEnded
from tui_agent.providers import AnthropicProvider

HELLO = ModelRequest((user_message("hello"),))


def asking(
    server: ScriptedMessagesServer, model: str = "some-model", **options: Any
) -> AbstractAsyncContextManager[AnthropicProvider]:
    """A provider that asks `server`, closed at the end."""
    return aclosing(AnthropicProvider(model, auth_token=server.token, base_url=server.base_url, **options))


async def heard(events: AsyncIterator[StreamEvent]) -> tuple[list[StreamEvent], ProviderError | None]:
    """Every fact of a stream, and the error it ended with."""
    seen: list[StreamEvent] = []
    try:
        async for event in events:
            seen.append(event)  # noqa: PERF401 - what came before an error counts
    except ProviderError as error:
        return seen, error
    return seen, None


def folded(facts: Iterator[StreamEvent]) -> tuple[list[StreamEvent], ProviderError | None]:
    """The same for facts that come without waiting."""
    seen: list[StreamEvent] = []
    try:
        for fact in facts:
            seen.append(fact)  # noqa: PERF402 - what came before an error counts
    except ProviderError as error:
        return seen, error
    return seen, None


def text_of(events: Iterable[StreamEvent]) -> str:
    """What the model said."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls_of(events: Iterable[StreamEvent]) -> list[ToolCall]:
    """What the model called."""
    return [event.call for event in events if isinstance(event, ToolCallEnded)]
