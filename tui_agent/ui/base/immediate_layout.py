"""Layout of a screen within one frame, at its first paint, and without a lost `Resize`; and frames of changed rows."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeVar, cast

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


class _LayoutCompositor(Compositor):
    """Compositor that compares each layout with the one before, and asks widgets only for rows that a frame shows.

    Textual asks each widget between the first and the last changed row for all its rows, also those that others cover.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[Widget, Size] = {}

    def clear(self) -> None:
        """Forget all widgets."""
        super().clear()
        self._sizes.clear()

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
        missing: dict[int, set[int]] = {}
        for y, first, last in spans:
            row = self.cuts[y]
            pieces[y] = pieces[y] or dict.fromkeys(row[:-1])
            missing.setdefault(y, set()).update(x for x, end in pairwise(row) if x < last and end > first)
        # In front are the first ones.
        for widget, (region, clip) in self.visible_widgets.items():
            shown = region.intersection(clip)
            left, right = shown.column_span
            rows = [y for y in missing if y in shown.line_range and any(left <= x < right for x in missing[y])]
            if not rows:
                continue
            part = Region(left - region.x, rows[0] - region.y, shown.width, rows[-1] - rows[0] + 1)
            strips = widget.render_lines(part)
            for y in rows:
                cuts = [x for x in self.cuts[y] if left <= x <= right]
                found = strips[y - rows[0]].divide([x - left for x in cuts[1:]])
                pieces[y].update((x, strip) for x, strip in zip(cuts, found, strict=False) if x in missing[y])
                missing[y].difference_update(cuts)
                if not missing[y]:
                    del missing[y]
        return pieces
