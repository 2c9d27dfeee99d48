"""A view of rows that are built for a width all at once, for dialogs and pages, and the keys that scroll it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from textual.events import Resize
from textual.message import Message
from textual.strip import Strip

from .line import NARROWEST, Line
from .line_view import LineView

Build: TypeAlias = Callable[[int], Sequence[Line]]
"""Builds the rows for a width in cells."""


class RowsView(LineView):
    """Scrollable rows that know if they were read to the end."""

    has_answers = False
    """True for the answers of a dialog that asks, which the mouse can give."""

    @dataclass
    class Moved(Message):
        """Other rows are visible, or all rows were read."""

        view: "RowsView"

        @property
        def control(self) -> "RowsView":
            """The view itself."""
            return self.view

    def __init__(
        self,
        build: Build = lambda _: (),
        *,
        end_counts: bool = False,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """Create the view.

        Args:
            build: builds the rows.
            end_counts: True if the rows count as read once the user has scrolled to their end, even past others.
            id: the widget's id.
        """
        super().__init__(id=id)
        self._build = build
        self._end_counts = end_counts
        self._lines: Sequence[Line] = ()
        self._read_to = 0
        self._read_all = False
        self._made_for = 0
        self._scrolled_down = False
        self.skipped = 0
        """Number of rows that the user scrolled past before they were drawn."""

    @property
    def total(self) -> int:
        """Number of all rows."""
        return len(self._lines)

    @property
    def rows_below(self) -> int:
        """Number of rows below the visible ones."""
        return max(0, self.total - self.scroll_offset.y - self.row_count)

    @property
    def read_to_end(self) -> bool:
        """True if the last row was drawn, and every other one before it, each after the one above it.

        With `end_counts`, also if the user scrolled down to the last row and it was drawn.
        """
        return self._read_all

    def show(self, build: Build, *, anew: bool = False) -> None:
        """Show other rows; `anew` for another text, which starts at its top and is unread."""
        self._build = build
        if anew:
            self._forget()
            self.scroll_to(y=0, animate=False, immediate=True)
        self._make()

    def read_on(self, rows: int) -> None:
        """Scroll down by some rows at once, but never past undrawn rows: keys may come faster than drawing."""
        top = self.scroll_offset.y
        target = top + rows if top > self._read_to else min(top + rows, self._read_to)
        self._scrolled_down = True
        self.scroll_to(y=target, animate=False, immediate=True)
        self.refresh()

    def read_end(self) -> None:
        """Scroll to the end because the user wants to."""
        self._scrolled_down = True
        self.scroll_end(animate=False)
        # At the end already, nothing else would draw the last row again, which is when it counts.
        self.refresh()

    def lead_to(self, row: int) -> None:
        """Scroll to a row that the user did not scroll to, so that the rows before it stay unread."""
        self.scroll_to(y=row, animate=False, immediate=True)
        self._scrolled_down = False

    def line_at(self, row: int) -> Line | None:
        """Return a row."""
        return self._lines[row] if 0 <= row < len(self._lines) else None

    def render_line(self, y: int) -> Strip:
        """Return one row of the widget; it counts as read once the rows above it were drawn, or at the end."""
        row = y + self.scroll_offset.y
        if row == self._read_to < self.total:
            self._read_to += 1
            if self._read_to == self.total and (self.skipped or not self._read_all):
                self._finish(skipped=0)
        elif self._end_counts and self._scrolled_down and row == self.total - 1 and not self._read_all:
            self._finish(skipped=max(0, self.scroll_offset.y - self._read_to))
        return super().render_line(y)

    def on_resize(self, event: Resize) -> None:
        """Build the rows for the new width."""
        self._make()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Post that other rows are visible."""
        super().watch_scroll_y(old_value, new_value)
        # A window that grows moves the rows, too, but only up.
        self._scrolled_down = self._scrolled_down or new_value > old_value
        self.post_message(self.Moved(self))

    def _make(self) -> None:
        if self.row_width:
            if self.row_width != self._made_for and (self.skipped or not self._read_all):
                self._forget()  # Rows of another width are other rows.
            self._made_for = self.row_width
            self._lines = self._build(max(NARROWEST, self.row_width))
            self.set_rows(len(self._lines))
            self.refresh()
            self.post_message(self.Moved(self))

    def _finish(self, *, skipped: int) -> None:
        self._read_all, self.skipped = True, skipped
        self.post_message(self.Moved(self))

    def _forget(self) -> None:
        self._read_to, self._read_all, self.skipped, self._scrolled_down = 0, False, 0, False


class Paging:
    """Mixin of a screen with the actions of its paging keys."""

    @property
    def paged(self) -> RowsView:
        """Rows that the keys scroll."""
        raise NotImplementedError

    def action_line_up(self) -> None:
        """Scroll up one row."""
        self.paged.scroll_relative(y=-1, animate=False)

    def action_line_down(self) -> None:
        """Scroll down one row."""
        self.paged.read_on(1)

    def action_page_up(self) -> None:
        """Scroll up one page."""
        self.paged.scroll_relative(y=1 - self.paged.row_count, animate=False)

    def action_page_down(self) -> None:
        """Scroll down one page, with an overlap of one row."""
        self.paged.read_on(max(1, self.paged.row_count - 1))

    def action_scroll_top(self) -> None:
        """Scroll to the top."""
        self.paged.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        """Scroll to the end."""
        self.paged.read_end()
