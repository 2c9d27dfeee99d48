"""The settings of one chat screen, and the first events it shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tui_agent.protocol.facts.screen_facts import HistoryTail, ScreenChoices
from tui_agent.ui.base.error_boundary import ErrorBoundary
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory

from .app_requests import SessionService


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
    first_page: SessionService | None = None
    """Collects what the welcome page offers; None: only the example prompts."""
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
