"""The sessions behind an editor: opens each with its workbench, and offers what the protocol needs of it."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import ApprovalRequest, PermissionMode
from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.named_endpoints import require_key
from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue
from tui_agent.workbench.workbench import ScreenProblems, Workbench


class EditorHost:
    """Opens sessions for one editor. Every method raises `TuiAgentError` with a sentence for the user."""

    def __init__(
        self,
        options: LaunchOptions,
        saved: SessionCatalogue,
        describe: Callable[[ApprovalRequest], Sequence[str]],
        screen_problems: ScreenProblems | None = None,
    ) -> None:
        """
        Args:
            describe: returns the lines of a question, with every character visible.
            screen_problems: checks the settings of the screen.
        """
        self.saved = saved
        """The saved sessions."""
        self._options = options
        self._describe = describe
        self._screen_problems = screen_problems

    def missing_key(self) -> str:
        """Return what to do about a missing key; empty if there is one. Reads the user's settings."""
        if self._options.demo:
            return ""
        try:
            _, loaded = prepare_settings(replace(self._options, cwd=Path("/")))
            require_key(loaded.settings, os.environ)
        except ConfigurationError as error:
            return str(error)
        return ""

    @asynccontextmanager
    async def open(
        self, cwd: Path, session_id: str | None, folders: Sequence[Path] = (), /
    ) -> "AsyncGenerator[EditorBench]":
        """Open a saved session, or a new one; it is saved and closed with the context.

        Args:
            session_id: the saved session; None for a new one.
            folders: folders that count as part of the workspace.
        """
        folders = (*self._options.folders, *folders)
        options = replace(self._options, cwd=cwd.resolve(), resume=session_id, folders=folders)
        async with (
            Workbench.open(options, watched=True, screen_problems=self._screen_problems) as bench,
            asyncio.TaskGroup() as tasks,
        ):
            bench.hooks.begin()
            opened = EditorBench(bench, self._describe, tasks)
            try:
                yield opened
            finally:
                opened.over.set()


class EditorBench:
    """One open session, with what an editor adds to it and may choose in it."""

    def __init__(
        self, bench: Workbench, describe: Callable[[ApprovalRequest], Sequence[str]], tasks: asyncio.TaskGroup
    ) -> None:
        """
        Args:
            tasks: has a task for the servers of the editor.
        """
        self.bench = bench
        """The session."""
        self.describe = describe
        """Returns the lines of a question, with every character visible."""
        self.past = bench.conversation()
        """Earlier events of the session that are still valid."""
        self.over = asyncio.Event()
        """Ends the servers of the editor."""
        self._tasks = tasks
        self._first_mode = bench.agent.policy.mode

    @property
    def modes(self) -> Sequence[PermissionMode]:
        """All modes; the one that lets everything run only if the user has started with it."""
        modes = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN, PermissionMode.DENY)
        present = {self._first_mode, self.bench.agent.policy.mode}
        return (*modes, PermissionMode.ALLOW) if PermissionMode.ALLOW in present else modes

    def choose(self, name: str, value: str) -> None:
        """Use another model or effort from the next request on.

        Raises:
            ConfigurationError: there is no such value.
        """
        models = self.bench.models
        if (values := models.choices.get(name)) is None:
            raise ConfigurationError(f"no option {name!r} here")
        if name == "effort":
            models.choose_effort(value)
        elif value not in values:
            raise ConfigurationError(f"no model {value!r} here; there are {', '.join(values)}")
        else:
            models.choose(value)

    @property
    def server_treatment(self) -> str:
        """Treatment of the editor's tool servers by the settings: `ask`, `allow` or `deny`."""
        return self.bench.loaded.settings.permissions.editor_servers

    async def add_servers(self, servers: Mapping[str, ToolServer]) -> Sequence[str]:
        """Start tool servers of the editor until the session closes; return messages about those that are not used."""
        bench = self.bench
        return await bench.servers.add(servers, bench.agent, bench.policy, self._tasks, self.over)

    @property
    def commands(self) -> Sequence[PromptCommand]:
        """The `/` commands: skills, command files and prompts of servers."""
        return (*self.bench.definitions.commands, *self.bench.servers.commands)
