"""Model streams in tests: all facts, and the error at their end, if any."""

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
    """Yield a provider that uses `server`, and close it at the end."""
    return aclosing(AnthropicProvider(model, auth_token=server.token, base_url=server.base_url, **options))


async def heard(events: AsyncIterator[StreamEvent]) -> tuple[list[StreamEvent], ProviderError | None]:
    """Return every fact of a stream, and the error that ended it."""
    seen: list[StreamEvent] = []
    try:
        async for event in events:
            seen.append(event)  # noqa: PERF401 - facts before an error count
    except ProviderError as error:
        return seen, error
    return seen, None


def folded(facts: Iterator[StreamEvent]) -> tuple[list[StreamEvent], ProviderError | None]:
    """Return the same for a synchronous iterator."""
    seen: list[StreamEvent] = []
    try:
        for fact in facts:
            seen.append(fact)  # noqa: PERF402 - facts before an error count
    except ProviderError as error:
        return seen, error
    return seen, None


def text_of(events: Iterable[StreamEvent]) -> str:
    """Return the text of the model."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls_of(events: Iterable[StreamEvent]) -> list[ToolCall]:
    """Return the calls of the model."""
    return [event.call for event in events if isinstance(event, ToolCallEnded)]
