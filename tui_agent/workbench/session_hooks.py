"""The subject `hooks`: lists a session's hooks with their last answers, and runs those of hook files."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tui_agent.agent import AgentLoop
from tui_agent.execution import HookBus
from tui_agent.execution.hook_bus import HookEvent
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import HookEnded, HookFailed, Warned
from tui_agent.protocol.facts.page_facts import HookFact
from tui_agent.settings import LoadedSettings

from .configuration.found_files import FoundHooks, own_hooks, project_hooks
from .configuration.project_trust import FolderTrust
from .launch import Launch
from .opened_session import OpenedSession
from .plugins.plugin_loader import LoadedPlugins
from .user_commands import command_hooks

if TYPE_CHECKING:
    # Imported at run time only by a program that has hook files.
    from tui_agent.hook_files.foreign_hooks import FileHook

    from .file_hooks import EndReason, FileHooks, LastResult, SessionSource


class SessionHooks:
    """Lists the hooks of the settings, of plugins and of hook files, with their last answers."""

    def __init__(
        self,
        bus: EventBus,
        launch: Launch,
        running: "FileHooks | None",
    ) -> None:
        self._loaded = launch.loaded
        self._folder = launch.cwd
        self.files = running
        """The hooks of hook files that run; None: there are none."""
        self._plugins = launch.plugins
        self._last: dict[tuple[str, str], tuple[str, bool]] = {}
        if launch.settings.hooks or launch.plugins.hooks:
            bus.on((HookEnded, HookFailed), self._note)

    def begin(self, source: "SessionSource | None" = None) -> None:
        """Let the hooks of the session's start run; the first prompt waits for them. Later calls have no effect.

        Args:
            source: why the session starts; None: it was resumed, or else is new.
        """
        if self.files is not None:
            self.files.begin(source)

    def end(self, reason: "EndReason") -> None:
        """Name the reason for the hooks of the session's end, which run when it closes."""
        if self.files is not None:
            self.files.end_reason = reason

    def list(self) -> tuple[HookFact, ...]:
        """Return the hooks in the order in which they are asked. Blocks: it reads the hook files."""
        why_not = "not accepted, or changed since the session began"
        runs, results = (), None
        if self.files is not None:
            runs, results = self.files.hooks, self.files.results
        facts = hook_facts(self._loaded, self._plugins, self._folder, runs, results, why_not=why_not)
        return tuple(map(self._with_last, facts))

    def _with_last(self, fact: HookFact) -> HookFact:
        """Return a hook of the settings or of a plugin with its last answer; those of files have it already."""
        names = (fact.command, f"{fact.origin}: {fact.command}")
        found = next((self._last[fact.event, name] for name in names if (fact.event, name) in self._last), None)
        return fact if found is None else replace(fact, last=found[0], has_failed=found[1])

    def _note(self, event: HookEnded | HookFailed) -> None:
        is_failed = isinstance(event, HookFailed)
        words = f"failed: {event.error}" if isinstance(event, HookFailed) else f"{event.action}, {event.ms:.0f} ms"
        self._last[event.event, event.name] = (words, is_failed)


def hooks_of(launch: Launch) -> HookBus:
    """Return the hooks of the settings and those of plugins."""
    hooks = command_hooks(launch.settings.hooks, launch.cwd)
    launch.plugins.add_hooks(hooks)
    return hooks


async def open_file_hooks(
    launch: Launch,
    folder: FolderTrust,
    session: OpenedSession,
    loop: AgentLoop,
    stack: AsyncExitStack,
    *,
    variables: dict[str, str],
    watched: bool,
) -> "FileHooks | None":
    """Give the agent the hooks of hook files that may run, until the stack closes; None if there are none.

    Args:
        variables: gets the variables that hooks export for later commands.
        watched: True if a user may be idle.
    """
    if not launch.settings.hook_files:
        return None
    own, project = await asyncio.to_thread(own_hooks, launch.cwd), folder.hooks
    problems = (*own.broken, *project.broken, *project.links, *own.missing_guards, *project.missing_guards)
    for text in filter(None, (folder.hooks_refusal, *problems)):
        loop.bus.publish(Warned(code="left_out", text=text))
    if not (own.hooks or project.hooks):
        return None
    # Imported here so that a start without hook files does not wait for it.
    from .file_hooks import FileHooks

    source = "resume" if session.stored.resumed else "startup"
    hooks = FileHooks(own, project, loop, session.archive, watched=watched, source=source, variables=variables)
    await stack.enter_async_context(hooks.serve())
    return hooks


def hook_facts(
    loaded: LoadedSettings,
    plugins: LoadedPlugins,
    folder: Path,
    runs: "Collection[FileHook]",
    results: "Mapping[FileHook, LastResult] | None" = None,
    *,
    why_not: str,
) -> tuple[HookFact, ...]:
    """Return the hooks of the settings, of plugins and of hook files, in the order in which they are asked. Blocks.

    Args:
        runs: the hooks of hook files that run.
        results: their last results; None: none has run.
        why_not: the problem of the other hooks of hook files.
    """
    origin = loaded.origins.get("hooks", "")
    of_plugins = (
        HookFact(event, "", hook.name, owner)
        for owner, bus in plugins.hooks.items()
        for event in get_args(HookEvent)
        for hook in bus.hooks(event)
    )
    why_not = why_not if loaded.settings.hook_files else "hook_files is off"
    return (
        *(HookFact(hook.on, "", hook.command, origin) for hook in loaded.settings.hooks),
        *of_plugins,
        *hook_file_facts(own_hooks(folder), project_hooks(folder), runs, results, why_not=why_not),
    )


def hook_file_facts(
    own: FoundHooks,
    project: FoundHooks,
    runs: "Collection[FileHook]",
    results: "Mapping[FileHook, LastResult] | None" = None,
    *,
    why_not: str,
) -> tuple[HookFact, ...]:
    """Return the hooks of hook files, then the parts of the files that are not used, as facts with only a problem.

    The arguments are those of `hook_facts`.
    """
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
