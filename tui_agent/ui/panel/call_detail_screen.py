"""Detail page of one call, live while the call runs."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from tui_agent.protocol.amounts import bytes_text
from tui_agent.ui.base.app_type import copy_text
from tui_agent.ui.base.commands import bindings_for, hint
from tui_agent.ui.state.call_view_state import CallViewState
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import RowsPage, RowsView
from tui_agent.ui.text.sanitiser import one_line
from tui_agent.ui.text.styled_lines import clipped, copied_text

from .call_page import Section, call_sections, page_rows, state_text

CALL_POLL_SECONDS = 0.25
"""Seconds between two updates while the call runs."""
FULL_OUTPUT_LIMIT = 80_000
"""Most bytes read of a file with a whole output; of a longer one the page shows head and tail."""


class CallDetailScreen(RowsPage[bool]):
    """Detail page of one call; follows the call while it changes.

    Returns True if the user wants to revert the call's changes.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("detail")]
    DEFAULT_CSS = """
    CallDetailScreen {
        & #detail-tabs { height: 2; overflow: hidden; }
        & #detail-page { height: 1fr; }
    }
    """

    def __init__(self, view: CallViewState, *, clock: Callable[[], float] = time.monotonic, root: str = "") -> None:
        super().__init__()
        self._root = root
        self._view = view
        self._clock = clock
        self._full_output: str | None = None
        self._sections: list[Section] = []
        self._starts: list[int] = []
        self._chosen = (0, 0)
        self._tabs = RowsView(self._tab_rows, id="detail-tabs")
        self._page = RowsView(self._page_rows, id="detail-page")

    def compose(self) -> ComposeResult:
        with Vertical():
            self._tabs.can_focus = self._page.can_focus = False
            yield self._tabs
            yield self._page

    def on_mount(self) -> None:
        """Load the whole output if the result was truncated, and follow the call while it runs."""
        self._show_title()
        if self._view.outcome.persisted_path is not None:
            self._load_full_output(self._view.outcome.persisted_path)
        if not self._view.ended:
            self.set_interval(CALL_POLL_SECONDS, self._poll_call)

    @on(RowsView.Moved, "#detail-page")
    def _moved(self) -> None:
        self._tabs.show(self._tab_rows)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_close(self) -> None:
        self.dismiss(False)

    def action_revert(self) -> None:
        """Close the page and offer to revert the call's changes, if it made any."""
        if self._has_changes:
            self.dismiss(True)

    def action_next_section(self) -> None:
        """Go to the next section, from the last to the first."""
        self._go_to((self._current + 1) % max(1, len(self._starts)))

    def action_previous_section(self) -> None:
        """Go to the previous section, from the first to the last."""
        self._go_to((self._current - 1) % max(1, len(self._starts)))

    def action_copy(self) -> None:
        """Copy the current section."""
        if self._sections:
            rows = self._sections[self._current].rows
            copy_text(self.app, copied_text([(row, 0, None) for row in rows]))

    @property
    def paged(self) -> RowsView:
        return self._page

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def _has_changes(self) -> bool:
        """True if the call changed files, or may have: a command whose changes could not all be found."""
        unknown = (self._view.outcome.details or {}).get("files_changed", 0) is None
        return self._view.changes.count > 0 or unknown

    @property
    def _current(self) -> int:
        """Selected section until the user scrolls, then the one at the top."""
        top = self._page.scroll_offset.y
        section, at = self._chosen
        # At the end of the page, two sections may have the same place.
        if top == at and section < len(self._starts):
            return section
        return max(0, sum(start <= top for start in self._starts) - 1)

    def _go_to(self, section: int) -> None:
        if self._starts:
            row = min(self._starts[section], self._page.max_scroll_y)
            self._chosen = (section, row)
            self._page.scroll_to(y=row, animate=False)
            self._tabs.show(self._tab_rows)

    def _page_rows(self, width: int) -> Sequence[Line]:
        self._sections = call_sections(self._view, width, self._clock(), self._full_output, self._root)
        rows, self._starts = page_rows(self._sections)
        return rows

    def _tab_rows(self, width: int) -> Sequence[Line]:
        runs: list[Run] = []
        for number, section in enumerate(self._sections):
            runs.append((section.title, "heading-2" if number == self._current else "muted"))
            runs.append(("   ", ""))
        return [Line(clipped(runs, width))]

    def _show_title(self) -> None:
        view = self._view
        title = one_line(f"{view.name} {view.summary}", max(8, self.app.size.width - 24))
        frame = self.query_one(Vertical)
        frame.border_title = Content(f" {title} · {state_text(view)} ")
        keys = [hint("detail.close"), hint("detail.next_section"), hint("detail.copy")]
        if self._has_changes:
            keys.append(hint("detail.revert"))
        frame.border_subtitle = Content(f" {' · '.join(keys)} ")

    def _poll_call(self) -> None:
        """Update the page, and keep it scrolled to the end if it is there."""
        at_end = self._page.rows_below == 0 and self._page.scroll_offset.y > 0
        self._page.show(self._page_rows)
        self._show_title()
        if at_end:
            self._page.scroll_end(animate=False, immediate=True)

    # The disk of the file may be slow, such as one of a network.
    @work(thread=True, exclusive=True, exit_on_error=False)
    def _load_full_output(self, path: str) -> None:
        """Load the file with the whole output; on an error keep the truncated result."""
        try:
            text = _head_and_tail(Path(path))
        except OSError as error:
            self.app.call_from_thread(self.notify, f"{path}: {error.strerror}", severity="warning", markup=False)
        else:
            self.app.call_from_thread(self._show_full_output, text)

    def _show_full_output(self, text: str) -> None:
        self._full_output = text
        self._page.show(self._page_rows)


def _head_and_tail(path: Path) -> str:
    """Return a file as text; of one longer than `FULL_OUTPUT_LIMIT`, head and tail."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        if size <= FULL_OUTPUT_LIMIT:
            return file.read().decode("utf-8", "replace")
        # Either cut may be inside a character.
        head = file.read(FULL_OUTPUT_LIMIT // 2)
        file.seek(-(FULL_OUTPUT_LIMIT // 2), 2)
        left = bytes_text(size - FULL_OUTPUT_LIMIT)
        return f"{head.decode('utf-8', 'replace')}\n… {left} not shown …\n{file.read().decode('utf-8', 'replace')}"
