"""Loads the plugins of a start: imports their objects and checks them. Nothing that a plugin does ends the start."""

import contextlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from tui_agent.execution import HookBus
from tui_agent.execution.contained_calls import try_call
from tui_agent.execution.tool_registry import ToolLike, as_tool
from tui_agent.protocol.callbacks import Crash
from tui_agent.protocol.engine_imports import IMPORTING
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.value_checks import wrong_kind
from tui_agent.protocol.visible_text import escaped
from tui_agent.settings import Settings

from .plugin_entries import Plugin, PluginEntry, find_plugins
from .plugin_provider import PluginProvider

MakeProvider: TypeAlias = Callable[[str], object]

_LONGEST_REASON = 300
"""Characters of a plugin's own text in a message."""


@dataclass(frozen=True, slots=True)
class LoadedPlugins:
    """The plugins of a start."""

    plugins: tuple[Plugin, ...] = ()
    """All that are installed; those that could not be loaded have the reason."""
    tools: tuple[Tool, ...] = ()
    hooks: Mapping[str, HookBus] = field(default_factory=dict[str, HookBus])
    """Hooks by the package and name of the plugin."""
    providers: Mapping[str, MakeProvider] = field(default_factory=dict[str, MakeProvider])
    """Functions that take `PROVIDER/NAME` and return the provider, by `PROVIDER`."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Messages about the plugins that are not used, except those that the user disabled."""
        named: dict[tuple[str, str], list[str]] = {}
        for plugin in self.plugins:
            if plugin.problem:
                named.setdefault((plugin.entry.package, plugin.problem), []).append(plugin.entry.title)
        return tuple(
            f"{'The plugins' if titles[1:] else 'The plugin'} {', '.join(titles)} of {package} "
            f"{'are' if titles[1:] else 'is'} not used: {escaped(problem)}."
            for (package, problem), titles in named.items()
        )

    def add_hooks(self, bus: HookBus) -> None:
        """Add the hooks of all plugins to those of an agent."""
        for owner, hooks in self.hooks.items():
            bus.include(hooks, owner)

    def provider(self, name: str, reference: str) -> PluginProvider:
        """Return the provider of a plugin.

        Args:
            name: the name of the plugin.
            reference: the model, `NAME/MODEL`.

        Raises:
            ConfigurationError: the plugin is not used, or fails.
        """
        plugin = next(one for one in self.plugins if (one.entry.kind, one.entry.name) == ("provider", name))
        if name not in self.providers:
            reason = plugin.problem or "it is in `plugins.disabled`"
            raise ConfigurationError(f"the plugin {plugin.entry.shown} is not used: {escaped(reason)}")
        return PluginProvider(f"the plugin {plugin.entry.shown}", reference, self.providers[name])


def load_plugins(settings: Settings, root: Path) -> LoadedPlugins:
    """Import the tools, hooks and providers of the plugins that may be used. Blocks.

    Args:
        settings: the settings.
        root: the workspace.
    """
    tools: list[Tool] = []
    hooks: dict[str, HookBus] = {}
    providers: dict[str, MakeProvider] = {}

    def take(entry: PluginEntry) -> None:
        thing = entry.load()
        match entry.kind:
            case "tool":
                tools.append(_named_tool(as_tool(_as_tool_like(thing)), entry.name))
            case "hook":
                hooks[f"{entry.distribution}:{entry.name}"] = _expect_hooks(thing)
            case "provider":
                providers[entry.name] = _expect_function(thing)
            case "theme":
                raise AssertionError(entry)

    found = [_taken(plugin, take) for plugin in find_plugins(settings, root)]
    return LoadedPlugins(tuple(found), tuple(tools), hooks, providers)


def _taken(plugin: Plugin, take: Callable[[PluginEntry], None]) -> Plugin:
    """Load a plugin, and return it, with the reason if that failed."""
    if not plugin.is_used or plugin.entry.kind == "theme":
        return plugin
    # What a module prints must not be part of the output that programs read.
    with IMPORTING, contextlib.redirect_stdout(sys.stderr):
        crash = try_call(take, plugin.entry)
    if not isinstance(crash, Crash):
        return plugin
    words = crash.text if isinstance(crash.error, ConfigurationError) else f"{type(crash.error).__name__}: {crash.text}"
    return replace(plugin, problem=" ".join(words.split())[:_LONGEST_REASON])


def _as_tool_like(thing: object) -> ToolLike:
    if isinstance(thing, Tool) or callable(thing) or hasattr(thing, "parameters"):
        return thing  # pyright: ignore[reportReturnType] — `as_tool` checks the rest
    raise wrong_kind("a tool", "a Tool or a function", thing)


def _named_tool(tool: Tool, name: str) -> Tool:
    if tool.name != name:
        raise ConfigurationError(f"the tool is named {tool.name!r}; its entry point must have the same name")
    if tool.spec.input_schema.get("type") != "object":
        raise ConfigurationError('the schema of the tool does not begin with "type": "object"')
    return tool


def _expect_hooks(thing: object) -> HookBus:
    if not isinstance(thing, HookBus):
        raise wrong_kind("a hook plugin", "a HookBus", thing)
    return thing


def _expect_function(thing: object) -> MakeProvider:
    if not callable(thing):
        raise wrong_kind("a provider plugin", "a class, or a function of the model's name", thing)
    return thing
