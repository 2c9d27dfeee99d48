"""One language server of a session: starts it when it is first needed, and restarts it a few times if it dies.

The known ones are offered by `doctor` if they are installed; without an entry in the settings, none starts.
"""

import asyncio
import importlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.background import reason_of, run_service
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.events import AgentEvent, Warned
from tui_agent.protocol.programs import install_command
from tui_agent.protocol.server_entries import LanguageServer, LaunchedProgram

if TYPE_CHECKING:
    # The library is loaded in a thread, once a server starts.
    from .language_connection import LanguageConnection

MOST_FAILURES = 3
"""Ends in a row after which a server is not started again."""
_STABLE = 60.0
"""Seconds after which a server counts as healthy, so that its ends are counted anew."""


@dataclass(frozen=True, slots=True)
class KeeperParts:
    """Parts that all servers of a session share."""

    root: Path
    """The workspace, links followed."""
    launch: Callable[[LanguageServer, Path], LaunchedProgram]
    """Prepares one start of a server in a directory. Blocks. Raises `ConfigurationError` if no start can succeed."""
    publish: Callable[[AgentEvent], object]


def not_installed() -> str:
    """Return the reason that no server can start without the extra `lsp`."""
    return f"the client for language servers is not installed; install it with: {install_command('lsp')}"


class ServerKeeper:
    """Starts one server, and knows whether it runs."""

    def __init__(self, name: str, server: LanguageServer, parts: KeeperParts) -> None:
        self.name = name
        self.server = server
        self.directory = parts.root / Path(server.root).expanduser()
        self.error = ""
        """Reason why it does not run; empty if it does, or was not needed yet."""
        self._parts = parts
        self._connection: LanguageConnection | None = None
        self._wanted = asyncio.Event()
        self._settled = asyncio.Event()
        self._is_clean = asyncio.Event()
        self._is_clean.set()
        self._failures = 0
        self._has_warned = False
        self._was_ready = False

    @property
    def running(self) -> "LanguageConnection | None":
        """The connection; None if the server does not run now."""
        return self._connection

    @property
    def is_given_up(self) -> bool:
        """True if the server is not started again."""
        return self._failures >= MOST_FAILURES

    def start(self) -> None:
        """Let the server start, unless it runs or was given up."""
        if not (self._connection is not None or self.is_given_up or self._wanted.is_set()):
            self._settled.clear()
            self._wanted.set()

    async def connection(self) -> "LanguageConnection":
        """Start the server if needed, and return the connection once it runs. `run` must be running.

        Raises:
            ToolError: it does not run, with the reason.
        """
        # One that has died is cleaned up before it starts again.
        await self._is_clean.wait()
        self.start()
        if self._wanted.is_set():
            await self._settled.wait()
        if self._connection is None:
            raise ToolError(f"The language server {self.name} does not run: {self.error}.")
        return self._connection

    async def run(self) -> None:
        """Start the server whenever it is needed, until cancelled."""
        while True:
            await self._wanted.wait()
            began = time.monotonic()
            await run_service(f"language server {self.name}", self._serve(), self._note_failure)
            # A server that worked for a while may start again as often as a new one.
            if time.monotonic() - began > _STABLE and not self.is_given_up:
                self._failures = 1
            self._wanted.clear()
            self._settled.set()
            self._is_clean.set()

    async def _serve(self) -> None:
        """Run the server until it ends."""
        try:
            room = await asyncio.to_thread(importlib.import_module, "tui_agent.lsp.language_connection")
        except ModuleNotFoundError as error:
            self._failures = MOST_FAILURES
            # Another start would fail in the same way.
            raise ConfigurationError(not_installed()) from error
        try:
            program = await asyncio.to_thread(self._parts.launch, self.server, self.directory)
        except ConfigurationError:
            self._failures = MOST_FAILURES
            raise
        connection: LanguageConnection
        try:
            async with room.opened_connection(self.name, program, self.directory) as connection:
                self._connection, self._was_ready, self.error = connection, True, ""
                self._settled.set()
                await connection.ended
                self._connection = None
                self._is_clean.clear()
        except ExceptionGroup as group:
            raise ToolError(reason_of(group)) from group
        finally:
            self._connection = None
        raise ToolError(connection.end_text)

    def _note_failure(self, reason: str) -> None:
        self._failures += 1
        self.error = reason
        if self._has_warned or (self._was_ready and not self.is_given_up):
            return
        self._has_warned = True
        text = f"The language server {self.name} does not run: {reason}. Files are edited without its findings."
        self._parts.publish(Warned(code="language_server", text=text))


_PYTHON = ("*.py", "*.pyi")
_KNOWN = {
    "pyright": ("pyright-langserver --stdio", _PYTHON),
    "basedpyright": ("basedpyright-langserver --stdio", _PYTHON),
    "ruff": ("ruff server", _PYTHON),
    "typescript": ("typescript-language-server --stdio", ("*.ts", "*.tsx", "*.mts", "*.js", "*.jsx", "*.mjs")),
    "gopls": ("gopls", ("*.go",)),
    "rust-analyzer": ("rust-analyzer", ("*.rs",)),
    "clangd": ("clangd", ("*.c", "*.h", "*.cc", "*.cpp", "*.hpp")),
}
"""Command line and files by name."""
_BETTER = {"pyright": "basedpyright"}
"""Servers that need not be offered beside another one."""


def installed_servers() -> Iterator[tuple[str, LanguageServer]]:
    """Yield the known servers on PATH. Blocks."""
    found = {name for name, (command, _) in _KNOWN.items() if shutil.which(command.split()[0]) is not None}
    for name, (command, files) in _KNOWN.items():
        if name in found and _BETTER.get(name) not in found:
            yield name, LanguageServer.model_validate({"command": command, "files": files})


def settings_lines(name: str, server: LanguageServer) -> str:
    """Return the settings that configure a server, as lines of TOML."""
    return f"[lsp.{name}]\ncommand = {json.dumps(server.shown)}\nfiles = {json.dumps(list(server.files))}"
