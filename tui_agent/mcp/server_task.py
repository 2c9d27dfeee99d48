"""The task that owns one server: it starts the server, lists what it offers, and starts it again when it dies.

The SDK's sessions must be opened and closed in the same task, so each server has one.
"""

import asyncio
import importlib
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from tui_agent.protocol.background import reason_of, run_service
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.events import McpStatus
from tui_agent.protocol.messages import JsonObject, UserBlock
from tui_agent.protocol.programs import install_command
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.protocol.tool import ToolContext, ToolResult

from .server_config import editor_variables, expanded, variables_of
from .server_parts import ServerLog, ServerParts, TokenStore
from .tool_listing import ListedTool, check_tools

if TYPE_CHECKING:
    # The SDK is loaded in a thread, once a server starts.
    from .server_session import OfferedPrompt, OfferedResource, ServerSession

State: TypeAlias = Literal["connecting", "ready", "degraded", "failed", "closed"]

T = TypeVar("T")
WAITS = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds before each new start of a server that died or did not start; after the last one, only the user starts it."""
SIGN_IN_SECONDS = 310.0
"""Seconds that a start with a sign-in of the user may take longer."""
_MOST_DOUBLINGS = 3
_STABLE = 60.0
"""Seconds after which a server counts as healthy, so that the waits begin anew."""


def not_installed() -> str:
    """Return the reason that no server can start without the extra `mcp`."""
    return f"the MCP client is not installed; install it with: {install_command('mcp')}"


class ServerTask:
    """One server of a session. Requests raise `ToolError` if it does not run, refuses them or ends."""

    def __init__(self, name: str, server: ToolServer, origin: str, parts: ServerParts) -> None:
        self.name = name
        self.server = server
        self.origin = origin
        """File, with its line if known, that configures the server."""
        self.state: State = "connecting"
        self.error = ""
        self.info = ""
        """Name and version, as the server reports them."""
        self.tools: tuple[ListedTool, ...] = ()
        self.left_out: tuple[str, ...] = ()
        self.prompts: Sequence[OfferedPrompt] = ()
        self.resources: Sequence[OfferedResource] = ()
        self.log = ServerLog(name)
        self.settled = asyncio.Event()
        """Set once the server is ready, or its first start failed."""
        self.began = time.monotonic()
        self._parts = parts
        self._session: ServerSession | None = None
        self._wanted = asyncio.Event()
        self._is_final = False
        self._is_stopped = False
        self._signs_in = False
        self._next_start = 0.0
        self._slow_starts = 0

    async def run(self) -> None:
        """Keep the server running until cancelled."""
        failures = 0
        try:
            while not self._is_stopped:
                self._wanted.clear()
                began = time.monotonic()
                await run_service(f"MCP server {self.name}", self._serve(), self._note_failure)
                if self._is_stopped:
                    break
                failures = 1 if time.monotonic() - began > _STABLE else failures + 1
                if self._is_final or failures > len(WAITS):
                    self._set("failed", self.error)
                    await self._wanted.wait()
                else:
                    wait = WAITS[failures - 1]
                    self._next_start = time.monotonic() + wait
                    with suppress(TimeoutError):
                        async with asyncio.timeout(wait):
                            await self._wanted.wait()
                if self._wanted.is_set():
                    failures = 0
                    self._set("connecting")
        finally:
            self._session = None
            self._set("closed")

    def note_waiting(self) -> None:
        """Report once that the server is still starting, so that its tools are missing."""
        if not self.settled.is_set():
            self._set("connecting", "its tools come with a later step")

    def restart(self) -> None:
        """Start the server anew, also one that failed for good; returns before it has started."""
        self.log.add("restarted by the user")
        self._is_final = False
        self._wanted.set()
        if self._session is not None:
            self._session.fail("it was restarted")

    @property
    def tokens(self) -> TokenStore | None:
        """The stored tokens; None for a server that needs no sign-in."""
        url, folder = self.server.url, self._parts.tokens
        if url is None or folder is None or self.server.bearer_token_env is not None:
            return None
        return TokenStore(folder, self.name, url)

    def login(self) -> str:
        """Start the server anew with a sign-in; return why that is impossible, empty if it begins. Does not wait."""
        if self.tokens is None:
            return f"{self.name} needs no sign-in: it is a program, or has a token in your settings."
        self._signs_in = True
        self.restart()
        return ""

    def logout(self) -> str:
        """Remove the stored tokens, and start the server without them; return a sentence on what was done. Blocks."""
        tokens = self.tokens
        if tokens is None or not tokens.remove():
            return f"No sign-in to {self.name} is stored."
        self.restart()
        return f"The sign-in to {self.name} was removed."

    def stop(self) -> None:
        """End the task with its next step. Cancel it, too: a cancellation alone may be lost in the SDK."""
        self._is_stopped = True
        self._wanted.set()
        if self._session is not None:
            self._session.fail("it was stopped")

    async def call(self, tool: ListedTool, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Call a tool.

        Raises:
            ToolError: the server does not run, or see `ServerSession.call`.
        """
        return await self._live.call(tool.raw_name, arguments, context)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """Return the text of a prompt; see `ServerSession.prompt`.

        Raises:
            ToolError: the server does not run, refuses, cannot be reached, or does not answer within its `timeout`.
        """
        return await self._in_time(self._live.prompt(name, arguments))

    async def resource(self, uri: str) -> Sequence[UserBlock]:
        """Return the content of a resource; see `ServerSession.resource`.

        Raises:
            ToolError: the server does not run, refuses, cannot be reached, or does not answer within its `timeout`.
        """
        return await self._in_time(self._live.resource(uri))

    async def _in_time(self, answer: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self.server.timeout):
                return await answer
        except TimeoutError as error:
            limit = f"{self.server.timeout:g} s"
            raise ToolError(f"The MCP server {self.name} did not answer within {limit}. Nothing was sent.") from error

    @property
    def _live(self) -> "ServerSession":
        if self._session is not None:
            return self._session
        wait = max(0, round(self._next_start - time.monotonic()))
        hint = f"It starts again in {wait} s." if wait else "The user can start it again: /mcp"
        state = "is starting." if self.state == "connecting" else f"does not run: {self.error}. {hint}"
        raise ToolError(f"The MCP server {self.name} {state}")

    async def _serve(self) -> None:
        """Start the server and serve until it ends or is restarted."""
        try:
            session = await self._make_session()
        except ConfigurationError:
            self._is_final = True
            raise
        # A start that downloads its program may need longer than the first attempt had.
        limit = self.server.startup_timeout * 2 ** min(self._slow_starts, _MOST_DOUBLINGS)
        limit += SIGN_IN_SECONDS if self._signs_in else 0.0
        if self._signs_in:
            # This start is the one that the user wanted, also if it was under way already.
            self._signs_in = False
            self._wanted.clear()
        start = asyncio.timeout(limit)
        try:
            async with start, session.open():
                await self._list(session)
                start.reschedule(None)
                self._session = session
                self._slow_starts = 0
                self._set("ready")
                while not session.end:
                    await session.wake.wait()
                    session.wake.clear()
                    if session.has_changed and not session.end:
                        start.reschedule(asyncio.get_running_loop().time() + limit)
                        await self._list(session)
                        start.reschedule(None)
                        self._set("ready")
        except TimeoutError as error:
            self._slow_starts += 1
            raise ToolError(f"it was not ready within {self.server.startup_timeout:g} s") from error
        except ConfigurationError:
            self._is_final = True
            raise
        except ExceptionGroup as group:
            raise ToolError(reason_of(group)) from group
        finally:
            self._session = None
        if not self._wanted.is_set():
            raise ToolError(session.end)

    async def _make_session(self) -> "ServerSession":
        server = expanded(self.server, {**self._parts.secrets, **editor_variables(self._parts.root)})
        inherited, secrets = self._parts.environment, self._parts.secrets
        # Every program inherits the others, and hiding PATH and HOME would make the log unreadable.
        self.log.secrets = frozenset(
            secrets[name] for name in variables_of(self.server) if name in secrets and name not in inherited
        )
        try:
            room = await asyncio.to_thread(importlib.import_module, "tui_agent.mcp.server_session")
        except ModuleNotFoundError as error:
            raise ConfigurationError(not_installed()) from error
        setup = room.SessionSetup(
            name=self.name,
            server=server,
            shown=self.server.shown,
            parts=self._parts,
            log=self.log,
            tokens=self.tokens,
            signs_in=self._signs_in,
        )
        return room.ServerSession(setup)

    async def _list(self, session: "ServerSession") -> None:
        offers = await session.offers()
        self.tools, left_out = await asyncio.to_thread(check_tools, self.name, offers.tools, self.server.tools)
        self.left_out = (*offers.left_out, *left_out)
        self.prompts, self.resources, self.info = offers.prompts, offers.resources, offers.info
        for problem in self.left_out:
            self.log.add(f"tool left out: {problem}")

    def _note_failure(self, reason: str) -> None:
        self.log.add(f"ended: {reason}")
        # Tools that were listed stay offered: a call of one says when the server starts again.
        self._set("failed" if not self.tools or self._is_final else "degraded", reason)

    def _set(self, state: State, error: str = "") -> None:
        error = self.log.masked(error)
        is_new = (state, error) != (self.state, self.error)
        self.state, self.error = state, error
        if state != "connecting":
            self.settled.set()
        if is_new:
            names = tuple(tool.name for tool in self.tools)
            self._parts.publish(McpStatus(server=self.name, state=state, error=error or None, tools=names))
