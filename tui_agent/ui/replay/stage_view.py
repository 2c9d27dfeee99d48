"""The picture of a recording: lines that its stage has drawn."""

from collections.abc import Sequence

from textual.strip import Strip
from textual.widget import Widget


class StageView(Widget):
    """Shows lines unchanged, from the upper left corner."""

    DEFAULT_CSS = """
    StageView {
        width: 1fr;
        height: 1fr;
        background: $background;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._strips: Sequence[Strip] = ()

    def show(self, strips: Sequence[Strip]) -> None:
        """Show these lines."""
        self._strips = strips
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one line."""
        width, base = self.size.width, self.rich_style
        strip = self._strips[y] if y < len(self._strips) else Strip.blank(width, base)
        return strip.adjust_cell_length(width, base)
