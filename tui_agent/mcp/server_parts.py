"""Parts that all servers of a session share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.events import AgentEvent

from .server_questions import NO_QUESTIONS, ServerQuestions

if TYPE_CHECKING:
    # The SDK is loaded in a thread, once a server starts.
    from .call_result import MediaCheck
    from .stdio_transport import ProcessTree


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
    new_tree: "Callable[[], ProcessTree] | None" = None
    """Returns the marks for the processes of one start of a server; None: there are none."""
    tokens: Path | None = None
    """Directory with the tokens of servers (OAuth); None: no one can sign in."""
    check_media: "MediaCheck | None" = None
    """Checks images and PDF files; None: they stay as they are."""
