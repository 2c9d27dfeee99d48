"""The first line of the chat: directory, branch, model and permission mode."""

from textual.content import Content

from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.coalesced_refresh import CoalescedRefresh
from tui_agent.ui.base.terminal_environment import WorkingDirectory
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.text.sanitiser import one_line

_BADGES: dict[PermissionMode, tuple[str, str]] = {
    PermissionMode.ASK: ("ask", "$text-muted"),
    PermissionMode.ACCEPT_EDITS: ("accept edits", "$accent"),
    PermissionMode.PLAN: ("plan", "$primary"),
    PermissionMode.ALLOW: (" ALLOW ALL ", "$background on $error bold"),
    PermissionMode.DENY: ("deny", "$warning"),
}

_LONGEST = 200
"""Cells of one part; more than any terminal shows."""


class TitleBar(CoalescedRefresh):
    """Directory and branch on the left, model, label and mode on the right, a line between them."""

    DEFAULT_CSS = """
    TitleBar {
        height: 1;
        color: $text-muted;
    }
    """

    def __init__(self, place: WorkingDirectory, label: str, status: SessionStatus, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._place = place
        self._label = one_line(label, _LONGEST)
        self._status = status
        self._drawn = (status.model, status.mode)

    def show(self, status: SessionStatus) -> None:
        """Show another status."""
        self._status = status
        self.changed()

    def settle(self) -> None:
        """Draw the line if the model or the mode has changed."""
        before, self._drawn = self._drawn, (self._status.model, self._status.mode)
        if self._drawn != before:
            self.refresh()

    def render(self) -> Content:
        """Return the line; if the window is narrow, the model is left out first, then its label, never the mode."""
        width = self.size.width
        right = self._right(width)
        left = self._left(max(0, width - right.cell_length - 3))
        rule = max(0, width - left.cell_length - right.cell_length)
        line = Content.styled("─" * rule, "$border-blurred") if rule else Content("")
        return Content("").join([left, line, right])

    def _left(self, room: int) -> Content:
        directory, branch = one_line(self._place.directory, _LONGEST), one_line(self._place.branch, _LONGEST)
        parts: list[Content | tuple[str, str]] = [(f" {directory}", "$text")]
        if branch:
            parts += [(" · ", "$text-muted"), (branch, "$text-muted")]
        left = Content.assemble(*parts, " ")
        return left if left.cell_length <= room else left.truncate(max(0, room - 1), ellipsis=True) + Content(" ")

    def _right(self, width: int) -> Content:
        word, style = _BADGES[self._status.mode]
        badge = Content.assemble(" ", (word, style), " ")
        texts = [one_line(self._status.model, _LONGEST), self._label]
        for kept in (texts, texts[1:] if self._label else texts[:1], []):
            words = " · ".join(text for text in kept if text)
            right = Content.assemble(f" {words} ·", badge) if words else badge
            if right.cell_length <= width * 0.7:
                return right
        return badge
