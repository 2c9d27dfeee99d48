"""Parts that all servers of a session share: their log, and who answers their questions."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from tui_agent.protocol.events import AgentEvent
from tui_agent.protocol.messages import UserBlock
from tui_agent.protocol.secret_variables import mask_secrets
from tui_agent.protocol.server_question import FieldValue, ServerQuestion
from tui_agent.protocol.visible_text import escaped

if TYPE_CHECKING:
    # The SDK is loaded in a thread, once a server starts.
    from .call_result import MediaCheck


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """The user's answer: accept, with the values of a form; decline; or cancel, without a choice."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, FieldValue] | None = None


@dataclass(frozen=True, slots=True)
class SampledMessage:
    """One message of a request to the model."""

    role: Literal["user", "assistant"]
    blocks: tuple[UserBlock, ...]


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """A request of a server to the model."""

    server: str
    messages: tuple[SampledMessage, ...]
    system: str
    max_tokens: int
    temperature: float | None


@dataclass(frozen=True, slots=True)
class SamplingAnswer:
    """The model's answer."""

    text: str
    model: str
    stop_reason: str


Ask: TypeAlias = Callable[[ServerQuestion], Awaitable[QuestionAnswer]]
Sample: TypeAlias = Callable[[SamplingRequest], Awaitable[SamplingAnswer]]


@dataclass(frozen=True, slots=True)
class ServerQuestions:
    """The functions that answer questions; None: such questions are refused."""

    ask: Ask | None = None
    sample: Sample | None = None
    """Asks the model, after the user. Raises `ToolError` if the user or the model refuses."""
    extend_call: Callable[[str, float], object] = lambda call_id, seconds: None
    """Gives a call more seconds, while it waits for the user."""


NO_QUESTIONS = ServerQuestions()


class ProcessTree(Protocol):
    """The processes of one server, also those that leave its session."""

    def prepare(self, argv: tuple[str, ...], environment: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the command line and the environment that mark them. Blocks."""
        ...

    def started(self, pid: int) -> None:
        """Name the first process."""
        ...

    def end(self, pid: int | None) -> tuple[str, ...]:
        """End all that still run; return names and ids. Blocks."""
        ...


@dataclass(frozen=True, slots=True)
class ServerParts:
    """Parts that all servers of a session share."""

    environment: Mapping[str, str]
    """The environment that programs inherit, without secrets."""
    secrets: Mapping[str, str]
    """The whole environment, for `${VAR}` and `bearer_token_env`."""
    root: Path
    """The workspace."""
    publish: Callable[[AgentEvent], object]
    questions: ServerQuestions = NO_QUESTIONS
    new_tree: Callable[[], ProcessTree] | None = None
    """Returns the marks for the processes of one start of a server; None: there are none."""
    tokens: Path | None = None
    """Directory with the tokens of servers (OAuth); None: no one can sign in."""
    check_media: "MediaCheck | None" = None
    """Checks images and PDF files; None: they stay as they are."""


_LOG = logging.getLogger("tui_agent.mcp")
_LINES = 500
_LONGEST_LINE = 2_000


class ServerLog:
    """The newest lines of one server, which also go to the log file with `--verbose`."""

    def __init__(self, server: str) -> None:
        self.secrets: frozenset[str] = frozenset()
        """Values that no line shows."""
        self._server = server
        self._lines: deque[str] = deque(maxlen=_LINES)

    def add(self, text: str) -> None:
        """Add a text, each of its lines shortened and with escapes for hidden characters and without secrets."""
        for line in text.splitlines() or [""]:
            masked = self.masked(line[: 2 * _LONGEST_LINE])
            shown = escaped(masked[:_LONGEST_LINE]) + ("…" if len(masked) > _LONGEST_LINE else "")
            self._lines.append(shown)
            _LOG.info("%s: %s", self._server, shown)

    def masked(self, text: str) -> str:
        """Return a text without the secrets."""
        return mask_secrets(text, self.secrets)

    @property
    def text(self) -> str:
        """All lines, the oldest first."""
        return "\n".join(self._lines)

    @property
    def last(self) -> str:
        """The newest line that is not empty; empty without one."""
        return next((line for line in reversed(self._lines) if line.strip()), "")
