"""The session's status with the two lines that show it."""

from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.state.session_status import SessionStatus

from .status_line import StatusLine
from .title_bar import TitleBar


class StatusBars:
    """The first and the last line of the chat, and the status that both draw from."""

    def __init__(
        self, place: WorkingDirectory, model: str, label: str, mode: PermissionMode, surroundings: TerminalEnvironment
    ) -> None:
        self.view = SessionStatus(model=model, mode=mode)
        """The status."""
        self.title = TitleBar(place, label, self.view, id="title")
        """The first line."""
        self.line = StatusLine(surroundings, self.view, id="status")
        """The last line."""

    def show(self, view: SessionStatus) -> None:
        """Replace the status; `view` must not be used afterwards."""
        self.view.become(view)
        self.title.changed()
        self.line.changed()

    def show_pending_agent(self, pending: bool, unsent: int, mode: PermissionMode) -> None:
        """Show that the agent is not loaded yet, its future mode, and how many messages wait for it."""
        self.line.agent_pending = pending
        self.line.unsent = unsent
        if pending and self.view.mode is not mode:
            # No event reports the mode yet, and the end of an earlier run may have reported another one.
            self.view.mode = mode
            self.title.changed()
