"""Loads the plugins of a start: imports their objects and checks them. Nothing that a plugin does ends the start or a
run."""

import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

from tui_agent.execution import HookBus
from tui_agent.execution.contained_calls import contained, try_call
from tui_agent.execution.tool_registry import ToolLike, as_tool
from tui_agent.protocol.background import IMPORTING
from tui_agent.protocol.callbacks import Crash
from tui_agent.protocol.errors import ConfigurationError, ProviderError
from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.provider import ModelInfo, ModelRequest, StreamEvent
from tui_agent.protocol.regular_file import make_private_directories, read_regular_file
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.value_checks import wrong_kind
from tui_agent.protocol.visible_text import escaped
from tui_agent.settings import Locations, Settings
from tui_agent.tools.atomic_write import write_atomically

from .plugin_entries import Plugin, PluginEntry, find_plugins

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

    def provider(self, name: str, reference: str) -> "PluginProvider":
        """Return the provider of a plugin.

        Raises:
            ConfigurationError: the plugin is not used, or fails.
        """
        plugin = next((one for one in self.plugins if (one.entry.kind, one.entry.name) == ("provider", name)), None)
        if plugin is None:
            raise ConfigurationError(f"no plugin has a provider {escaped(name)}")
        if name not in self.providers:
            reason = plugin.problem or "it is in `plugins.disabled`"
            raise ConfigurationError(f"the plugin {plugin.entry.shown} is not used: {escaped(reason)}")
        return PluginProvider(f"the plugin {plugin.entry.shown}", reference, self.providers[name])


def load_plugins(settings: Settings, root: Path) -> LoadedPlugins:
    """Import the tools, hooks and providers of the plugins that may be used. Blocks."""
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
    # A theme is a file, which the screen reads without running code.
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
    # Rules and `plugins.disabled` know only the name of the entry point.
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


# --- providers of plugins -------------------------------------------------------------------------------------------

_END = object()


class PluginProvider:
    """Wrapper around a plugin's provider; implements `protocol.provider.ModelProvider`."""

    def __init__(self, plugin: str, reference: str, make: Callable[[str], object]) -> None:
        """
        Raises:
            ConfigurationError: it raises, or returns something else.
        """
        self._plugin = plugin
        made: Any = try_call(make, reference)
        info: object = made if isinstance(made, Crash) else try_call(_checked_model, made)
        if isinstance(info, Crash):
            raise ConfigurationError(escaped(f"{plugin} cannot be used for {reference}: {info.text}"))
        # The price and the window of another model would be shown and counted.
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
    """Return the facts of a provider that has all methods."""
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


# --- news -----------------------------------------------------------------------------------------------------------

_LARGEST_FILE = 1 << 20


def plugin_news(plugins: Sequence[Plugin], locations: Locations) -> str:
    """Return a sentence about plugins in use that are new or have changed; empty if none has. Blocks.

    What was announced is kept in `plugins.json`. If that cannot be written, it is announced again.
    """
    path = locations.state_dir / "plugins.json"
    used = [plugin.entry for plugin in plugins if plugin.is_used]
    now: JsonObject = {_name_of(entry): entry.fingerprint for entry in used}
    before = _read(str(path))
    # Nothing is written for the usual start.
    if now == before:
        return ""
    new = [entry for entry in used if before.get(_name_of(entry)) != entry.fingerprint]
    try:
        make_private_directories(path.parent)
        write_atomically(path, json.dumps(now, indent=1).encode("utf-8"))
    except OSError:
        pass  # The notice comes again at the next start.
    if not new:
        return ""
    names = ", ".join(entry.shown for entry in new)
    return f"Plugins that are new or have changed since the last start: {names}. `plugins.disabled` turns them off."


def _name_of(entry: PluginEntry) -> str:
    return f"{entry.distribution}:{entry.kind}:{entry.name}"


def _read(path: str) -> JsonObject:
    try:
        entries: object = json.loads(read_regular_file(path, _LARGEST_FILE))
    except (OSError, ValueError, RecursionError):
        return {}
    return entries if is_object(entries) else {}
