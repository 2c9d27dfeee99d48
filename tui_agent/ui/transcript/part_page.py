"""A part of the conversation in full screen."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from tui_agent.ui.base.commands import COMMANDS, bindings_for, hint
from tui_agent.ui.text.clipboard import copy_text
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.rows_view import RowsPage, RowsView

_OWN_KEYS = ("close", "line_up", "line_down", "page_up", "page_down", "scroll_top", "scroll_end", "copy")


class PartPage(RowsPage[None]):
    """All rows of one part; a key copies its text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_for("detail", [command for command in COMMANDS if command.action_name in _OWN_KEYS])
    ]

    def __init__(self, title: str, text: str, rows: Callable[[int], Sequence[Line]]) -> None:
        """Create the page.

        Args:
            title: its title.
            text: text to copy.
            rows: builds its rows for a width in cells.
        """
        super().__init__()
        self._title = title
        self._text: str = text
        self._page = RowsView(rows)

    def compose(self) -> ComposeResult:
        """Yield the page."""
        with Vertical() as frame:
            self._page.can_focus = False
            frame.border_title = Content(f" {self._title} ")
            frame.border_subtitle = Content(f" {hint('detail.close')} · {hint('detail.copy')} ")
            yield self._page

    @property
    def paged(self) -> RowsView:
        """View that the paging keys scroll."""
        return self._page

    def action_close(self) -> None:
        """Close the page."""
        self.dismiss(None)

    def action_copy(self) -> None:
        """Copy the text of the part."""
        copy_text(self.app, self._text)
