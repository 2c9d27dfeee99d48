"""Rows of the tool panel: drawn line by line, so that 10,000 calls cost as much as the visible ones; keys and mouse."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive, var
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.base.steady_widgets import CoalescedRefresh, SteadyScrollView
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.state.call_ledger import FILTERS, CallFilter, CallLedger
from tui_agent.ui.state.call_records import TOOL_KINDS
from tui_agent.ui.state.call_view_state import CallViewState, LedgerCall
from tui_agent.ui.text.sanitiser import one_line, visible

from .panel_rows import STATE_ROOM, PanelRows, RowContext

TICK = 0.2
"""Seconds between two updates of the clocks."""
IDLE_TICK = 1.0
"""Seconds between two updates with reduced motion."""
CONFIRM_SECONDS = 3.0
"""Seconds within which a second press cancels a call."""
SIGN_ROOM = 12
"""Cells at the left end of a row that contain the spinner, for any depth of the agent."""

STYLES = (
    *("waiting", "asking", "running", "ok", "failed", "stopped"),
    *("number", "summary", "amount", "cursor"),
    *(f"tool-{kind}" for kind in TOOL_KINDS),
)


class CallList(CoalescedRefresh, SteadyScrollView, can_focus=True):
    """One row a call, and one for all that ended well; the user selects, filters and opens. Follows the newest call."""

    DEFAULT_CSS = """
    CallList {
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
        overflow-x: hidden;
        overflow-y: scroll;
        & > .call--waiting { color: $text-muted; }
        & > .call--asking { color: $warning; text-style: bold; }
        & > .call--running { color: $primary; }
        & > .call--ok { color: $success; }
        & > .call--failed { color: $error; }
        & > .call--stopped { color: $text-muted; }
        & > .call--number { color: $text-disabled; }
        & > .call--tool-read, & > .call--tool-other { color: $text; text-style: bold; }
        & > .call--tool-change { color: $accent; text-style: bold; }
        & > .call--tool-run { color: $primary; text-style: bold; }
        & > .call--tool-agent { color: $accent; text-style: bold italic; }
        & > .call--summary { color: $text; }
        & > .call--amount { color: $text-muted; }
        & > .call--cursor { background: $block-cursor-blurred-background; }
        &:focus > .call--cursor { background: $block-cursor-background; }
        &:nocolor > .call--cursor { text-style: reverse; }
    }
    """

    STYLE_PREFIX = "call--"
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"call--{name}" for name in STYLES}
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
    class ChangeRequested(Message):
        """The user cancels a call, gives it more time, or reverts its changes."""

        change: Literal["cancel", "extend", "revert"]
        view: CallViewState

    @dataclass
    class Widened(Message):
        """The user makes the column wider, or narrower if `steps` is negative."""

        steps: int

    @dataclass
    class Filtered(Message):
        """The filter has changed."""

        chosen: CallFilter

    def __init__(self, ledger: CallLedger, surroundings: TerminalEnvironment) -> None:
        super().__init__()
        self._surroundings = surroundings
        self._rows = PanelRows(ledger)
        self._cursor: int | None = None
        self._follows = True
        self._moved = False
        self._changed: set[int] = set()
        self._frame = 0
        self._timer: Timer | None = None
        self._drawn_count = 0
        """Number of rows when they were last laid out."""

    @property
    def ledger(self) -> CallLedger:
        """All calls."""
        return self._rows.ledger

    @property
    def selected(self) -> LedgerCall | None:
        """Call under the cursor; None without a cursor, and on the row of the calls that ended well."""
        return self._rows.call(self._cursor) if self._cursor is not None and self._cursor < len(self._rows) else None

    def on_mount(self) -> None:
        pace = IDLE_TICK if self._surroundings.reduced_motion else TICK
        self._timer = self.set_interval(pace, self._tick, pause=True)

    def update(self, changed: Sequence[int]) -> None:
        """Show the calls at these indexes of the ledger, which an event has changed or added."""
        selected, is_done = self.selected, self._is_on_done
        change = self._rows.update(changed)
        if change.moved:
            self._keep_cursor(selected, is_done=is_done)
        # Several events may come before the next drawing.
        self._moved = self._moved or change.moved
        self._changed.update(change.rows)
        self.changed()

    @property
    def _is_on_done(self) -> bool:
        """True if the cursor is on the row of the calls that ended well."""
        return self._cursor is not None and self._cursor < len(self._rows) and self.selected is None

    def _keep_cursor(self, selected: LedgerCall | None, *, is_done: bool) -> None:
        """Keep the cursor on its call, or on the row that has taken it in."""
        self._cursor = self._rows.index_of(selected)
        if self._cursor is None and len(self._rows) and self._rows.call(0) is None:
            self._cursor = 0 if is_done or (selected is not None and selected.kind == "done") else None

    def settle(self) -> None:
        """Draw the changed rows, or all if some have moved; start or pause the timer."""
        moved, changed = self._moved, self._changed
        self._moved, self._changed = False, set()
        if moved:
            self._lay_out()
        else:
            self._refresh_rows(changed)
        # An idle program must not be woken five times a second.
        if self._timer is not None:
            (self._timer.resume if self.ledger.places["running"] else self._timer.pause)()

    def show(self, ledger: CallLedger) -> None:
        """Show another ledger; the cursor stays on the same call if both have it."""
        selected = self.selected
        # What is expanded are places in one ledger.
        self._rows.expanded.clear()
        self._rows.ledger = ledger
        self._rows.rebuild(self._rows.chosen)
        self._cursor = self._rows.index_of(self.ledger.find(selected.view.call_id)) if selected is not None else None
        self._moved = True
        self.changed()

    def show_rows(self, chosen: CallFilter) -> None:
        """Lay out the rows for a filter."""
        selected, is_done = self.selected, self._is_on_done
        self._rows.rebuild(chosen)
        self._keep_cursor(selected, is_done=is_done)
        self._changed.clear()
        self._lay_out()

    def move_to(self, index: int) -> None:
        """Move the cursor to the row `index`, at most to an end, and scroll it into view; the last row is followed."""
        if len(self._rows):
            self._cursor = max(0, min(index, len(self._rows) - 1))
            self._follows = self._cursor == len(self._rows) - 1
            # Keys repeat faster than scrolling animates.
            region = Region(0, self._cursor, self.size.width, 1)
            self.scroll_to_region(region, animate=False, force=True, immediate=True)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        return self._draw(row) if row < len(self._rows) else Strip.blank(self.size.width, self.style_of())

    def on_resize(self) -> None:
        self._lay_out()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the newest call only while it is visible."""
        super().watch_scroll_y(old_value, new_value)
        if new_value >= self.max_scroll_y:
            self._follows = True
        # Rows that are added move the end away, but the user did not scroll.
        elif new_value < old_value:
            self._follows = False

    def _draw(self, row: int) -> Strip:
        is_still = self._surroundings.reduced_motion
        # With reduced motion, neither the spinner nor tenths of a second move.
        context = RowContext(
            self.size.width,
            self._surroundings.clock(),
            0 if is_still else self._frame,
            not is_still,
            len(str(self.ledger.total)),
            self.ledger.find,
        )
        return self.strip_of(self._rows.runs(row, context), self.style_of("cursor") if row == self._cursor else None)

    def _lay_out(self) -> None:
        follows, size = self._follows, self.size
        if not size.height:
            return
        rows = Size(size.width, len(self._rows))
        if rows != self.virtual_size:
            # Setting `virtual_size` directly would lay out the whole screen, although nothing around the list moves.
            self.set_reactive(cast("Reactive[Size]", Widget.virtual_size), rows)
            self._scroll_update(rows)
        if follows and self.scroll_y != self.max_scroll_y:
            self.scroll_end(animate=False, immediate=True, x_axis=False)
        # The empty rows below stay as they are.
        drawn = max(self._drawn_count, len(self._rows)) - self.scroll_offset.y
        self._drawn_count = len(self._rows)
        self.refresh(Region(0, 0, size.width, max(1, min(drawn, size.height))))

    def _refresh_rows(self, rows: Iterable[int]) -> None:
        top, size = self.scroll_offset.y, self.size
        for row in rows:
            if top <= row < top + size.height:
                self.refresh(Region(0, row - top, size.width, 1))

    def _tick(self) -> None:
        """Update clocks and spinners; only their cells are drawn."""
        self._frame += 1
        top, size = self.scroll_offset.y, self.size
        left = max(0, size.width - STATE_ROOM)
        for row in self._rows.moving(top, top + size.height - 1):
            self.refresh(Region(0, row - top, SIGN_ROOM, 1), Region(left, row - top, STATE_ROOM, 1))

    # --- keys and mouse -----------------------------------------------------------------------------------------------

    def select(self, call_id: str) -> None:
        """Move the cursor to a call, and remove a filter that hides it. Unknown calls are ignored."""
        call = self.ledger.find(call_id)
        if call is not None:
            # The filter or a collapsed row hides it, or it is one of those that ended well.
            if self._rows.index_of(call) is None:
                self.chosen = "all"
                self._rows.reveal(call)
                self.show_rows("all")
            index = self._rows.index_of(call)
            self.move_to(len(self._rows) - 1 if index is None else index)

    def watch_chosen(self, chosen: CallFilter) -> None:
        """Show the calls that pass the filter."""
        self.show_rows(chosen)
        self.post_message(self.Filtered(chosen))

    def on_click(self, event: Click) -> None:
        """Select the clicked row, or open it if it is selected; a row that only expands does so at once."""
        row = event.y + self.scroll_offset.y
        if row < len(self._rows):
            again = row == self._cursor or self._rows.call(row) is None
            self.move_to(row)
            if again:
                self.action_open()

    def action_cursor_up(self) -> None:
        """Select the row above."""
        self.move_to((len(self._rows) if self._cursor is None else self._cursor) - 1)

    def action_cursor_down(self) -> None:
        """Select the row below."""
        self.move_to(len(self._rows) - 1 if self._cursor is None else self._cursor + 1)

    def action_page_up(self) -> None:
        self._move_by_page(-1)

    def action_page_down(self) -> None:
        self._move_by_page(1)

    def action_first(self) -> None:
        self.move_to(0)

    def action_last(self) -> None:
        """Select the newest row and follow new ones."""
        self.move_to(len(self._rows) - 1)

    def action_open(self) -> None:
        """Open the selected call, or else the newest; on the row of the calls that ended well, show or hide them."""
        if self._cursor is None:
            self.action_last()
        if (call := self.selected) is not None:
            self.post_message(self.Opened(call.view))
        else:
            self.action_fold()

    def action_fold(self) -> None:
        """Show or hide the calls that the selected row stands for."""
        if (self.selected is not None or self._is_on_done) and self._rows.toggle(self.selected):
            self.show_rows(self.chosen)

    def action_widen(self, steps: int) -> None:
        """Request a wider or narrower column."""
        self.post_message(self.Widened(steps))

    def action_cancel_call(self) -> None:
        """Ask whether to cancel the selected call; the second time, request it."""
        if (call := self.selected) is None:
            return
        now, (asked_id, asked_at) = self._surroundings.clock(), self._cancel_asked
        # A call that is over is not asked about: the reply says that it does not run.
        if call.view.ended or (call.view.call_id == asked_id and now - asked_at <= CONFIRM_SECONDS):
            self._cancel_asked = ("", float("-inf"))
            self.post_message(self.ChangeRequested("cancel", call.view))
        else:
            self._cancel_asked = (call.view.call_id, now)
            again = command("panel.cancel_call").key_text
            name = one_line(visible(call.view.name), 24)
            # The words disappear when the second press no longer counts.
            self.notify(f"{again} again cancels #{call.number} {name}", timeout=CONFIRM_SECONDS, markup=False)

    def action_extend_call(self) -> None:
        """Request more time for the selected call."""
        if (call := self.selected) is not None:
            self.post_message(self.ChangeRequested("extend", call.view))

    def action_revert(self) -> None:
        """Request to revert the changes of the selected call."""
        if (call := self.selected) is not None:
            self.post_message(self.ChangeRequested("revert", call.view))

    def action_cycle_filter(self) -> None:
        """Switch to the next filter."""
        self.chosen = FILTERS[(FILTERS.index(self.chosen) + 1) % len(FILTERS)]

    def _move_by_page(self, pages: int) -> None:
        if len(self._rows):
            current = self._cursor if self._cursor is not None else len(self._rows) - 1
            self.move_to(current + pages * max(1, self.size.height - 1))
