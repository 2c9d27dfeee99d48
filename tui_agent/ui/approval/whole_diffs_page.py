"""A page with the whole diffs of files whose diffs the question about changes cuts."""

from contextlib import suppress
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.trial import ProposedChanges
from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.dialogs.text_page import page_keys
from tui_agent.ui.text.diff_rows import diff_rows
from tui_agent.ui.text.rows_view import RowsPage, RowsView
from tui_agent.ui.text.sanitiser import visible

MOST_OF_ONE = 2_000_000
"""Most characters of one diff."""


class WholeDiffsPage(RowsPage[None]):
    """The page; esc goes back to the question."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("detail", page_keys())]

    def __init__(self, diff: Diff) -> None:
        super().__init__()
        self._rows = RowsView(lambda width: diff_rows(diff.files, width, clean=visible, named=True))

    def compose(self) -> ComposeResult:
        """Yield the page."""
        with Vertical() as page:
            page.border_title = Content(" Whole diffs ")
            page.border_subtitle = f" {command('detail.close').key_text} back "
            self._rows.can_focus = False
            yield self._rows

    @property
    def paged(self) -> RowsView:
        """The rows that the paging keys move."""
        return self._rows

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)


def whole_diffs(changes: ProposedChanges) -> Diff:
    """Return the whole diffs of the texts whose diff is cut, as far as they are known. Blocks."""
    found: list[Diff] = []
    for file in changes.files:
        if not file.has_more:
            continue
        text = f"--- a/{file.path}\n+++ b/{file.path}\n… It is too large to be compared.\n"
        if file.whole_diff:
            with suppress(OSError), open(file.whole_diff, encoding="utf-8", errors="replace", newline="") as stored:
                text = stored.read(MOST_OF_ONE)
        found.append(Diff(text))
    return Diff.joined(found)
