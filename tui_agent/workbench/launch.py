"""Everything that a session needs before it is opened, read and checked before any file of a session is touched."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tui_agent.permissions import Rule
from tui_agent.protocol.provider import ModelProvider
from tui_agent.settings import LoadedSettings, Locations, Settings

from .build_provider import ProviderBuilder
from .built_in_tools import offered_tools
from .configuration.effective_settings import prepare_settings
from .configuration.launch_options import LaunchOptions
from .configuration.named_endpoints import withhold_named_secrets
from .configuration.permission_rules import added_folders, parse_rules
from .plugins.plugin_loader import LoadedPlugins, load_plugins
from .sessions.journal_options import resolve_continue


@dataclass(frozen=True, slots=True)
class Launch:
    """Settings, plugins, rules and model of one start."""

    options: LaunchOptions
    """The command line, with the session that `--continue` selects and all folders."""
    locations: Locations
    loaded: LoadedSettings
    plugins: LoadedPlugins
    providers: ProviderBuilder
    provider: ModelProvider
    """The model of the settings."""
    rules: Sequence[Sequence[Rule]]
    """The rules of each layer of the settings."""
    is_offered: Callable[[str], bool] | None
    """Returns True for the names of the tools that are offered; None: all."""

    @classmethod
    async def prepare(cls, options: LaunchOptions, stack: AsyncExitStack) -> "Launch":
        """Read and check everything; `stack` closes the providers.

        Raises:
            ConfigurationError: settings, rules or credentials are missing or wrong.
        """
        locations, loaded = prepare_settings(options)
        withhold_named_secrets(loaded.settings)
        # In a thread: a folder may be on a file system that does not answer, and the screen shares the event loop.
        options = replace(options, folders=await asyncio.to_thread(added_folders, options, loaded.settings))
        plugins = await asyncio.to_thread(load_plugins, loaded.settings, options.cwd)
        providers = ProviderBuilder(stack, plugins)
        provider, options, loaded = await providers.build_first(options, loaded)
        rules, offered = parse_rules(loaded.rules), offered_tools(options.extras.tools)
        options = await asyncio.to_thread(resolve_continue, options, locations)
        return cls(options, locations, loaded, plugins, providers, provider, rules, offered)

    @property
    def cwd(self) -> Path:
        """The workspace."""
        return self.options.cwd

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings
