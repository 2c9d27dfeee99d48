"""Compositor that reports each widget that a layout shows or resizes.

Textual's compares a layout with its map of the screen, which it also makes anew when someone asks for the region of a
widget. If that happens between a change and its layout, the widget never receives its `Resize` and stays empty.
"""

from typing import Any, cast

from textual._compositor import Compositor, ReflowResult
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget


def report_each_layout(screen: Screen[Any]) -> None:
    """Give a new screen a compositor from which no widget misses a `Resize`."""
    cast(Any, screen)._compositor = _LayoutCompositor()


class _LayoutCompositor(Compositor):
    """Compositor that compares each layout with the one before."""

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
