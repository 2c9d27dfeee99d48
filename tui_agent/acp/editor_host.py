"""The sessions behind an editor: each with its workbench, its options, and the tool servers that the editor names."""

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from acp.helpers import text_block, tool_content
from acp.schema import (
    AcpMcpServer,
    HttpMcpServer,
    McpServerStdio,
    PermissionOption,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
    SseMcpServer,
    ToolCallUpdate,
)
from pydantic import ValidationError

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import ApprovalRequest, PermissionMode
from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.protocol.server_entries import SERVER_NAME, ToolServer
from tui_agent.protocol.visible_text import escapes_in
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.named_endpoints import require_key
from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue
from tui_agent.workbench.workbench import ScreenProblems, Workbench

from .call_updates import fenced, in_code
from .editor_client import EditorClient


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


MODE = "mode"
_CATEGORIES = {"model": "model", "effort": "thought_level"}
_HELP = {
    PermissionMode.ASK: ("Ask", "Asks before anything changes"),
    PermissionMode.ACCEPT_EDITS: ("Accept edits", "Keeps changes of files in the workspace; asks about the rest"),
    PermissionMode.PLAN: ("Plan", "Keeps no changes"),
    PermissionMode.DENY: ("Deny", "Keeps no changes and asks nothing"),
    PermissionMode.ALLOW: ("Allow", "Everything runs that no rule denies"),
}

NamedServer: TypeAlias = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio

_OPTIONS = (
    PermissionOption(option_id="start", name="Start it for this session", kind="allow_once"),
    PermissionOption(option_id="leave", name="Do not start it", kind="reject_once"),
)


def mode_state(opened: EditorBench) -> SessionModeState:
    """Return the modes to choose from, and the current one."""
    modes = [SessionMode(id=mode.value, name=_HELP[mode][0], description=_HELP[mode][1]) for mode in opened.modes]
    return SessionModeState(current_mode_id=opened.bench.agent.policy.mode.value, available_modes=modes)


def config_options(opened: EditorBench) -> list[SessionConfigOptionSelect | SessionConfigOptionBoolean]:
    """Return all options with their values."""
    state = mode_state(opened)
    modes = [
        SessionConfigSelectOption(value=one.id, name=one.name, description=one.description)
        for one in state.available_modes
    ]
    options: list[SessionConfigOptionSelect | SessionConfigOptionBoolean] = [
        SessionConfigOptionSelect(
            type="select", id=MODE, name="Mode", category="mode", current_value=state.current_mode_id, options=modes
        )
    ]
    models = opened.bench.models
    for name, names in models.choices.items():
        values = [SessionConfigSelectOption(value=value, name=value) for value in names]
        options.append(
            SessionConfigOptionSelect.model_validate(
                {
                    "type": "select",
                    "id": name,
                    "name": name.capitalize(),
                    "category": _CATEGORIES[name],
                    "current_value": models.model if name == "model" else models.effort,
                    "options": values,
                }
            )
        )
    return options


def set_mode(opened: EditorBench, name: str) -> None:
    """Change the permission mode.

    Raises:
        ConfigurationError: the session has no such mode.
    """
    modes = {mode.value: mode for mode in opened.modes}
    if name not in modes:
        raise ConfigurationError(f"no mode {name!r} here; there are {', '.join(modes)}")
    if modes[name] is not opened.bench.agent.policy.mode:
        opened.bench.agent.set_mode(modes[name], "user")


def set_option(opened: EditorBench, name: str, value: object) -> None:
    """Change an option.

    Raises:
        ConfigurationError: it has no such value.
    """
    if not isinstance(value, str):
        raise ConfigurationError(f"the option {name!r} takes text")
    if name == MODE:
        set_mode(opened, value)
    else:
        opened.choose(name, value)


def read_servers(named: Iterable[NamedServer]) -> tuple[dict[str, ToolServer], list[str]]:
    """Return the servers that can be used, and messages about the others."""
    servers: dict[str, ToolServer] = {}
    problems: list[str] = []
    for one in named:
        name = re.sub(r"__+", "_", re.sub(r"[^A-Za-z0-9_-]", "_", one.name)).strip("_")
        try:
            if SERVER_NAME.fullmatch(name) is None or name in servers:
                raise ValueError("its name is missing or taken")
            servers[name] = _server(one)
        except ValidationError as error:
            problems.append(f"The editor's tool server {one.name} is not used: {error.errors()[0]['msg']}.")
        except ValueError as error:
            problems.append(f"The editor's tool server {one.name} is not used: {error}.")
    return servers, problems


def _server(one: NamedServer) -> ToolServer:
    match one:
        case McpServerStdio(command=command, args=args, env=env):
            return ToolServer(command=command, args=tuple(args), env={entry.name: entry.value for entry in env})
        case HttpMcpServer(url=url, headers=headers):
            return ToolServer(url=url, headers={entry.name: entry.value for entry in headers})
        case SseMcpServer(url=url, headers=headers):
            return ToolServer(url=url, transport="sse", headers={entry.name: entry.value for entry in headers})
        case AcpMcpServer():
            raise ValueError("servers inside the editor are not supported")


async def accepted_servers(
    session_id: str, client: EditorClient, servers: Mapping[str, ToolServer]
) -> dict[str, ToolServer]:
    """Ask the user about each server, and return those to start."""
    return {
        name: server
        for name, server in servers.items()
        if await client.ask(session_id, _question(name, server), _OPTIONS) == "start"
    }


def _question(name: str, server: ToolServer) -> ToolCallUpdate:
    # Values of variables and headers may be secrets, which the editor knows already.
    kept = {"env": sorted(server.env), "headers": sorted(server.headers)}
    more = [f"{what}: {json.dumps(names, ensure_ascii=False)}" for what, names in kept.items() if names]
    text = "\n".join([server.shown, *more])
    return ToolCallUpdate(
        tool_call_id=f"server-{name}",
        title=f"Start the tool server {in_code(name)}, which the editor names?",
        kind="other",
        status="pending",
        content=[tool_content(text_block(fenced(text.translate(escapes_in(text)))))],
    )
