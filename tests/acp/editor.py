"""An editor made of the protocol library's own client side, connected to `serve_editor` by pipes in this process."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import acp
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from tests.support.messages_server import ScriptedMessagesServer
from tui_agent.acp.editor_agent import serve_editor
from tui_agent.acp.editor_host import EditorBench, EditorHost
from tui_agent.agent import AgentLoop
from tui_agent.cli.screen_entry import question_lines
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue

PATIENCE = 10.0
"""Seconds that a test waits for a fact."""

Answer = str | None
"""Id of an option; None: the editor closes the question."""


@dataclass
class Question:
    """A question that the agent asked."""

    session_id: str
    call: ToolCallUpdate
    options: list[PermissionOption]

    @property
    def ids(self) -> list[str]:
        return [option.option_id for option in self.options]


@dataclass
class Editor:
    """The client: keeps what it receives, and answers questions."""

    updates: list[tuple[str, Any]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    answer: Callable[[Question], Any] = lambda _: None
    """Returns an answer, or an awaitable of one."""
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    agent: Any = None

    def on_connect(self, conn: Any) -> None:
        self.agent = conn

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        async with self.changed:
            self.updates.append((session_id, update))
            self.changed.notify_all()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        question = Question(session_id, tool_call, options)
        async with self.changed:
            self.questions.append(question)
            self.changed.notify_all()
        answer = self.answer(question)
        chosen: Answer = await answer if asyncio.iscoroutine(answer) else answer
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def asked(self, count: int = 1) -> Question:
        """Wait until this many questions were asked, and return the last."""
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.questions) >= count)
        return self.questions[count - 1]

    async def shown(self, test: Callable[[Any], object]) -> Any:
        """Wait for an update, and return it."""

        def found() -> list[Any]:
            return [update for _, update in self.updates if test(update)]

        async with self.changed:
            await self.changed.wait_for(found)
        return found()[0]

    def text(self, kind: str = "agent_message_chunk") -> str:
        """Return the text of all messages of a kind."""
        chunks = [one for _, one in self.updates if one.session_update == kind]
        return "".join(chunk.content.text for chunk in chunks if chunk.content.type == "text")

    def calls(self) -> list[Any]:
        """Return the updates about calls, in order."""
        return [one for _, one in self.updates if one.session_update in ("tool_call", "tool_call_update")]

    async def open(self, folder: Path, **more: Any) -> str:
        """Begin a session and return its id."""
        return (await self.agent.new_session(cwd=str(folder), mcp_servers=more.pop("servers", []), **more)).session_id

    async def say(self, session_id: str, *blocks: Any) -> str:
        """Send a prompt, and return the reason for its end."""
        shown = [acp.text_block(one) if isinstance(one, str) else one for one in blocks]
        return (await self.agent.prompt(session_id=session_id, prompt=shown)).stop_reason


@dataclass
class Connection:
    """Both ends of a connection."""

    editor: Editor
    server: ScriptedMessagesServer
    to_agent: asyncio.StreamWriter
    from_agent: asyncio.StreamReader
    serving: "asyncio.Task[int]"
    host: "WatchedHost"

    async def queued(self, text: str) -> None:
        """Wait until a message waits for the run of a session."""
        async with asyncio.timeout(PATIENCE):
            while all(message.text != text for loop in self.host.loops for message in loop.waiting_messages):
                await asyncio.sleep(0.01)

    async def hang_up(self) -> int:
        """Close the editor's end, and return the exit code of the agent."""
        await self.editor.agent.close()
        self.to_agent.close()
        return await self.serving


class WatchedHost(EditorHost):
    """A host whose agents the test can watch."""

    def __init__(self, options: LaunchOptions, locations: Locations) -> None:
        super().__init__(options, SessionCatalogue.of_directory(locations.sessions_dir, Path("/")), question_lines)
        self.loops: list[AgentLoop] = []

    @asynccontextmanager
    async def open(
        self, cwd: Path, session_id: str | None, folders: Sequence[Path] = (), /
    ) -> AsyncGenerator[EditorBench]:
        async with super().open(cwd, session_id, folders) as opened:
            self.loops.append(opened.bench.agent)
            yield opened


@asynccontextmanager
async def connected(script: Sequence[Any], *, connect: bool = True, **options: Any) -> AsyncGenerator[Connection]:
    """Start an agent with a scripted model, and an editor for it.

    Args:
        script: the answers of the model.
        connect: False to leave the streams to the test.
        options: changed launch options.
    """
    launch = replace(
        LaunchOptions.for_command(Path("/")),
        **{"print_mode": False, "output_format": "plain", "input_format": "plain", "keep_session": True, **options},
    )
    loop = asyncio.get_running_loop()
    (agent_in, editor_out), (editor_in, agent_out) = os.pipe(), os.pipe()
    async with ScriptedMessagesServer(script) as server, asyncio.TaskGroup() as tasks:
        os.environ.update(ANTHROPIC_BASE_URL=server.base_url, ANTHROPIC_AUTH_TOKEN=server.token)
        reader = asyncio.StreamReader(limit=2**24)
        source = os.fdopen(editor_in, "rb")
        reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(editor_out, "wb")
        )
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        host = WatchedHost(launch, Locations.of_user(os.environ))
        serving = tasks.create_task(serve_editor(host, agent_in, agent_out))
        editor = Editor()
        connection = Connection(editor, server, writer, reader, serving, host)
        if connect:
            acp.connect_to_agent(editor, writer, reader, use_unstable_protocol=True)
            await editor.agent.initialize(protocol_version=1, client_capabilities=ClientCapabilities())
        try:
            yield connection
        finally:
            if editor.agent is not None:
                await editor.agent.close()
            writer.close()
            await asyncio.wait_for(serving, 60)
            reading.close()
            for descriptor in (agent_in, agent_out):
                os.close(descriptor)
            for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"):
                os.environ.pop(name, None)
