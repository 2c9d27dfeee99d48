"""Layout of a screen within one frame, at its first paint, and without a lost `Resize`; and frames of changed rows."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar, cast

from textual._compositor import ChopsUpdate, Compositor, ReflowResult
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget


class ImmediateLayout(Widget):
    """A container whose children can change their place in the next frame, not in the one after it."""

    def rearrange(self) -> None:
        """Arrange the children anew in the next frame."""
        # Textual handles a child's request for a new layout only after that frame, which shows the old places.
        self._clear_arrangement_cache()
        self.refresh(layout=True)
        self.screen.refresh(layout=True)


Answer = TypeVar("Answer")


def apply_initial_breakpoints(screen: Screen[Answer], window: Size) -> None:
    """Set the breakpoint classes of a screen that is being composed, for a window of this size."""
    tables = (screen.HORIZONTAL_BREAKPOINTS, screen.VERTICAL_BREAKPOINTS)
    for size, breakpoints in zip(window, tables, strict=True):
        reached = [entry for entry in breakpoints or () if entry[0] <= size]
        if reached:
            screen.add_class(max(reached)[1])


def report_each_layout(screen: Screen[Any]) -> None:
    """Give a new screen a compositor from which no widget misses a `Resize`, and which asks only for changed rows."""
    cast(Any, screen)._compositor = _LayoutCompositor()


_Place: TypeAlias = tuple[Widget, Region, Region]
"""A widget, its region, and the part of it that its containers show."""


class _LayoutCompositor(Compositor):
    """Compositor that compares each layout with the one before, and asks widgets only for rows that a frame shows.

    Textual asks each widget between the first and the last changed row for all its rows, also those that others cover.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[Widget, Size] = {}
        self._layout: tuple[object, object] | None = None
        self._shown: list[_Place] = []
        self._rows: dict[int, list[tuple[int, int, _Place]]] = {}

    def clear(self) -> None:
        """Forget all widgets."""
        super().clear()
        self._sizes.clear()
        self._layout, self._shown, self._rows = None, [], {}

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Lay out all widgets and return those that were hidden, shown or resized since the last call."""
        before, result = self._sizes, super().reflow(parent, size)
        self._sizes = now = {widget: geometry.region.size for widget, geometry in self._full_map.items()}
        return ReflowResult(
            hidden=result.hidden,
            shown=result.shown | (now.keys() - before.keys()),
            resized=result.resized | {widget for widget, its in now.items() if before.get(widget, its) != its},
        )

    def render_partial_update(self) -> ChopsUpdate | None:
        """Return the changed parts of the screen; None if nothing has changed."""
        regions = [region.intersection(self.size.region) for region in self._dirty_regions]
        self._dirty_regions.clear()
        spans = list(self._regions_to_spans(filter(None, regions)))
        if not spans:
            return None
        return ChopsUpdate(self._pieces(spans), spans, [row[1:] for row in self.cuts])

    def _pieces(self, spans: Iterable[tuple[int, int, int]]) -> list[dict[int, Strip | None]]:
        """Return the pieces of each row that overlap a span, by their first column."""
        pieces: list[dict[int, Strip | None]] = [{} for _ in self.cuts]
        wanted: dict[_Place, dict[int, set[tuple[int, int]]]] = {}
        for y, first, last in spans:
            pieces[y] = pieces[y] or dict.fromkeys(self.cuts[y][:-1])
            for x, end, place in self._places_in(y):
                if x < last and end > first:
                    wanted.setdefault(place, {}).setdefault(y, set()).add((x, end))
        for (widget, region, shown), rows in wanted.items():
            top = min(rows)
            crop = Region(shown.x - region.x, top - region.y, shown.width, max(rows) - top + 1)
            strips = widget.render_lines(crop)
            for y, columns in rows.items():
                strip = strips[y - top]
                for x, end in columns:
                    # A strip that divides itself into one keeps itself alive until garbage is collected.
                    whole = end - x == strip.cell_length
                    pieces[y][x] = strip if whole else strip.crop(x - shown.x, end - shown.x)
        return pieces

    def _places_in(self, y: int) -> list[tuple[int, int, _Place]]:
        """Return start and end of each piece of a row, and the widget in front there; found once for each layout."""
        layout = self.visible_widgets, self.cuts
        if self._layout is None or any(one is not other for one, other in zip(layout, self._layout, strict=True)):
            self._layout = layout
            # In front are the first ones.
            self._shown = [(widget, its, its.intersection(clip)) for widget, (its, clip) in layout[0].items()]
            self._rows = {}
        found = self._rows.get(y)
        if found is None:
            here = [place for place in self._shown if place[2].y <= y < place[2].bottom]
            pieces = pairwise(self.cuts[y])
            places = ((x, end, next((one for one in here if one[2].contains(x, y)), None)) for x, end in pieces)
            found = self._rows[y] = [(x, end, place) for x, end, place in places if place is not None]
        return found
