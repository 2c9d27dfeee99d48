"""Parts that all tool servers of a session share: log, tokens, and the functions that answer their questions."""

import hashlib
import json
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from tui_agent.protocol.events import AgentEvent
from tui_agent.protocol.messages import JsonObject, UserBlock, is_object
from tui_agent.protocol.regular_file import make_private_directories, read_regular_file
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
        """Register the first process; call it once, right after its start."""
        ...

    def end(self, pid: int | None) -> tuple[str, ...]:
        """End all processes that still run, and return the name and id of each. Blocks.

        `pid` is the first process; None if it could not be started.
        """
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
            # Cut twice: a secret that the cut goes through would not be recognised.
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


_LARGEST = 256 * 1024


class TokenStore:
    """The tokens for one server; another address of the same name has others."""

    def __init__(self, folder: Path, server: str, url: str) -> None:
        digest = hashlib.sha256(f"{server}\n{url}".encode("utf-8", "replace")).hexdigest()[:16]
        self.path = folder / f"{server}-{digest}.json"
        self._url = url

    def read(self) -> JsonObject:
        """Return what is stored; empty if there is nothing usable. Blocks."""
        try:
            stored: object = json.loads(read_regular_file(str(self.path), _LARGEST))
        except (OSError, ValueError, RecursionError):
            return {}
        return stored if is_object(stored) and stored.get("url") == self._url else {}

    def write(self, values: dict[str, Any]) -> None:
        """Replace the stored values in one step; only the user can read the file and its directory. Blocks.

        Raises:
            OSError: the file cannot be written; the old one is as it was.
        """
        folder = self.path.parent
        make_private_directories(folder)
        folder.chmod(0o700)
        temporary = self.path.with_suffix(f".{os.getpid()}.new")
        with suppress(FileNotFoundError):
            temporary.unlink()
        # Exclusive, so that no link that someone put there is followed.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(json.dumps({"url": self._url, **values}))
                file.flush()
                # A crash after the renaming must not leave an empty file.
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def remove(self) -> bool:
        """Remove the file; return False if there is none. Blocks.

        Raises:
            OSError: it cannot be removed.
        """
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        return True
