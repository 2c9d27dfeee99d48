"""Paging keys, the same in every dialog and page that scrolls."""

from .rows_view import RowsView


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
