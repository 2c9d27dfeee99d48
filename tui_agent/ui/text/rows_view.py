"""A view of rows that are built for a width all at once, for dialogs and pages, and the keys that scroll it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from textual.events import Resize
from textual.message import Message
from textual.strip import Strip

from .line_view import LineView
from .styled_lines import NARROWEST, Line

Build: TypeAlias = Callable[[int], Sequence[Line]]
"""Builds the rows for a width in cells."""


class RowsView(LineView):
    """Scrollable rows that know if they were read to the end."""

    @dataclass
    class Moved(Message):
        """Other rows are visible, or all rows were read."""

        view: "RowsView"

        @property
        def control(self) -> "RowsView":
            """The view itself."""
            return self.view

    def __init__(self, build: Build = lambda _: (), *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._build = build
        self._lines: Sequence[Line] = ()
        self._read_to = 0
        self._read_all = False
        self._made_for = 0

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
        """True if the last row was drawn, and every other one before it, each after the one above it."""
        return self._read_all

    def show(self, build: Build, *, anew: bool = False) -> None:
        """Show other rows; `anew` for another text, which starts at its top and is unread."""
        self._build = build
        if anew:
            self._read_to, self._read_all = 0, False
            self.scroll_to(y=0, animate=False, immediate=True)
        self._make()

    def read_on(self, rows: int) -> None:
        """Scroll down by some rows at once, but never past undrawn rows: keys may come faster than drawing."""
        top = self.scroll_offset.y
        target = top + rows if top > self._read_to else min(top + rows, self._read_to)
        self.scroll_to(y=target, animate=False, immediate=True)

    def line_at(self, row: int) -> Line | None:
        """Return a row."""
        return self._lines[row] if 0 <= row < len(self._lines) else None

    def render_line(self, y: int) -> Strip:
        """Return one row of the widget; only drawn rows count as read, not skipped ones."""
        if y + self.scroll_offset.y == self._read_to < self.total:
            self._read_to += 1
            if self._read_to == self.total and not self._read_all:
                self._read_all = True
                self.post_message(self.Moved(self))
        return super().render_line(y)

    def on_resize(self, event: Resize) -> None:
        """Build the rows for the new width."""
        self._make()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Post that other rows are visible."""
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Moved(self))

    def _make(self) -> None:
        if self.row_width:
            if self.row_width != self._made_for and not self._read_all:
                self._read_to = 0  # Rows of another width are other rows.
            self._made_for = self.row_width
            self._lines = self._build(max(NARROWEST, self.row_width))
            self.set_rows(len(self._lines))
            self.refresh()
            self.post_message(self.Moved(self))


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
        """Scroll to the end; skipped rows stay unread."""
        self.paged.scroll_end(animate=False)
