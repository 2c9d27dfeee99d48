"""Widgets that redraw only what looks different, once for a batch of events, and never a row that only moves."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any, ClassVar, Self, TypeAlias

from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style, StyleType
from textual import getters
from textual.color import Color
from textual.filter import LineFilter
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

from .app_type import any_app


class DirectRefresh(Widget):
    """A widget that registers with its screen at once what the next frame has to paint.

    Textual sends three messages for that, each with a task's turn: to the widget, to the screen, and to the screen
    again.
    """

    def check_idle(self) -> None:
        """Tell the screen what is to be painted; messages of Textual do what needs more."""
        its: Any = self
        screen: Any = self.screen if self.is_attached and its._is_mounted and self.display else None
        needs_more = its._layout_required or its._scroll_required or its._refresh_styles_required or its._next_callbacks
        # The messages about the focused one make the screen paint it before the next frame.
        if (
            needs_more
            or not its._repaint_required
            or screen is None
            or self is screen.focused
            or screen.app._batch_count
            or not screen.is_current
        ):
            super().check_idle()
        else:
            its._repaint_required = False
            screen._dirty_widgets.add(self)
            # It paints when it has nothing else to do: a layout comes first.
            screen.check_idle()


class RowStrips(DirectRefresh):
    """A widget whose `render_line` returns the same strip for the same row, wherever it is.

    Textual frames each drawn row anew, although these widgets have no frame of their own. Without that, what was
    computed for a strip on its way to the terminal stays with it. Containers profit, too: each frame asks all that
    surround a changed row for all their rows. Name another base with a style sheet first, because only the first base's
    counts.
    """

    STYLE_PREFIX: ClassVar[str] = ""
    """Beginning of the component classes that name the styles of runs, such as `call--`."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(name=name, id=id, classes=classes)
        self._drawn_rows: dict[int, Strip] = {}
        self._drawn_for: tuple[int, Color, Sequence[LineFilter]] | None = None
        self._run_styles: dict[str, Style] = {}

    @property
    def drawn_width(self) -> int:
        """Cells of a row that is being drawn; cheaper than `size`."""
        return self.size.width if self._drawn_for is None else self._drawn_for[0]

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows of a region; those that have not changed are not drawn again."""
        if self.styles.gutter or self.opacity < 1:
            self._drawn_for = None
            return super().render_lines(crop)
        width, background, filters = self.size.width, self.background_colors[1], self.get_line_filters()
        if self._drawn_for != (width, background, filters):
            self._drawn_for = (width, background, filters)
            self._drawn_rows.clear()
            self._run_styles.clear()
        strips: list[Strip] = []
        for y in crop.line_range:
            strip = self._drawn_rows.get(y)
            if strip is None:
                strip = self.render_line(y)
                for line_filter in filters:
                    strip = strip.apply_filter(line_filter, background)
                self._drawn_rows[y] = strip
            strips.append(strip)
        if crop.column_span != (0, width):
            return [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def move_rows(self, rows: int) -> None:
        """Draw the rows where they are after a move up by `rows`; only those that come into sight are new."""
        # What is drawn over the last row stays there.
        kept = range(max(0, rows), self.size.height - 1)
        moved = {y - rows: strip for y, strip in self._drawn_rows.items() if y in kept}
        self.refresh(Region(0, 0, *self.scrollable_content_region.size))
        self._drawn_rows = moved

    def _set_dirty(self, *regions: Region) -> None:
        super()._set_dirty(*regions)
        if not regions:
            self._drawn_rows.clear()
        for region in regions:
            for y in region.line_range:
                self._drawn_rows.pop(y, None)

    # --- rows of runs -------------------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        """Forget the styles of runs, which depend on the theme and the focus."""
        super().notify_style_update()
        self._run_styles.clear()

    def style_of(self, name: str = "") -> Style:
        """Return the style of the component class `STYLE_PREFIX` with a name, or the base style.

        Textual computes both for each frame.
        """
        found = self._run_styles.get(name)
        if found is None:
            part = f"{self.STYLE_PREFIX}{name}"
            found = self.get_component_rich_style(part, partial=True) if name else self.rich_style
            self._run_styles[name] = found
        return found

    def strip_of(self, runs: Iterable[tuple[str, str]], over: Style | None = None) -> Strip:
        """Return a row of the widget's width; each run is a text with the name of its style, over the base style."""
        base = self.style_of() if over is None else self.style_of() + over
        segments = [Segment(text, base + self.style_of(name) if name else base) for text, name in runs if text]
        return Strip(segments).adjust_cell_length(self.size.width, base)


_gathered: "list[CoalescedRefresh] | None" = None
"""Widgets that have changed in the current block of `settled_together`."""


class CoalescedRefresh(DirectRefresh):
    """A widget that calls `changed` for each change; `settle` runs once, after the events of the batch."""

    _unsettled = False

    def changed(self) -> None:
        """Schedule one call of `settle`."""
        if self._unsettled:
            return
        self._unsettled = True
        if _gathered is not None and self.is_running:
            _gathered.append(self)
        else:
            self.call_later(self.settle_once)

    def settle(self) -> None:
        """Draw the changes."""
        self.refresh()

    def settle_once(self) -> None:
        """Draw the changes since the last call."""
        self._unsettled = False
        self.settle()


@contextmanager
def settled_together(call: Callable[[Callable[[], None]], object]) -> Generator[None]:
    """Settle the widgets that change in the block at its end, without a message for each; `call` contains failures."""
    global _gathered
    outer, gathered = _gathered, list[CoalescedRefresh]()
    _gathered = gathered
    try:
        yield
    finally:
        _gathered = outer
    for widget in gathered:
        call(widget.settle_once)


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
