"""Interface to the rest of the program: how a session's engine is opened, and what it offers an editor."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tui_agent.agent import AgentLoop
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.messages import UserBlock, UserMessage
from tui_agent.protocol.permissions import ApprovalRequest, PermissionMode
from tui_agent.protocol.prompt_command import PromptCommand
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.tool_server import ToolServer

ServerAnswer = Literal["ask", "allow", "deny"]
"""Treatment of the tool servers that an editor names."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting of a session with a few values, such as its model."""

    name: Literal["model", "effort"]
    label: str
    value: str
    values: Sequence[str]


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A saved session in a list."""

    id: str
    cwd: str
    title: str
    updated_ms: int


class SessionControls(Protocol):
    """The parts of a session's engine beside its loop."""

    @property
    def commands(self) -> Sequence[PromptCommand]:
        """The `/` commands: skills, command files and prompts of servers."""
        ...

    @property
    def modes(self) -> Sequence[PermissionMode]:
        """The permission modes that an editor may set."""
        ...

    @property
    def choices(self) -> Sequence[Choice]:
        """The settings that an editor may change."""
        ...

    @property
    def server_answer(self) -> ServerAnswer:
        """Treatment of the editor's tool servers."""
        ...

    def choose(self, name: str, value: str, /) -> None:
        """Change a setting.

        Raises:
            ConfigurationError: it has no such value.
        """
        ...

    async def expand(self, text: str, /) -> str:
        """Return an input with the prompt and the resources of servers that it names.

        Raises:
            ToolError: a server does not have what the text names.
        """
        ...

    def needs_own_run(self, text: str, /) -> bool:
        """True if a text cannot be a message to a run."""
        ...

    def expanded(self, text: str, /) -> str:
        """Return the message for a text that needs no run of its own."""
        ...

    async def run(self, text: str, message: Callable[[str], UserMessage], /) -> AgentRunReport | None:
        """Run an input to its end; None if a shell command of a command file was cancelled.

        Args:
            text: the input as typed.
            message: returns the message for the prompt that it stands for.
        """
        ...

    async def media(self, content: bytes, name: str, /) -> UserBlock:
        """Return an image or a PDF that the editor sends.

        Raises:
            ToolError: it is neither, or cannot be sent.
        """
        ...

    async def attached(self, text: str, /) -> Sequence[UserBlock]:
        """Return the files that a text names with `@` and that are sent with it.

        Raises:
            ConfigurationError: a rule denies reading one.
            ToolError: one cannot be sent.
        """
        ...

    async def start_servers(self, servers: Mapping[str, ToolServer], /) -> Sequence[str]:
        """Start tool servers, and return messages about those that are not used."""
        ...

    def describe(self, request: ApprovalRequest, /) -> Sequence[str]:
        """Return the lines of a question, with every character visible."""
        ...


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session with its engine."""

    loop: AgentLoop
    bus: EventBus
    past: Sequence[Envelope]
    """Earlier events of the session."""
    controls: SessionControls
    keep: Callable[[], Awaitable[None]] | None
    """Returns once every event so far is saved; None if the session is not saved."""


class SessionHost(Protocol):
    """Opens sessions. Every method raises `TuiAgentError` with a sentence for the user."""

    def open(self, cwd: Path, session_id: str | None, /) -> AbstractAsyncContextManager[OpenedSession]:
        """Open a saved session, or a new one, with its engine; it is saved and closed with the context."""
        ...

    def missing_key(self) -> str:
        """Return what to do about a missing key; empty if there is one."""
        ...

    async def sessions(self, cwd: str | None, /) -> Sequence[StoredSession]:
        """Return the saved sessions, of one directory or of all, the newest first."""
        ...

    async def find(self, session_id: str, /) -> bool:
        """True if there is a saved session of this id."""
        ...

    async def fork(self, session_id: str, /) -> str:
        """Copy a saved session and return the id of the copy."""
        ...
