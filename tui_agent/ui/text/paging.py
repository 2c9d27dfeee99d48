"""The keys that move through rows: one meaning for every dialog and page that shows more than fits."""

from .rows_view import RowsView


class Paging:
    """Part of a screen: what its paging keys do."""

    @property
    def paged(self) -> RowsView:
        """The rows the keys move."""
        raise NotImplementedError

    def action_line_up(self) -> None:
        """One row up."""
        self.paged.scroll_relative(y=-1, animate=False)

    def action_line_down(self) -> None:
        """One row down."""
        self.paged.read_on(1)

    def action_page_up(self) -> None:
        """One page up."""
        self.paged.scroll_relative(y=1 - self.paged.row_count, animate=False)

    def action_page_down(self) -> None:
        """One page down, one row of it twice."""
        self.paged.read_on(max(1, self.paged.row_count - 1))

    def action_scroll_top(self) -> None:
        """To the top."""
        self.paged.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        """To the end; what is jumped over stays unread."""
        self.paged.scroll_end(animate=False)
