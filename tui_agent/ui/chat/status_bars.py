"""The first and the last line of the chat, which show the session's status."""

from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.state.session_status import SessionStatus

from .status_line import StatusLine
from .title_bar import TitleBar


class StatusBars:
    """The first and the last line of the chat."""

    def __init__(
        self, place: WorkingDirectory, label: str, surroundings: TerminalEnvironment, status: SessionStatus
    ) -> None:
        self.title = TitleBar(place, label, status, id="title")
        """The first line."""
        self.line = StatusLine(surroundings, status, id="status")
        """The last line."""

    def show(self, status: SessionStatus) -> None:
        """Show another status."""
        self.title.show(status)
        self.line.show(status)
