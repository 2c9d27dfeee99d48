"""Rows that are made for a width all at once: what dialogs and pages show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from textual.events import Resize
from textual.message import Message
from textual.strip import Strip

from .line_view import LineView
from .styled_lines import NARROWEST, Line

Build: TypeAlias = Callable[[int], Sequence[Line]]
"""Makes the rows for a width in cells."""


class RowsView(LineView):
    """Scrollable rows that remember whether they were read to the end."""

    @dataclass
    class Moved(Message):
        """Other rows are in sight, or everything was read."""

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
        """All rows."""
        return len(self._lines)

    @property
    def rows_below(self) -> int:
        """Rows below what is in sight."""
        return max(0, self.total - self.scroll_offset.y - self.row_count)

    @property
    def read_to_end(self) -> bool:
        """Whether the last row was drawn, and before it every other one, each after the one above it."""
        return self._read_all

    def show(self, build: Build, *, anew: bool = False) -> None:
        """Shows other rows; `anew` for another text, which begins at its top and is unread."""
        self._build = build
        if anew:
            self._read_to, self._read_all = 0, False
            self.scroll_to(y=0, animate=False, immediate=True)
        self._make()

    def read_on(self, rows: int) -> None:
        """Moves down by some rows, at once, but over nothing that was not drawn yet: keys may come faster than that."""
        top = self.scroll_offset.y
        target = top + rows if top > self._read_to else min(top + rows, self._read_to)
        self.scroll_to(y=target, animate=False, immediate=True)

    def line_at(self, row: int) -> Line | None:
        """A row."""
        return self._lines[row] if 0 <= row < len(self._lines) else None

    def render_line(self, y: int) -> Strip:
        """One row of the widget; only what is drawn counts as read, and what was jumped over does not."""
        if y + self.scroll_offset.y == self._read_to < self.total:
            self._read_to += 1
            if self._read_to == self.total and not self._read_all:
                self._read_all = True
                self.post_message(self.Moved(self))
        return super().render_line(y)

    def on_resize(self, event: Resize) -> None:
        """Fits the rows to another width."""
        self._make()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Tells that other rows are in sight."""
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
