"""The provider of a plugin: whatever it raises becomes an error of the request."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, cast

from tui_agent.execution.contained_calls import contained, try_call
from tui_agent.protocol.callbacks import Crash
from tui_agent.protocol.errors import ConfigurationError, ProviderError
from tui_agent.protocol.provider import ModelInfo, ModelRequest, StreamEvent
from tui_agent.protocol.visible_text import escaped

_END = object()


class PluginProvider:
    """Wrapper around a plugin's provider; implements `protocol.provider.ModelProvider`."""

    def __init__(self, plugin: str, reference: str, make: Callable[[str], object]) -> None:
        """
        Args:
            plugin: the plugin, for messages.
            reference: the model, `PROVIDER/NAME`.
            make: takes the reference and returns the provider.

        Raises:
            ConfigurationError: it raises, or returns something else.
        """
        self._plugin = plugin
        made: Any = try_call(make, reference)
        info: object = made if isinstance(made, Crash) else try_call(_checked_model, made)
        if isinstance(info, Crash):
            raise ConfigurationError(escaped(f"{plugin} cannot be used for {reference}: {info.text}"))
        if not isinstance(info, ModelInfo) or info.name != reference:
            raise ConfigurationError(escaped(f"{plugin}: its `model` must be a ModelInfo named {reference!r}"))
        self._provider: Any = made
        self._model = info

    @property
    def model(self) -> ModelInfo:
        """Facts about the model, as the plugin gave them first."""
        return self._model

    async def prepare(self) -> None:
        """Prepare the plugin's provider."""
        await self._contained(self._provider.prepare)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Yield the events of the plugin's provider.

        Raises:
            ProviderError: the request failed, or the plugin raised something.
        """
        made = try_call(self._provider.stream, request)
        if isinstance(made, Crash):
            raise self._error(made)
        # Only a generator can be closed.
        events: Any = made if hasattr(made, "aclose") else _closable(made)
        async with aclosing(events):
            while True:
                event = await self._contained(lambda: anext(events, _END))
                if event is _END:
                    return
                yield cast(StreamEvent, event)

    async def aclose(self) -> None:
        """Close the plugin's provider; a failure changes nothing any more."""
        await contained(_called(self._provider.aclose))

    async def _contained(self, work: Callable[[], Awaitable[object]]) -> object:
        result = await contained(_called(work))
        if isinstance(result, Crash):
            raise self._error(result)
        return result

    def _error(self, crash: Crash) -> ProviderError:
        if isinstance(crash.error, ProviderError):
            return crash.error
        text = f"{self._plugin} failed: {crash.text}"
        return ProviderError(
            escaped(f"{text}. The conversation is kept; try again, or choose another model."), kind="bad_response"
        )


def _checked_model(provider: Any) -> object:
    """Return the facts of a provider that has all methods.

    Raises:
        ConfigurationError: a method is missing.
    """
    for name in ("prepare", "stream", "aclose"):
        if not callable(getattr(provider, name, None)):
            raise ConfigurationError(f"its provider has no method `{name}`")
    return provider.model


async def _called(work: Callable[[], Awaitable[object]]) -> object:
    """Await what a function returns; what it raises before counts, too."""
    return await work()


async def _closable(events: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    async for event in events:
        yield event
