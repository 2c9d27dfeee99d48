"""Hooks of a session."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tui_agent.execution.hook_bus import HookEvent
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import HookEnded, HookFailed
from tui_agent.protocol.facts.hook_facts import HookFact
from tui_agent.settings import LoadedSettings

from .configuration.found_hooks import FoundHooks, own_hooks, project_hooks
from .plugins.plugin_loader import LoadedPlugins

if TYPE_CHECKING:
    # Imported at run time only by a program that has hook files.
    from tui_agent.hook_files.file_hook import FileHook

    from .file_hooks import EndReason, FileHooks, LastResult, SessionSource


class SessionHooks:
    """Lists the hooks of the settings, of plugins and of hook files, with their last answers."""

    def __init__(
        self,
        bus: EventBus,
        loaded: LoadedSettings,
        folder: Path,
        running: "FileHooks | None",
        plugins: LoadedPlugins,
    ) -> None:
        self._loaded = loaded
        self._folder = folder
        self._running = running
        self._plugins = plugins
        self._last: dict[tuple[str, str], tuple[str, bool]] = {}
        if loaded.settings.hooks or plugins.hooks:
            bus.on((HookEnded, HookFailed), self._note)

    def begin(self, source: "SessionSource | None" = None) -> None:
        """Let the hooks of the session's start run; the first prompt waits for them."""
        if self._running is not None:
            self._running.begin(source)

    def end(self, reason: "EndReason") -> None:
        """Name the reason for the hooks of the session's end, which run when it closes."""
        if self._running is not None:
            self._running.end_reason = reason

    def list(self) -> tuple[HookFact, ...]:
        """Return the hooks in the order in which they are asked. Reads the hook files."""
        settings = (self._with_last(fact, fact.command) for fact in settings_hook_facts(self._loaded))
        plugins = (self._with_last(fact, f"{fact.origin}: {fact.command}") for fact in plugin_hook_facts(self._plugins))
        found = own_hooks(self._folder), project_hooks(self._folder)
        is_on = self._loaded.settings.hook_files
        why_not = "not accepted, or changed since the session began" if is_on else "hook_files is off"
        running = self._running
        if running is None:
            return (*settings, *plugins, *hook_file_facts(*found, (), why_not=why_not))
        return (*settings, *plugins, *hook_file_facts(*found, running.hooks, running.results, why_not=why_not))

    def _with_last(self, fact: HookFact, name: str) -> HookFact:
        """Return a hook with its last answer, which was published under a name."""
        words, has_failed = self._last.get((fact.event, name), ("", False))
        return replace(fact, last=words, has_failed=has_failed)

    def _note(self, event: HookEnded | HookFailed) -> None:
        is_failed = isinstance(event, HookFailed)
        words = f"failed: {event.error}" if isinstance(event, HookFailed) else f"{event.action}, {event.ms:.0f} ms"
        self._last[event.event, event.name] = (words, is_failed)


def settings_hook_facts(loaded: LoadedSettings) -> tuple[HookFact, ...]:
    """Return the hooks of the settings."""
    origin = loaded.origins.get("hooks", "")
    return tuple(HookFact(hook.on, "", hook.command, origin) for hook in loaded.settings.hooks)


def plugin_hook_facts(plugins: LoadedPlugins) -> tuple[HookFact, ...]:
    """Return the hooks of plugins."""
    return tuple(
        HookFact(event, "", hook.name, owner)
        for owner, bus in plugins.hooks.items()
        for event in get_args(HookEvent)
        for hook in bus.hooks(event)
    )


def hook_file_facts(
    own: FoundHooks,
    project: FoundHooks,
    runs: "Collection[FileHook]",
    results: "Mapping[FileHook, LastResult] | None" = None,
    *,
    why_not: str,
) -> tuple[HookFact, ...]:
    """Return the hooks of hook files, then the parts of the files that are not used."""
    hooks = (*own.hooks, *project.hooks)
    facts = [_fact(hook, "" if hook in runs else why_not, results or {}) for hook in hooks]
    rules = (problem for found in (own, project) for file in found.files for problem in file.rule_problems)
    problems = (*own.problems, *project.problems, *project.links, *rules)
    left_out = [HookFact("", "", "", "", text) for text in problems]
    return (*facts, *left_out)


def _fact(hook: "FileHook", problem: str, results: "Mapping[FileHook, LastResult]") -> HookFact:
    last = results.get(hook)
    words = "" if last is None else ", ".join(filter(None, (last.word, f"{last.ms:.0f} ms", last.detail)))
    has_failed = last is not None and last.word == "failed"
    return HookFact(hook.event, hook.matcher, hook.line, hook.source, problem, words, has_failed)
