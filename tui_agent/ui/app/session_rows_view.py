"""The view of a list of rows that are built only when they are drawn."""

from collections.abc import Callable

from tui_agent.ui.text.line import NARROWEST, Line
from tui_agent.ui.text.line_view import LineView


class SessionRows(LineView):
    """The visible rows of a list, of sessions or of others; builds a row only when it is drawn."""

    def __init__(self, row: Callable[[int, int], Line | None], *, id: str = "session-rows") -> None:  # noqa: A002
        """Create the view; `row` returns the row at an index for a width."""
        super().__init__(id=id)
        self._row = row
        self._built: dict[int, Line] = {}

    def line_at(self, row: int) -> Line | None:
        """Return a row."""
        if row not in self._built:
            line = self._row(row, max(NARROWEST, self.row_width))
            if line is None:
                return None
            self._built[row] = line
        return self._built[row]

    def show(self, count: int, chosen: int, *, anew: bool) -> None:
        """Scroll to the chosen one of `count` rows; with `anew`, draw them again."""
        if anew:
            self._built.clear()
            self.set_rows(count)
            self.refresh()
        top, height = self.scroll_offset.y, max(1, self.row_count)
        if chosen < top:
            self.scroll_to(y=chosen, animate=False, immediate=True)
        elif chosen >= top + height:
            self.scroll_to(y=chosen - height + 1, animate=False, immediate=True)

    def on_resize(self) -> None:
        """Build the rows for the new width."""
        self._built.clear()
        self.refresh()
