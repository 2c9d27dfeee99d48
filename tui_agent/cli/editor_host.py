"""The sessions behind an editor: opens their engines, and offers what the protocol needs beside the agent."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from tui_agent.acp.session_host import Choice, OpenedSession, ServerAnswer, StoredSession
from tui_agent.agent.loop_config import UpdateTools
from tui_agent.execution import ToolRegistry
from tui_agent.mcp.server_config import key_variable
from tui_agent.mcp.server_pool import ConfiguredServer
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.messages import UserBlock, UserMessage
from tui_agent.protocol.permissions import ApprovalRequest, PermissionMode
from tui_agent.protocol.prompt_command import PromptCommand
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.tool_server import ToolServer
from tui_agent.session import SessionStore
from tui_agent.settings import Locations
from tui_agent.tools.media.media_files import media_of, media_type_of
from tui_agent.tools.text_format import SAMPLE_SIZE
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.named_endpoints import require_key
from tui_agent.workbench.session_servers import SessionServers
from tui_agent.workbench.sessions.model_choice import BUDGETS
from tui_agent.workbench.tool_servers import open_servers, server_parts
from tui_agent.workbench.workbench import Workbench

from .process.log_file import log_loop_stalls
from .screen_parts import question_lines, screen_problems


class EditorHost:
    """Opens sessions for one editor; implements `acp.session_host.SessionHost`."""

    def __init__(self, options: LaunchOptions, locations: Locations) -> None:
        self._options = options
        self._store = SessionStore(locations.sessions_dir)

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

    async def sessions(self, cwd: str | None, /) -> Sequence[StoredSession]:
        """Return the saved sessions with messages, of one directory or of all, the newest first."""
        here = None if cwd is None else os.path.realpath(cwd)
        found = await asyncio.to_thread(self._store.list)
        return [
            StoredSession(one.id, one.cwd, one.title, one.updated)
            for one in found
            if one.said and os.path.isabs(one.cwd) and (here is None or os.path.realpath(one.cwd) == here)
        ]

    async def find(self, session_id: str, /) -> bool:
        """True if there is a saved session of this id."""
        return await asyncio.to_thread(lambda: self._store.journal_path(session_id).is_file())

    async def fork(self, session_id: str, /) -> str:
        """Copy a saved session and return the id of the copy."""
        return (await asyncio.to_thread(self._store.fork, session_id)).id

    @asynccontextmanager
    async def open(self, cwd: Path, session_id: str | None, /) -> AsyncGenerator[OpenedSession]:
        """Open a session with its engine, and watch the settings meanwhile."""
        options = replace(self._options, cwd=cwd.resolve(), resume=session_id)
        async with (
            log_loop_stalls(),
            Workbench.open(options, watched=True, screen_problems=screen_problems) as bench,
            asyncio.TaskGroup() as tasks,
        ):
            bench.hooks.begin()
            controls = EngineControls(bench, tasks)
            try:
                yield OpenedSession(bench.agent, bench.events, tuple(bench.past), controls, bench.save)
            finally:
                controls.close()


class EngineControls:
    """The parts of one engine beside its loop; implements `acp.session_host.SessionControls`."""

    def __init__(self, bench: Workbench, tasks: asyncio.TaskGroup) -> None:
        self._bench = bench
        self._engine = bench.engine
        self._tasks = tasks
        self._first_mode = bench.engine.loaded.settings.permissions.mode
        self._servers: list[SessionServers] = [bench.servers]
        self._over = asyncio.Event()

    def close(self) -> None:
        """Stop the servers of the editor."""
        self._over.set()

    # --- options ------------------------------------------------------------------------------------------------------

    @property
    def modes(self) -> Sequence[PermissionMode]:
        """All modes; the one that lets everything run only if the user has started with it."""
        modes = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN, PermissionMode.DENY)
        present = {self._first_mode, self._engine.policy.mode}
        return (*modes, PermissionMode.ALLOW) if PermissionMode.ALLOW in present else modes

    @property
    def choices(self) -> Sequence[Choice]:
        """Model and effort; the offline model has neither."""
        if self._bench.options.demo:
            return ()
        choice = self._engine.choice
        models = dict.fromkeys((choice.model, self._engine.loaded.settings.model))
        return (
            Choice("model", "Model", choice.model, tuple(models)),
            Choice("effort", "Effort", choice.effort, tuple(BUDGETS)),
        )

    def choose(self, name: str, value: str, /) -> None:
        """Use another model or effort from the next request on."""
        found = next((choice for choice in self.choices if choice.name == name), None)
        if found is None:
            raise ConfigurationError(f"no option {name!r} here")
        models = self._bench.models
        if name == "effort":
            models.choose_effort(value)
        elif value not in found.values:
            raise ConfigurationError(f"no model {value!r} here; there are {', '.join(found.values)}")
        else:
            models.choose(value)

    @property
    def server_answer(self) -> ServerAnswer:
        """Treatment of the editor's tool servers."""
        return self._engine.loaded.settings.permissions.editor_servers

    # --- prompts ------------------------------------------------------------------------------------------------------

    @property
    def commands(self) -> Sequence[PromptCommand]:
        """The `/` commands: skills, command files and prompts of servers."""
        defined = () if self._engine.definitions is None else self._engine.definitions.commands
        return (*defined, *(command for servers in self._servers for command in servers.commands))

    async def expand(self, text: str, /) -> str:
        """Return an input with the prompt and the resources of servers that it names."""
        for servers in self._servers:
            text = await servers.expand(text)
        return text

    def needs_own_run(self, text: str, /) -> bool:
        """True if a text runs a command file that cannot be a message to a run."""
        return self._engine.definitions is not None and self._engine.definitions.needs_own_run(text)

    def expanded(self, text: str, /) -> str:
        """Return the message for a text that needs no run of its own."""
        return text if self._engine.definitions is None else self._engine.definitions.expanded(text)

    async def run(self, text: str, message: Callable[[str], UserMessage], /) -> AgentRunReport | None:
        """Run an input to its end."""
        definitions = self._engine.definitions
        if definitions is not None and definitions.knows(text):
            return await definitions.run(text, message)
        return await self._engine.loop.run(message(text))

    async def media(self, content: bytes, name: str, /) -> UserBlock:
        """Return an image or a PDF that the editor sends."""
        media_type = media_type_of(content[:SAMPLE_SIZE])
        if media_type is None:
            raise ToolError(f"{name} is not a PNG, JPEG, GIF or WebP image or a PDF.")
        return (await media_of(content, media_type, name, CancellationToken())).block

    async def attached(self, text: str, /) -> Sequence[UserBlock]:
        """Return the files that a text names with `@` and that are sent with it."""
        return await self._bench.attachments.attached(text, typed=True)

    def describe(self, request: ApprovalRequest, /) -> Sequence[str]:
        """Return the lines of a question, with every character visible."""
        return question_lines(request)

    # --- servers ------------------------------------------------------------------------------------------------------

    async def start_servers(self, servers: Mapping[str, ToolServer], /) -> Sequence[str]:
        """Start tool servers of the editor beside those of the settings, and return messages about the others."""
        known = self._engine.servers
        taken: set[str] = set() if known is None else set(known.tasks)
        notes: list[str] = []
        used: list[ConfiguredServer] = []
        for name, server in servers.items():
            if name in taken:
                notes.append(f"The editor's tool server {name} is not used, because you have one of this name.")
            elif (variable := key_variable(server)) is not None:
                notes.append(f"The editor's tool server {name} is not used: no such server gets {variable}.")
            else:
                used.append(ConfiguredServer(name, server, "the editor"))
        if used:
            started = asyncio.Event()
            self._tasks.create_task(self._keep_servers(tuple(used), started))
            await started.wait()
        return notes

    async def _keep_servers(self, servers: tuple[ConfiguredServer, ...], started: asyncio.Event) -> None:
        """Run servers until the session is closed, and let the agent use their tools."""
        engine = self._engine
        parts = server_parts(self._bench.options.cwd, engine.bus, engine.locations)
        # Their schemas are never loaded on demand: only one list of servers can be.
        async with open_servers(servers, parts, engine.policy, lambda: sys.maxsize) as pool:
            if pool is not None:
                before = engine.loop.config.update_tools
                both = pool.update if before is None else partial(_update_both, before, pool.update)
                engine.loop.config.update_tools = both
                self._servers.append(SessionServers(pool, self._is_defined))
            started.set()
            await self._over.wait()

    def _is_defined(self, text: str) -> bool:
        return self._engine.definitions is not None and self._engine.definitions.knows(text)


async def _update_both(first: UpdateTools, second: UpdateTools, tools: ToolRegistry) -> None:
    await first(tools)
    await second(tools)
