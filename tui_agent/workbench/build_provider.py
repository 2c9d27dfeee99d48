"""Builds the model provider: the one that the settings name, or with `--demo` the offline model."""

import asyncio
import os
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.protocol.background import IMPORTING
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.errors import ConfigurationError, ProviderError
from tui_agent.protocol.events import Noticed, Warned
from tui_agent.protocol.provider import ModelProvider
from tui_agent.providers import DEMO_MODEL, AnthropicProvider
from tui_agent.providers.anthropic_provider import KeySource, load_sdk
from tui_agent.settings import LoadedSettings, RuleSetting, Settings

from .configuration.effective_settings import Credentials
from .configuration.launch_options import LaunchOptions
from .configuration.named_endpoints import key_of, plugin_of, target_of
from .plugins.plugin_loader import LoadedPlugins
from .user_commands import run_line

if TYPE_CHECKING:
    from tui_agent.providers.demo import DemoServer
    from tui_agent.providers.model_catalog import ModelTarget

_KEY_SECONDS = 60.0
"""Most seconds that a command that prints the key may take: it may ask another server."""
_LONGEST_REASON = 300


class ProviderBuilder:
    """Builds the providers of one engine."""

    def __init__(self, stack: AsyncExitStack, plugins: LoadedPlugins | None = None) -> None:
        self._stack = stack
        self._plugins = plugins or LoadedPlugins()
        self._built: dict[tuple[str, str | None], ModelProvider] = {}
        self.bus: EventBus | None = None
        """Gets notices and warnings of providers for the user; set once there is a session."""

    async def build_first(
        self, options: LaunchOptions, loaded: LoadedSettings
    ) -> tuple[ModelProvider, LaunchOptions, LoadedSettings]:
        """Return the provider of the settings, with options and settings unchanged.

        With `--demo` return the offline model, which then runs until the stack closes; the options get the folder of
        its tour, the settings its rules.

        Raises:
            ConfigurationError: as for `build`.
        """
        if not options.demo:
            return self.build(loaded.settings), options, loaded
        # In a thread: importing it takes longer than a frame of the screen.
        server = await self._stack.enter_async_context(await asyncio.to_thread(_demo_server))
        provider = AnthropicProvider(DEMO_MODEL, auth_token=server.token, base_url=server.base_url)
        tour = tuple(RuleSetting(verdict, text, "--demo", "options") for verdict, text in server.rules)
        options = replace(options, folders=(*options.folders, server.sample_dir))
        return self._keep_own(provider), options, replace(loaded, rules=(*loaded.rules, *tour))

    def build(self, settings: Settings) -> ModelProvider:
        """Return the provider for `settings.model`: of a plugin, a named endpoint or the default one.

        It is built once for each model and endpoint and closed with the session. Sends no request.

        Raises:
            ConfigurationError: no key is set, the model's endpoint is unknown or not a URL, or the plugin that offers
                the model fails.
        """
        if (plugin := plugin_of(settings, os.environ)) is not None:
            key = (settings.model, plugin)
            if key not in self._built:
                self._built[key] = self._keep(self._plugins.provider(plugin, settings.model))
            return self._built[key]
        target = target_of(settings, os.environ)
        # Part of the key, because settings may move a name to another address while the session runs.
        endpoint = settings.base_url if target is None else target.endpoint.model_dump_json()
        key = (settings.model, endpoint)
        if key not in self._built:
            # Kept, because a provider remembers which fields its endpoint refuses.
            self._built[key] = self._keep_own(
                self._build_default(settings) if target is None else self._build_for(target, settings)
            )
        return self._built[key]

    def _build_default(self, settings: Settings) -> AnthropicProvider:
        """Return the provider for a model of the default endpoint."""
        found = Credentials.require(os.environ, settings.base_url, settings.key_command)
        return AnthropicProvider(
            settings.model,
            api_key=found.api_key,
            auth_token=found.auth_token,
            base_url=found.base_url,
            betas=(*settings.betas, *_betas_of_environment()),
            extra_body=settings.extra_body,
            key_source=_key_source(settings.key_command, settings.key_lifetime),
            cache=settings.cache_lifetime == "5m" or "1h",
        )

    def _build_for(self, target: "ModelTarget", settings: Settings) -> AnthropicProvider:
        """Return the provider for a model of a named endpoint, which gets that endpoint's key and no other."""
        # Imported at run time only for such a model.
        from tui_agent.providers.endpoint_provider import provider_for

        endpoint = target.endpoint
        key, token = key_of(target.provider, endpoint, os.environ)
        return provider_for(
            target,
            api_key=key,
            auth_token=token,
            key_source=_key_source(endpoint.key_command, endpoint.key_lifetime),
            cache=(endpoint.cache_lifetime or settings.cache_lifetime) == "5m" or "1h",
        )

    def _notice(self, text: str) -> None:
        if self.bus is not None:
            self.bus.publish(Noticed(code="field_dropped", text=text))

    def _warning(self, text: str) -> None:
        if self.bus is not None:
            self.bus.publish(Warned(code="endpoint_setting", text=text))

    def _keep_own(self, provider: AnthropicProvider) -> ModelProvider:
        provider.on_notice, provider.on_warning = self._notice, self._warning
        return self._keep(provider)

    def _keep(self, provider: ModelProvider) -> ModelProvider:
        """Have the stack close the provider."""
        self._stack.push_async_callback(provider.aclose)
        return provider


def _betas_of_environment() -> tuple[str, ...]:
    """Return the betas that users of another agent have set, for the default endpoint."""
    listed = os.environ.get("ANTHROPIC_BETAS", "").split(",")
    return tuple(dict.fromkeys(name.strip() for name in listed if name.strip().isprintable() and name.strip()))


def _key_source(command: str, lifetime: float | None) -> KeySource | None:
    """Return the key source of a command of the settings; None without one."""
    return KeySource(partial(printed_key, command), lifetime) if command else None


async def printed_key(command: str) -> str:
    """Run a command line for bash and return the key that it prints.

    Only the user's own settings name it, so it has the whole environment of this program.

    Raises:
        ProviderError: it failed, took too long, or printed no key.
    """
    try:
        code, out, errors = await run_line(command, _KEY_SECONDS)
    except TimeoutError:
        raise _no_key(f"it took more than {_KEY_SECONDS:g} s") from None
    key = out.strip()
    if code:
        reason = " ".join(errors.split())[-_LONGEST_REASON:]
        raise _no_key(f"exit code {code}{f': {reason}' if reason else ''}")
    # A header cannot hold anything else, and its library would quote the key in the error.
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        # The output stays out of the message: it may contain the key.
        raise _no_key("it must print the key and nothing else")
    return key


def _demo_server() -> "AbstractAsyncContextManager[DemoServer]":
    with IMPORTING:
        from tui_agent.providers.demo import demo_server

    return demo_server()


def _no_key(why: str) -> ProviderError:
    summary = f"`key_command` of the settings gave no key: {why}"
    text = f"{summary}. The conversation is kept; correct the command, then try again."
    return ProviderError(text, kind="unavailable", summary=summary)


def load_sdk_of(settings: Settings) -> None:
    """Import the SDK of the model that the settings name. Blocks; the first request reports what is missing."""
    try:
        with IMPORTING:
            target = target_of(settings, os.environ)
    except ConfigurationError:
        return
    if target is None or target.endpoint.kind != "openai":
        load_sdk()
        return
    with suppress(ImportError):
        import tui_agent.providers.kinds.openai_sdk  # noqa: F401  # pyright: ignore[reportUnusedImport]
