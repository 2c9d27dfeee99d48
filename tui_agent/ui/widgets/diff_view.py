"""A difference to scroll through."""

from collections.abc import Callable, Sequence

from tui_agent.ui.diff_layout import layout_diff
from tui_agent.ui.diff_lines import read_diff
from tui_agent.ui.styled_lines import Line
from tui_agent.ui.text import sanitise

from .rows_view import RowsView


class DiffView(RowsView):
    """A unified difference, its sides beside each other where there is room."""

    def __init__(self, diff: str = "", *, clean: Callable[[str], str] = sanitise, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.show_diff(diff, clean=clean)

    def show_diff(self, diff: str, *, clean: Callable[[str], str] = sanitise) -> None:
        """Shows another difference; `clean` makes each of its lines safe."""
        lines = read_diff(diff, clean)

        def build(width: int) -> Sequence[Line]:
            return layout_diff(lines, width)

        self.show(build, anew=True)
