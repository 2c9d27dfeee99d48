"""Builds the model provider: the one that the settings name, or with `--demo` the offline model."""

import os
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.protocol.provider import ModelProvider
from tui_agent.providers import DEMO_MODEL, AnthropicProvider
from tui_agent.settings import LoadedSettings, RuleSetting, Settings

from .configuration.effective_settings import Credentials
from .launch_options import LaunchOptions

if TYPE_CHECKING:
    # Imported at run time only by a program that records.
    from tui_agent.recording import RecordingSink


class ProviderBuilder:
    """Builds the providers of one engine; their streams are recorded if the program records."""

    def __init__(self, stack: AsyncExitStack, sink: "RecordingSink | None") -> None:
        """
        Args:
            stack: closes the providers.
            sink: records what the model sends; None: nothing is recorded.
        """
        self._stack = stack
        self._sink = sink

    async def build_first(self, options: LaunchOptions, loaded: LoadedSettings) -> tuple[ModelProvider, LoadedSettings]:
        """Return the provider, and the settings with the rules of the offline model's tour.

        Raises:
            ConfigurationError: no key is set.
        """
        if not options.demo:
            return self.build(loaded.settings), loaded
        from tui_agent.providers.demo import DemoServer

        server = await self._stack.enter_async_context(DemoServer())
        provider = AnthropicProvider(DEMO_MODEL, auth_token=server.token, base_url=server.base_url)
        tour = tuple(RuleSetting(verdict, text, "--demo", "options") for verdict, text in server.rules)
        return self._keep(provider), replace(loaded, rules=(*loaded.rules, *tour))

    def build(self, settings: Settings) -> ModelProvider:
        """Return the provider that the settings name.

        Raises:
            ConfigurationError: no key is set.
        """
        found = Credentials.require(os.environ, settings.base_url)
        provider = AnthropicProvider(
            settings.model, api_key=found.api_key, auth_token=found.auth_token, base_url=found.base_url
        )
        return self._keep(provider)

    def _keep(self, provider: AnthropicProvider) -> ModelProvider:
        """Have the stack close the provider, and wrap it if its streams are recorded."""
        self._stack.push_async_callback(provider.aclose)
        sink = self._sink
        if sink is None:
            return provider
        from tui_agent.providers.recorded_streams import RecordingProvider

        return RecordingProvider(provider, lambda note: sink.note("stream", note))
