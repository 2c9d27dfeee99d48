"""Options of a chat, its requests to the app, and the interface of the service that finds sessions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from textual.message import Message
from textual.screen import Screen

from tui_agent.protocol.facts.screen_facts import FirstPage, HistoryTail, ScreenChoices
from tui_agent.protocol.messages import ImageBlock
from tui_agent.ui.base.app_type import InputTaker
from tui_agent.ui.base.error_boundary import ErrorBoundary
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge

if TYPE_CHECKING:
    # An app for another program's agent has no sessions.
    from tui_agent.workbench.sessions.session_launch import NextSession


@dataclass
class SessionRequested(Message):
    """The user wants another session on the screen."""

    kind: Literal["resume", "clear", "fork", "demo"]
    """`resume`: a saved one; `clear`: a new one; `fork`: a copy of this one; `demo`: one with the offline model."""
    argument: str = ""
    """For `resume` an id or words, empty for the list of sessions; for `fork` a number of messages."""


@dataclass
class ReplayRequested(Message):
    """The user wants to watch a session."""

    name: str
    """Id or file of the session; empty for the present one."""


@dataclass
class ThemeRequested(Message):
    """The user chose a theme."""

    name: str


@dataclass
class PictureRequested(Message):
    """The user opens a picture."""

    image: ImageBlock = field(repr=False)
    page: Screen[None]
    """Shows the small form, for a terminal that cannot draw the picture."""


@dataclass(frozen=True, slots=True)
class SessionTarget:
    """A session to switch to."""

    session_id: str | None
    """None for a new one."""
    demo: bool = False
    """True for a new session with the offline model."""


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session whose engine is about to be built."""

    bridge: AgentBridge
    """Queues what the user types until the engine is there."""
    session: "NextSession"
    """Its options, its last events and its model."""


class SessionService(Protocol):
    """Finds sessions and builds their engines. Its coroutines raise `TuiAgentError` if they fail."""

    async def first_page(self) -> FirstPage:
        """Return the content of the page before the first message."""
        ...

    async def keep_theme(self, name: str, /) -> str:
        """Write a theme into the user's settings and return their path."""
        ...

    def list_screen(self, current: str, words: str, /) -> Screen[str | None]:
        """Return the screen that lists the sessions with `words`. It returns the id of the chosen one, or None."""
        ...

    async def find(self, words: str, /) -> str | None:
        """Return the only session with this id or these words in its title; None if there are several."""
        ...

    async def replay(self, name: str, options: "ChatOptions", /) -> InputTaker:
        """Return the screen that replays the session with an id or in a file; an empty name is the present session."""
        ...

    async def prepare(self, target: SessionTarget, /) -> OpenedSession:
        """Check that a session can be opened, and return it."""
        ...

    def start(self, opened: OpenedSession, /) -> None:
        """End the present engine, and build that of a prepared session, in the background."""
        ...


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """The settings of one chat screen."""

    place: WorkingDirectory = field(default_factory=WorkingDirectory)
    """Directory and branch for the frame of the composer."""
    model: str = ""
    """Model name until an event reports one."""
    label: str = ""
    """Text beside the model's name, such as that it is not a language model."""
    ideas: Sequence[str] = ()
    """Example prompts for the welcome page."""
    sessions: SessionService | None = None
    """Finds and opens sessions, also for the welcome page; None: the app shows only this one."""
    surroundings: TerminalEnvironment = field(default_factory=TerminalEnvironment)
    """The terminal's wishes and the clock."""
    glimpse: HistoryTail | None = None
    """The end of the session's past, shown until the whole past is read."""
    prompt: str | None = None
    """First prompt, sent at once."""
    theme_names: Callable[[], Sequence[str]] = tuple
    """Returns the names of the themes."""
    choices: ScreenChoices = field(default_factory=ScreenChoices)
    """The user's choices for the composer and the status line."""
    faults: ErrorBoundary = field(default_factory=lambda: ErrorBoundary(tell=str, log_file=None))
    """Contains the errors of single widgets."""
