"""The program behind an editor: one connection on file descriptors, and the methods of the protocol."""

import asyncio
import os
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, run_agent
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    AuthEnvVar,
    ClientCapabilities,
    CloseSessionResponse,
    EnvVarAuthMethod,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)

from tui_agent import __version__
from tui_agent.protocol.background import run_service
from tui_agent.protocol.errors import ConfigurationError, SessionError, TuiAgentError

from .editor_client import EditorClient
from .editor_host import (
    EditorBench,
    EditorHost,
    NamedServer,
    config_options,
    mode_state,
    read_servers,
    set_mode,
    set_option,
)
from .editor_session import EditorSession
from .prompt_reader import PromptBlock
from .rpc_transport import INTERNAL_ERROR, INVALID_PARAMS, NO_KEY, NOT_FOUND, RpcTransport

MOST_SESSIONS = 32
"""Sessions that may be open at the same time."""
PAGE = 50
"""Sessions in one answer to `session/list`."""
KEY_METHOD = "environment"
END_TIMEOUT = 4.5
"""Seconds that runs get to end, and the client to read the rest; what it has not read by then is dropped."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EditorAgent:
    """The agent of one connection; implements `acp.Agent`. The library calls each method in a task of its own."""

    def __init__(self, host: EditorHost, client: EditorClient, tasks: asyncio.TaskGroup) -> None:
        """
        Args:
            tasks: has a task for each session.
        """
        self._host = host
        self._client = client
        self._tasks = tasks
        self._sessions: dict[str, EditorSession] = {}
        self._opening = 0
        self._is_ended = False

    def on_connect(self, conn: Client) -> None:
        """Use the library's connection; called by the library."""
        self._client.connect(conn)

    def end(self) -> None:
        """End every session, also those that are being opened."""
        self._is_ended = True
        for session in tuple(self._sessions.values()):
            session.close()

    # --- the connection -----------------------------------------------------------------------------------------------

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        """Return the capabilities of this agent."""
        extensions = (client_capabilities.field_meta if client_capabilities is not None else None) or {}
        # An extension of one editor: the protocol shows output piece by piece only for commands that the client runs.
        self._client.shows_terminals = extensions.get("terminal_output") is True
        capabilities = AgentCapabilities(
            load_session=True,
            prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
            mcp_capabilities=McpCapabilities(http=True, sse=True),
            session_capabilities=SessionCapabilities(
                list=SessionListCapabilities(),
                fork=SessionForkCapabilities(),
                resume=SessionResumeCapabilities(),
                close=SessionCloseCapabilities(),
                additional_directories=SessionAdditionalDirectoriesCapabilities(),
            ),
        )
        key = EnvVarAuthMethod(
            type="env_var",
            id=KEY_METHOD,
            name="Key in the environment",
            description="Set ANTHROPIC_API_KEY in the environment of the agent, and start it again.",
            vars=[AuthEnvVar(name="ANTHROPIC_API_KEY")],
        )
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=capabilities,
            # An editor shows its sign-in page as soon as there is a method.
            auth_methods=[key] if self._host.missing_key() else [],
            agent_info=Implementation(name="tui-agent", title="tui-agent", version=__version__),
        )

    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        """Check that there is a key: this agent takes none from a client.

        Raises:
            RequestError: there is none.
        """
        if method_id != KEY_METHOD:
            raise RequestError(INVALID_PARAMS, f"no method {method_id!r} to authenticate; there is {KEY_METHOD}")
        self._require_key()
        return AuthenticateResponse()

    # --- sessions -----------------------------------------------------------------------------------------------------

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[NamedServer] | None = None,
        **_: Any,
    ) -> NewSessionResponse:
        """Begin a session."""
        session = await self._open(cwd, None, additional_directories, mcp_servers)
        return NewSessionResponse(
            session_id=session.id, modes=mode_state(session.opened), config_options=config_options(session.opened)
        )

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[NamedServer] | None = None,
        additional_directories: list[str] | None = None,
        **_: Any,
    ) -> LoadSessionResponse:
        """Open a saved session, and send its conversation.

        Raises:
            RequestError: a path is wrong, no session has the id, or it cannot be opened.
        """
        session = await self._open(cwd, session_id, additional_directories, mcp_servers)
        await session.replay()
        return LoadSessionResponse(modes=mode_state(session.opened), config_options=config_options(session.opened))

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[NamedServer] | None = None,
        **_: Any,
    ) -> ResumeSessionResponse:
        """Open a saved session without sending its conversation."""
        session = await self._open(cwd, session_id, additional_directories, mcp_servers)
        return ResumeSessionResponse(modes=mode_state(session.opened), config_options=config_options(session.opened))

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[NamedServer] | None = None,
        **_: Any,
    ) -> ForkSessionResponse:
        """Open a copy of a saved session."""
        here = self._sessions.get(session_id)
        if here is not None and here.opened.bench.save is not None:
            with suppress(SessionError):
                # The copy is made from the file, which may be behind the open session.
                await here.opened.bench.save()
        await self._require_session(session_id)
        try:
            copy = await self._host.saved.fork(session_id)
        except TuiAgentError as error:
            raise RequestError(INTERNAL_ERROR, str(error)) from error
        session = await self._open(cwd, copy, additional_directories, mcp_servers)
        return ForkSessionResponse(
            session_id=session.id, modes=mode_state(session.opened), config_options=config_options(session.opened)
        )

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """Return a page of the saved sessions, the newest first.

        Args:
            cwd: only those of this directory; None: all.
            cursor: `next_cursor` of the page before; None: the first page.

        Raises:
            RequestError: an argument is wrong, or the sessions cannot be read.
        """
        if cwd is not None and "\0" in cwd:
            raise RequestError(INVALID_PARAMS, f"{cwd!r} is not the path of a directory")
        try:
            # The number of a session is the cursor: nothing is kept for a client that never asks for the rest.
            start = int(cursor or "0")
            found = await self._host.saved.latest(cwd)
        except ValueError as error:
            raise RequestError(INVALID_PARAMS, f"no page {cursor!r}") from error
        except TuiAgentError as error:
            raise RequestError(INTERNAL_ERROR, str(error)) from error
        rest = found[max(start, 0) :]
        sessions = [
            SessionInfo(session_id=one.id, cwd=one.cwd, title=one.title, updated_at=_iso(one.updated))
            for one in rest[:PAGE]
        ]
        return ListSessionsResponse(
            sessions=sessions, next_cursor=str(max(start, 0) + PAGE) if len(rest) > PAGE else None
        )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """End a session; it stays saved."""
        session = self._session(session_id)
        session.close()
        await session.closed.wait()
        return CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Change the permission mode of a session."""
        try:
            set_mode(self._session(session_id).opened, mode_id)
        except ConfigurationError as error:
            raise RequestError(INVALID_PARAMS, str(error)) from error
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Change an option of a session."""
        session = self._session(session_id)
        try:
            set_option(session.opened, config_id, value)
        except ConfigurationError as error:
            raise RequestError(INVALID_PARAMS, str(error)) from error
        return SetSessionConfigOptionResponse(config_options=config_options(session.opened))

    async def prompt(self, session_id: str, prompt: list[PromptBlock], **_: Any) -> PromptResponse:
        """Run a prompt to its end, or steer the run in progress.

        Raises:
            RequestError: the session is not open, the prompt cannot be used, or the run failed.
        """
        return await self._session(session_id).prompt(prompt)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """End the run of a session; ignore an unknown one."""
        if (session := self._sessions.get(session_id)) is not None:
            session.cancel()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Refuse a method that the protocol does not have."""
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Ignore a notification that the protocol does not have."""

    # --- inside -------------------------------------------------------------------------------------------------------

    def _session(self, session_id: str) -> EditorSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise RequestError(NOT_FOUND, f"no session {session_id!r} is open here")
        return session

    def _require_key(self) -> None:
        if problem := self._host.missing_key():
            raise RequestError(NO_KEY, problem)

    async def _require_session(self, session_id: str) -> None:
        try:
            known = await self._host.saved.has(session_id)
        except TuiAgentError as error:
            raise RequestError(INTERNAL_ERROR, str(error)) from error
        if not known:
            problem = f"there is no saved session {session_id!r}; a session is saved only once it has a prompt"
            raise RequestError(NOT_FOUND, problem)

    async def _open(
        self,
        cwd: str,
        session_id: str | None,
        additional_directories: Sequence[str] | None,
        mcp_servers: Sequence[NamedServer] | None,
    ) -> EditorSession:
        """Open a session in a task of its own."""
        # A relative path would mean another directory to the editor than to this process.
        if not os.path.isabs(cwd) or "\0" in cwd or not os.path.isdir(cwd):
            raise RequestError(INVALID_PARAMS, f"{cwd!r} is not the absolute path of a directory")
        folders = tuple(map(Path, additional_directories or ()))
        if wrong := next((one for one in folders if not one.is_absolute() or "\0" in str(one)), None):
            raise RequestError(INVALID_PARAMS, f"{str(wrong)!r} is not the absolute path of a directory")
        self._require_key()
        if session_id is not None:
            await self._require_session(session_id)
            # Two engines would write one journal.
            await self._close_idle(session_id)
        if len(self._sessions) + self._opening >= MOST_SESSIONS:
            raise RequestError(INTERNAL_ERROR, f"{MOST_SESSIONS} sessions are open; close one first")
        ready: asyncio.Future[EditorSession] = asyncio.get_running_loop().create_future()

        def failed(reason: str) -> None:
            if not ready.done():
                ready.set_exception(RequestError(INTERNAL_ERROR, reason))

        opening = self._host.open(Path(cwd), session_id, folders)
        serving = self._serve(opening, Path(cwd), mcp_servers or (), ready)
        self._opening += 1
        try:
            # A task of the connection, and not of the request, which ends with its answer.
            self._tasks.create_task(run_service("a session of an editor", serving, failed))
            session = await ready
        finally:
            # Counted while it opens: a client could ask for many before the first is there.
            self._opening -= 1
        # After the answer to this request, which gives the client the id of the session.
        asyncio.get_running_loop().call_soon(session.announce)
        return session

    async def _serve(
        self,
        opening: AbstractAsyncContextManager[EditorBench],
        cwd: Path,
        mcp_servers: Sequence[NamedServer],
        ready: "asyncio.Future[EditorSession]",
    ) -> None:
        """Open a session and serve it until it is closed."""
        async with AsyncExitStack() as stack:
            closed = asyncio.Event()
            stack.callback(closed.set)  # Called last, when the journal is closed.
            opened = await stack.enter_async_context(opening)
            session = EditorSession(opened, self._client, cwd, closed)
            session.offer(*read_servers(mcp_servers))
            if ready.done() or self._is_ended:
                return  # The client is gone.
            self._sessions[session.id] = session
            stack.callback(self._sessions.pop, session.id)
            ready.set_result(session)
            await session.serve()

    async def _close_idle(self, session_id: str) -> None:
        """End a session that is open here, so that it can be opened again."""
        session = self._sessions.get(session_id)
        if session is None:
            return
        if session.is_busy:
            raise RequestError(INTERNAL_ERROR, f"session {session_id} is at work here; cancel its prompt first")
        session.close()
        await session.closed.wait()


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


async def serve_editor(host: EditorHost, stdin: int, stdout: int) -> int:
    """Serve one client and return the exit code: 130 after a signal, otherwise 0. Call it in the main thread."""
    transport = RpcTransport(stdin, stdout)
    client = EditorClient(transport)
    transport.start()
    over = asyncio.Event()
    received: list[int] = []

    def interrupt(number: int) -> None:
        received.append(number)
        over.set()

    async with asyncio.TaskGroup() as tasks:
        agent = EditorAgent(host, client, tasks)
        with _on_signal(interrupt):
            connection = tasks.create_task(_listen(agent, transport, over))
            watching = tasks.create_task(_watch(transport, over))
            await over.wait()
            # A client that has stopped reading would keep the program alive.
            asyncio.get_running_loop().call_later(END_TIMEOUT, transport.abandon)
            client.is_connected = False
            agent.end()
            watching.cancel()
            connection.cancel()
    # Outside of the group: the last updates are queued while its tasks end.
    await transport.finish()
    return 130 if received else 0


async def _listen(agent: EditorAgent, transport: RpcTransport, over: asyncio.Event) -> None:
    """Serve requests until the client has closed its end."""
    try:
        # Closing, resuming and forking sessions are still marked as unstable there.
        await run_agent(agent, transport, use_unstable_protocol=True)
    finally:
        over.set()


async def _watch(transport: RpcTransport, over: asyncio.Event) -> None:
    """End the program once nothing more can be written."""
    await transport.disconnected()
    over.set()


@contextmanager
def _on_signal(act: Callable[[int], None]) -> Generator[None]:
    """Call `act` for each signal that would end the program; restore the earlier handlers on exit."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        loop.add_signal_handler(number, act, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
