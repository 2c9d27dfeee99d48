"""Rows of the tool panel with keys and mouse: select, filter, open."""

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import BindingType
from textual.events import Click
from textual.message import Message
from textual.reactive import var

from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.state.call_ledger import FILTERS, CallFilter
from tui_agent.ui.state.call_view_state import CallViewState
from tui_agent.ui.text.sanitiser import one_line, visible

from .call_rows_view import CallRowsView

CONFIRM_SECONDS = 3.0
"""Seconds within which a second press cancels a call."""


class CallList(CallRowsView, can_focus=True):
    """Rows of calls that the user can select, filter and open."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("panel")]

    chosen: var[CallFilter] = var("all")
    """Current filter."""
    _cancel_asked: tuple[str, float] = ("", float("-inf"))
    """Id of the call whose cancellation waits for a second press, and the time of the first."""

    @dataclass
    class Opened(Message):
        """The user opens the detail page of a call."""

        view: CallViewState

    @dataclass
    class CancelRequested(Message):
        """The user cancels a call."""

        view: CallViewState

    @dataclass
    class ExtendRequested(Message):
        """The user gives a call more time."""

        view: CallViewState

    @dataclass
    class RevertRequested(Message):
        """The user wants to revert the changes of a call."""

        view: CallViewState

    @dataclass
    class Widened(Message):
        """The user makes the column wider, or narrower if `steps` is negative."""

        steps: int

    @dataclass
    class TimelineMoved(Message):
        """The user shows another part of the timeline."""

        factor: float
        """Times as much is shown."""
        steps: int
        """Quarters by which the part is later."""

    @dataclass
    class Filtered(Message):
        """The filter has changed."""

        chosen: CallFilter

    def select(self, call_id: str) -> None:
        """Move the cursor to a call, and remove a filter that hides it. Unknown calls are ignored."""
        call = self.ledger.find(call_id)
        if call is not None:
            if self._rows.index_of(call) is None:
                self.chosen = "all"
                self._rows.reveal(call)
                self.show_rows("all", self.size.width)
            index = self._rows.index_of(call)
            self.move_to(len(self._rows) - 1 if index is None else index)

    def watch_chosen(self, chosen: CallFilter) -> None:
        """Show the calls that pass the filter."""
        self.show_rows(chosen, self.size.width)
        self.post_message(self.Filtered(chosen))

    def on_click(self, event: Click) -> None:
        """Select the clicked row, or open it if it is selected."""
        index = self._rows.find(event.y + self.scroll_offset.y)
        if index is not None:
            again = index == self._cursor
            self.move_to(index)
            if again:
                self.action_open()

    def action_cursor_up(self) -> None:
        """Select the row above."""
        self.move_to((len(self._rows) if self._cursor is None else self._cursor) - 1)

    def action_cursor_down(self) -> None:
        """Select the row below."""
        self.move_to(len(self._rows) - 1 if self._cursor is None else self._cursor + 1)

    def action_page_up(self) -> None:
        """Select the row a page above."""
        self._move_by_page(-1)

    def action_page_down(self) -> None:
        """Select the row a page below."""
        self._move_by_page(1)

    def action_first(self) -> None:
        """Select the first row."""
        self.move_to(0)

    def action_last(self) -> None:
        """Select the newest row and follow new ones."""
        self.move_to(len(self._rows) - 1)

    def action_open(self) -> None:
        """Open the selected call, or else the newest."""
        if self.selected is None:
            self.action_last()
        if (call := self.selected) is not None:
            self.post_message(self.Opened(call.view))

    def action_fold(self) -> None:
        """Show or hide the calls of the selected sub-agent."""
        if (call := self.selected) is not None and self._rows.fold(call):
            self.show_rows(self.chosen, self.size.width)

    def action_widen(self, steps: int) -> None:
        """Request a wider or narrower column."""
        self.post_message(self.Widened(steps))

    def action_timeline(self, factor: float, steps: int) -> None:
        """Request another part of the timeline."""
        self.post_message(self.TimelineMoved(factor, steps))

    def action_cancel_call(self) -> None:
        """Ask whether to cancel the selected call; the second time, request it."""
        if (call := self.selected) is None:
            return
        now, (asked_id, asked_at) = self._surroundings.clock(), self._cancel_asked
        if call.view.ended or (call.view.call_id == asked_id and now - asked_at <= CONFIRM_SECONDS):
            self._cancel_asked = ("", float("-inf"))
            self.post_message(self.CancelRequested(call.view))
        else:
            self._cancel_asked = (call.view.call_id, now)
            again = command("panel.cancel_call").key_text
            name = one_line(visible(call.view.name), 24)
            self.notify(f"{again} again cancels #{call.number} {name}", timeout=CONFIRM_SECONDS, markup=False)

    def action_extend_call(self) -> None:
        """Request more time for the selected call."""
        if (call := self.selected) is not None:
            self.post_message(self.ExtendRequested(call.view))

    def action_revert(self) -> None:
        """Request to revert the changes of the selected call."""
        if (call := self.selected) is not None:
            self.post_message(self.RevertRequested(call.view))

    def action_cycle_filter(self) -> None:
        """Switch to the next filter."""
        self.chosen = FILTERS[(FILTERS.index(self.chosen) + 1) % len(FILTERS)]

    def _move_by_page(self, pages: int) -> None:
        if len(self._rows):
            current = self._cursor if self._cursor is not None else len(self._rows) - 1
            row = self._rows.row_within(current) + pages * max(1, self.size.height - 1)
            found = self._rows.find(max(0, row))
            self.move_to(len(self._rows) - 1 if found is None else found)
