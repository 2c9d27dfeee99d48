"""The sessions behind an editor: opens each with its workbench, and offers what the protocol needs of it."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import ApprovalRequest, PermissionMode
from tui_agent.protocol.prompt_command import PromptCommand
from tui_agent.workbench.added_servers import AddedServers
from tui_agent.workbench.build_engine import ScreenProblems
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.named_endpoints import require_key
from tui_agent.workbench.sessions.model_choice import BUDGETS
from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue
from tui_agent.workbench.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting of a session with a few values, such as its model."""

    name: Literal["model", "effort"]
    label: str
    value: str
    values: Sequence[str]


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
            options: the command line.
            saved: the saved sessions.
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
            cwd: the workspace.
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
                opened.added.close()


class EditorBench:
    """One open session, with what an editor adds to it and may choose in it."""

    def __init__(
        self, bench: Workbench, describe: Callable[[ApprovalRequest], Sequence[str]], tasks: asyncio.TaskGroup
    ) -> None:
        """
        Args:
            bench: the session.
            describe: returns the lines of a question.
            tasks: has a task for the servers of the editor.
        """
        self.bench = bench
        """The session."""
        self.describe = describe
        """Returns the lines of a question, with every character visible."""
        self.past = bench.conversation()
        """Earlier events of the session that are still valid."""
        self.added = AddedServers(bench.engine, bench.options, tasks)
        """Tool servers of the editor."""
        self._first_mode = bench.agent.policy.mode

    @property
    def modes(self) -> Sequence[PermissionMode]:
        """All modes; the one that lets everything run only if the user has started with it."""
        modes = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN, PermissionMode.DENY)
        present = {self._first_mode, self.bench.agent.policy.mode}
        return (*modes, PermissionMode.ALLOW) if PermissionMode.ALLOW in present else modes

    @property
    def choices(self) -> Sequence[Choice]:
        """Model and effort; the offline model has neither."""
        if self.bench.options.demo:
            return ()
        choice = self.bench.engine.choice
        listed = (model.name for model in self.bench.models.list())
        models = dict.fromkeys((choice.model, self.bench.engine.loaded.settings.model, *listed))
        return (
            Choice("model", "Model", choice.model, tuple(models)),
            Choice("effort", "Effort", choice.effort, tuple(BUDGETS)),
        )

    def choose(self, name: str, value: str) -> None:
        """Use another model or effort from the next request on.

        Raises:
            ConfigurationError: there is no such value.
        """
        found = next((choice for choice in self.choices if choice.name == name), None)
        if found is None:
            raise ConfigurationError(f"no option {name!r} here")
        if name == "effort":
            self.bench.models.choose_effort(value)
        elif value not in found.values:
            raise ConfigurationError(f"no model {value!r} here; there are {', '.join(found.values)}")
        else:
            self.bench.models.choose(value)

    @property
    def commands(self) -> Sequence[PromptCommand]:
        """The `/` commands: skills, command files and prompts of servers."""
        return (*self.bench.definitions.commands, *self.bench.servers.commands, *self.added.commands)

    async def expand(self, text: str) -> str:
        """Return an input with the prompt and the resources of servers that it names.

        Raises:
            ToolError: a server does not have what the text names.
        """
        for servers in (self.bench.servers, *self.added.servers):
            text = await servers.expand(text)
        return text
