"""A vertical scrollbar that is drawn only when it looks different: one more row moves no cell of a long view's bar."""

from math import ceil
from typing import Self, TypeAlias

from rich.console import RenderableType
from rich.style import StyleType
from textual import getters
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender

from .app_type import any_app
from .row_strips import RowStrips

_EIGHTHS = 8
"""Steps of the thumb's ends within a cell."""

_Look: TypeAlias = tuple[int, int, int, StyleType]
"""Cells of the bar, first and last eighth of the thumb, and colours."""


class SteadyScrollBar(ScrollBar, RowStrips):
    """A scrollbar that ignores changes of the scrolled view that no cell of it shows."""

    def __init__(self, *, thickness: int) -> None:
        super().__init__(vertical=True, name="vertical", thickness=thickness)
        self._drawn: _Look | None = None

    def render(self) -> RenderableType:
        bar = super().render()
        self._drawn = self._look_of(bar)
        return bar

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Draw the cells that look different."""
        if repaint and not (regions or layout or recompose) and self._drawn is not None:
            look = self._look_of(super().render())
            if look == self._drawn:
                return self
            if look is not None and (look[0], look[3]) == (self._drawn[0], self._drawn[3]):
                regions = tuple(self._moved(self._drawn[1], look[1]) | self._moved(self._drawn[2], look[2]))
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _moved(self, before: int, now: int) -> set[Region]:
        """Return the cells between two places of an end of the thumb."""
        first, last = min(before, now) // _EIGHTHS, max(before, now) // _EIGHTHS
        return {Region(0, first, self.size.width, last - first + 1)} if before != now else set()

    def _look_of(self, bar: RenderableType) -> _Look | None:
        """Return the look of a bar as `ScrollBarRender.render_bar` draws it; None if that is not known."""
        size = self.size.height
        if not isinstance(bar, ScrollBarRender):
            return None
        if not size or not bar.window_size or not bar.virtual_size or size == bar.virtual_size:
            return size, 0, 0, bar.style
        thumb = max(1, bar.window_size / (bar.virtual_size / size))
        start = int((size - thumb) * (bar.position / (bar.virtual_size - bar.window_size)) * _EIGHTHS)
        return size, start, start + ceil(thumb * _EIGHTHS), bar.style


class SteadyScrollView(RowStrips, ScrollView):
    """A view of rows, each of whose strips is kept, with a steady vertical scrollbar."""

    app = getters.app(any_app)

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The vertical scrollbar; created when it is first used."""
        if self._vertical_scrollbar is None:
            bar = self._vertical_scrollbar = SteadyScrollBar(thickness=self.scrollbar_size_vertical)
            bar.display = False
            # Textual has no public way to choose the class of a scrollbar.
            self.app._start_widget(self, bar)  # pyright: ignore[reportPrivateUsage]
        return self._vertical_scrollbar
